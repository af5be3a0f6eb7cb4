"""Copies of rows between two databases by COPY, and their comparison by count and hash."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from everturn.cells.tables import LARGE, MovedTable
from everturn.errors import ConfigError, UnreadableLog

SESSIONS_AT_ONCE: Final = 200
BLOBS_AT_ONCE: Final = 100
_BLOCKS: Final = 16  # of COPY that wait between the two databases

_BLOBS: Final = """
SELECT DISTINCT m.blob FROM mentions m JOIN sessions s ON s.id = m.session WHERE s.tenant = $1"""
_CHANGED: Final = """
SELECT id, erased FROM sessions WHERE tenant = $1 AND ($2 = '' OR age(xmin) <= age(nullif($2, '')::xid)) ORDER BY id"""
_NOT_ERASED: Final = "session IN (SELECT id FROM sessions WHERE tenant = $1 AND NOT erased)"


async def stream_copy(
    source: Any, target: Any, query: str, values: Sequence[object], table: str, columns: Sequence[str]
) -> None:
    """Copy the rows of a query in one database into a table of another."""
    blocks: asyncio.Queue[bytes | None] = asyncio.Queue(_BLOCKS)

    async def read() -> None:
        await source.copy_from_query(query, *values, output=blocks.put, format="binary")
        await blocks.put(None)

    async def received() -> AsyncIterator[bytes]:
        while (block := await blocks.get()) is not None:
            yield block

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(read())
            group.create_task(target.copy_to_table(table, source=received(), columns=list(columns), format="binary"))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def changed_sessions(source: Any, tenant: str, since: str) -> tuple[list[str], list[str]]:
    """The sessions whose row was written by a transaction that was not over at `since` ("": all), and the erased of them.

    Every append and every admission writes the row of its session. Transaction ids that have wrapped around look new.
    """
    rows = await source.fetch(_CHANGED, tenant, since)
    return [session for session, is_erased in rows if not is_erased], [row[0] for row in rows if row[1]]


async def delete_sessions(target: Any, sessions: Sequence[str]) -> None:
    """Delete what was copied of the large tables of some sessions."""
    for table in LARGE:
        await target.execute(f"DELETE FROM {table} WHERE session = ANY($1::text[])", list(sessions))


async def current_position(source: Any) -> str:
    """The oldest transaction that the snapshot of this connection may not see."""
    return str(await source.fetchval("SELECT pg_snapshot_xmin(pg_current_snapshot())::xid::text"))


async def copy_sessions(
    source: Any, target: Any, tables: Sequence[MovedTable], sessions: Sequence[str], cohort: int
) -> None:
    """Copy the large tables of some sessions, and compare them. The target is inside a transaction.

    Raises:
        ConfigError: the target has a session of the same name.
        UnreadableLog: a session of the target differs from the source.
    """
    names = list(sessions)
    if taken := await target.fetch("SELECT id FROM sessions WHERE id = ANY($1::text[]) LIMIT 5", names):
        raise ConfigError(f"the target already has sessions with these ids: {[row[0] for row in taken]}")
    for table in (table for table in tables if table.name in LARGE):
        if table.name == "events":
            await _copy_events(source, target, table, names, cohort)
        else:
            await target.execute(f"DELETE FROM {table.name} WHERE session = ANY($1::text[])", names)
            order = f' ORDER BY "{table.order}"' if table.order else ""
            query = f"SELECT {table.listed} FROM {table.name} WHERE session = ANY($1::text[]){order}"
            await stream_copy(source, target, query, [names], table.name, table.columns)
        found, expected = await _digests(target, table, names), await _digests(source, table, names)
        for session in names:
            if found.get(session) != expected.get(session):
                raise UnreadableLog(
                    f"{table.name} of session {session!r} differs between the cells: {found.get(session)} in the target, "
                    f"{expected.get(session)} in the source; nothing was switched"
                )


async def _copy_events(source: Any, target: Any, table: MovedTable, sessions: list[str], cohort: int) -> None:
    """Copy the events that the target does not have: a log only grows."""
    rows = await target.fetch(
        "SELECT session, max(seq) FROM events WHERE cohort = $2 AND session = ANY($1::text[]) GROUP BY 1",
        sessions,
        cohort,
    )
    heads: dict[str, int] = dict(rows)
    query = (
        f"SELECT {', '.join(f'e.{column}' for column in table.columns)}, {int(cohort)} FROM "
        "unnest($1::text[], $2::bigint[]) AS p(session, head) JOIN sessions s ON s.id = p.session "
        "JOIN events e ON e.cohort = s.cohort AND e.session = p.session AND e.seq > p.head ORDER BY e.session, e.seq"
    )
    values = [sessions, [heads.get(session, 0) for session in sessions]]
    await stream_copy(source, target, query, values, "events", [*table.columns, "cohort"])


async def _digests(connection: Any, table: MovedTable, sessions: list[str]) -> dict[str, tuple[int, str]]:
    rows = await connection.fetch(
        "SELECT session, count(*), md5(string_agg(h, '' ORDER BY h)) FROM (SELECT session, "
        f"md5(ROW({table.listed})::text) h "
        f"FROM {table.name} WHERE session = ANY($1::text[])) d GROUP BY session",
        sessions,
    )
    return {session: (count, digest) for session, count, digest in rows}


async def copy_blobs(source: Any, target: Any, tenant: str) -> int:
    """Copy the blobs that sessions of a tenant mention and the target does not have; return how many.

    Raises:
        ConfigError: a blob is in a folder.
    """
    names = [row[0] for row in await source.fetch(_BLOBS, tenant)]
    missing: list[str] = []
    for at in range(0, len(names), 5_000):
        part = names[at : at + 5_000]
        found = await target.fetch("SELECT name FROM blobs WHERE name = ANY($1::text[]) AND place <> 'writing'", part)
        missing += sorted(set(part) - {row[0] for row in found})
    for at in range(0, len(missing), BLOBS_AT_ONCE):
        await _copy_blobs(source, target, missing[at : at + BLOBS_AT_ONCE])
    return len(missing)


async def _copy_blobs(source: Any, target: Any, names: list[str]) -> None:
    in_folder = "SELECT count(*) FROM blobs WHERE name = ANY($1::text[]) AND place NOT IN ('row', 'chunks', 'writing')"
    if await source.fetchval(in_folder, names):
        raise ConfigError("some files of this tenant are in a folder, and not in the database; they cannot be moved")
    columns = {
        "blobs": ("name", "size", "touched", "place", "data"),
        "chunks": ("blob", "n", "data"),
    }
    async with target.transaction():
        for table, listed in columns.items():
            await target.execute(f"CREATE TEMP TABLE moved_{table} (LIKE {table}) ON COMMIT DROP")
            query = f"SELECT {', '.join(listed)} FROM {table} WHERE {listed[0]} = ANY($1::text[])"
            await stream_copy(source, target, query, [names], f"moved_{table}", listed)
        # A blob whose upload has just begun in the target is replaced by the whole one.
        await target.execute("DELETE FROM blobs WHERE name = ANY($1::text[]) AND place = 'writing'", names)
        await target.execute("UPDATE moved_blobs SET touched = extract(epoch FROM now())")
        for table, listed in columns.items():
            await target.execute(
                f"INSERT INTO {table} ({', '.join(listed)}) SELECT {', '.join(listed)} FROM moved_{table} "
                "ON CONFLICT DO NOTHING"
            )


async def copy_rest(source: Any, target: Any, tables: Sequence[MovedTable], tenant: str, cohort: int) -> dict[str, int]:
    """Copy all tables but the large ones, compare everything, and return the rows of each table.

    Raises:
        UnreadableLog: the target differs from the source.
    """
    counts: dict[str, int] = {}
    for table in tables:
        if table.name not in LARGE:
            if table.name != "audit":  # of which nothing can be deleted, and a target that has some is refused
                await target.execute(f"DELETE FROM {table.name} WHERE {table.condition}", tenant)
            order = f' ORDER BY "{table.order}"' if table.order else ""
            listed, more = table.listed, []
            if table.name == "sessions":
                listed, more = f"{listed}, {int(cohort)}", ["cohort"]
            query = f"SELECT {listed} FROM {table.name} WHERE {table.condition}{order}"
            await stream_copy(source, target, query, [tenant], table.name, [*table.columns, *more])
    for table in tables:
        found, expected = [await _digest(each, table, tenant) for each in (target, source)]
        if found != expected:
            raise UnreadableLog(
                f"{table.name} differs between the cells: {found} in the target, {expected} in the source; "
                "nothing was switched"
            )
        counts[table.name] = found[0]
    torn = await target.fetch(
        "SELECT s.id FROM sessions s WHERE s.tenant = $1 AND NOT s.erased AND s.head <> "
        "(SELECT coalesce(max(e.seq), 0) FROM events e WHERE e.cohort = s.cohort AND e.session = s.id) LIMIT 5",
        tenant,
    )
    if torn:
        raise UnreadableLog(f"the logs of {[row[0] for row in torn]} are not whole in the target; nothing was switched")
    return counts


async def _digest(connection: Any, table: MovedTable, tenant: str) -> tuple[int, str]:
    """Count, and hash, of a tenant's rows. The large tables were compared session by session: their count is enough."""
    digest = "''" if table.name in LARGE else "coalesce(md5(string_agg(h, '' ORDER BY h)), '')"
    value = "''" if table.name in LARGE else f"md5(ROW({table.listed})::text)"
    condition = _NOT_ERASED if table.name in LARGE else table.condition
    row = await connection.fetchrow(
        f"SELECT count(*), {digest} FROM (SELECT {value} h FROM {table.name} WHERE {condition}) d", tenant
    )
    return row[0], row[1]
