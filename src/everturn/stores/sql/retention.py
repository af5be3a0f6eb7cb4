"""Retention: the maintenance job that removes data which is no longer needed.

`run_maintenance` erases sessions that were idle for too long, trims the bodies of handled commands, and removes blobs that
no session references. It works in small transactions, and can be stopped and restarted at any time.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical_json import encode_canonical
from everturn.core.commands import AnyCommand, Send
from everturn.errors import KeyConflict, SessionBusy
from everturn.stores.sql import event_partitions
from everturn.stores.sql.blobs import SqlBlobs
from everturn.stores.sql.database import Database, Operation, Query, Row, Statement
from everturn.stores.sql.erasure import erase, erase_if_idle
from everturn.wire import load_command

TRIM_AFTER = 86_400.0
"""Seconds a session is idle before its handled commands are trimmed to what deduplication needs."""

TRIM_MIN_BYTES = 512
"""Size of a command in bytes below which trimming it saves nothing."""

FINGERPRINTS_LIMIT = 100_000
"""Maximum number of conversation fingerprints of a tenant; the newest stay."""

FINGERPRINT_SECONDS = 30 * 86_400.0
"""Seconds after which a fingerprint is removed, and a login or link that is no longer valid."""

BATCH = 200

MAINTENANCE_QUEUE = "maintenance"
"""Queue name for writes that belong to no one session."""


class RetentionResult(Struct, frozen=True):
    """What a run of the maintenance job removed."""

    sessions: int = 0  # erased because they were idle for too long
    commands: int = 0  # trimmed
    blobs: int = 0  # removed because no session referenced them
    bytes: int = 0  # the size of those blobs
    files: int = 0  # removed because they belong to no blob: a process died before it recorded them
    fingerprints: int = 0  # fingerprints of conversations that were not continued
    credentials: int = 0  # logins and links that have been invalid for long
    partitions: int = 0  # of the log on PostgreSQL, dropped with the logs of erased sessions


_IDLE = Statement(
    "idle_sessions",
    "SELECT id FROM sessions WHERE id > ? AND touched < ? AND NOT erased ORDER BY id LIMIT ?",
    "SELECT given.row, s.id FROM unnest($1::text[], $2::double precision[], $3::bigint[]) "
    "WITH ORDINALITY AS given (id, before, most, row) CROSS JOIN LATERAL (SELECT id FROM sessions "
    "WHERE id > given.id AND touched < given.before AND NOT erased ORDER BY id LIMIT given.most) s ORDER BY 1, 2",
    returns=True,
)
_ACTED_ON = Statement(
    "acted_on_commands",
    "SELECT i.n, i.body, i.session, i.key FROM inbox i JOIN sessions s ON s.id = i.session WHERE i.n > ? AND NOT "
    "i.is_open "
    "AND i.kind != 'cut' AND length(i.body) >= ? AND s.touched < ? ORDER BY i.n LIMIT ?",
    "SELECT given.row, c.n, c.body, c.session, c.key FROM unnest($1::bigint[], $2::int[], $3::double "
    "precision[], $4::bigint[]) "
    "WITH ORDINALITY AS given (n, size, before, most, row) CROSS JOIN LATERAL (SELECT i.n, i.body, i.session, "
    "i.key FROM inbox i "
    "JOIN sessions s ON s.id = i.session WHERE i.n > given.n AND NOT i.is_open AND i.kind != 'cut' "
    "AND length(i.body) >= given.size AND s.touched < given.before ORDER BY i.n LIMIT given.most) c ORDER BY 1, 2",
    returns=True,
)
_CUT = Statement(
    "cut_command",
    "UPDATE inbox SET body = ?, kind = 'cut' WHERE session = ? AND key = ? AND NOT is_open",
    "UPDATE inbox i SET body = given.body, kind = 'cut' "
    "FROM unnest($1::bytea[], $2::text[], $3::text[]) AS given (body, session, key) "
    "WHERE i.session = given.session AND i.key = given.key AND NOT i.is_open",
)
# The condition on the row itself comes last: PostgreSQL evaluates it again if it had to wait for a concurrent touch.
_SWEEP = Statement(
    "sweep_blobs",
    "DELETE FROM blobs WHERE name IN (SELECT b.name FROM blobs b WHERE b.touched < ? AND NOT EXISTS "
    "(SELECT 1 FROM mentions m WHERE m.blob = b.name) LIMIT ?) RETURNING name, size, place, data",
    "DELETE FROM blobs d USING (SELECT given.row, given.before, o.name "
    "FROM unnest($1::double precision[], $2::bigint[]) WITH ORDINALITY AS given (before, most, row) "
    "CROSS JOIN LATERAL (SELECT b.name FROM blobs b WHERE b.touched < given.before AND NOT EXISTS "
    "(SELECT 1 FROM mentions m WHERE m.blob = b.name) LIMIT given.most) o) old "
    "WHERE d.name = old.name AND d.touched < old.before RETURNING old.row, d.name, d.size, d.place, d.data",
    returns=True,
)
_SWEEP_CHUNKS = Statement(
    "sweep_chunks",
    "DELETE FROM chunks WHERE blob = ?",
    "DELETE FROM chunks c USING unnest($1::text[]) AS given (blob) WHERE c.blob = given.blob",
)
_FILE = Statement(
    "file_of_blob",
    "SELECT data FROM blobs WHERE name = ? AND place = 'folder'",
    "SELECT given.row, b.data FROM unnest($1::text[]) WITH ORDINALITY AS given (name, row) "
    "JOIN blobs b ON b.name = given.name WHERE b.place = 'folder'",
    returns=True,
)
_IS_UNCLEAN = Statement(
    "is_unclean",
    "SELECT 1 FROM sessions WHERE erased AND token = 'erased' LIMIT 1",
    "SELECT 1, 1 FROM sessions WHERE erased AND token = 'erased' LIMIT 1",
    returns=True,
)
_IS_CLEAN = Statement(
    "is_clean",
    "UPDATE sessions SET token = '' WHERE erased AND token = 'erased'",
    "UPDATE sessions SET token = '' WHERE erased AND token = 'erased'",
)
# A deleted term stays in the older segments of the index until they are merged.
_MERGE_INDEX = Statement("merge_index", "INSERT INTO lookup_words(lookup_words) VALUES ('optimize')", "SELECT 1")


_OLD_MARKS = Statement(
    "old_marks",
    "DELETE FROM marks WHERE at < ? RETURNING hash",
    "DELETE FROM marks m USING unnest($1::double precision[]) WITH ORDINALITY AS given (before, row) "
    "WHERE m.at < given.before RETURNING given.row, m.hash",
    returns=True,
)
_MARKED = Statement("marked", "SELECT DISTINCT tenant FROM marks", "SELECT DISTINCT 1, tenant FROM marks", returns=True)
_SURPLUS_MARKS = Statement(
    "surplus_marks",
    "DELETE FROM marks WHERE tenant = ?1 AND hash IN "
    "(SELECT hash FROM marks WHERE tenant = ?1 ORDER BY at DESC, hash LIMIT -1 OFFSET ?2) RETURNING hash",
    "DELETE FROM marks m USING (SELECT given.row, given.tenant, o.hash FROM unnest($1::text[], $2::bigint[]) "
    "WITH ORDINALITY AS given (tenant, most, row) CROSS JOIN LATERAL (SELECT hash FROM marks "
    "WHERE tenant = given.tenant ORDER BY at DESC, hash OFFSET given.most) o) old "
    "WHERE m.tenant = old.tenant AND m.hash = old.hash RETURNING old.row, m.hash",
    returns=True,
)
# API keys stay: their owners see that they were revoked, and when.
_OLD_CREDENTIALS = Statement(
    "old_credentials",
    "DELETE FROM credentials WHERE kind != 'key' AND ((revoked > 0 AND revoked < ?1) OR (expires > 0 AND expires < ?1)) "
    "RETURNING id",
    "DELETE FROM credentials c USING unnest($1::double precision[]) WITH ORDINALITY AS given (before, row) "
    "WHERE c.kind != 'key' AND ((c.revoked > 0 AND c.revoked < given.before) "
    "OR (c.expires > 0 AND c.expires < given.before)) RETURNING given.row, c.id",
    returns=True,
)


class _TrimmedCommand(Struct, frozen=True, omit_defaults=True):
    """A command that was handled long ago: enough to recognize a repeat, and to answer it as the first time."""

    cut: str
    at: float = 0.0
    turn: str = ""
    message: str = ""
    joins: str = ""


def trim_command(command: AnyCommand) -> bytes:
    """Trim a handled command to what deduplication needs."""
    ids = (command.turn, command.message, command.joins) if isinstance(command, Send) else ()
    return msgspec.json.encode(_TrimmedCommand(_digest(command), command.at, *ids))


def stored_command(body: bytes, command: AnyCommand) -> AnyCommand:
    """Return the command that was stored under the key of this one, from its whole or its trimmed body.

    Raises:
        KeyConflict: the key was used for another command.
    """
    if not body.startswith(b'{"cut":'):
        first = load_command(body)
        is_same = first.body == command.body
    else:
        trimmed = msgspec.json.decode(body, type=_TrimmedCommand)
        first = replace(command, at=trimmed.at)
        if isinstance(first, Send):
            first = replace(first, turn=trimmed.turn, message=trimmed.message, joins=trimmed.joins)
        is_same = trimmed.cut == _digest(command)
    if not is_same:
        raise KeyConflict(f"the key {command.key!r} was used before for a different request")
    return first


def _digest(command: AnyCommand) -> str:
    return hashlib.sha256(encode_canonical(msgspec.to_builtins(command.body)).encode()).hexdigest()


async def run_maintenance(
    database: Database, blobs: SqlBlobs, now: float, idle: float | None = None, orphans: float = 86_400.0
) -> RetentionResult:
    """Remove sessions idle for `idle` seconds, old command bodies, and blobs unreferenced for `orphans` seconds."""
    before, spared = now - idle if idle is not None else 0.0, list[int]()
    if database.dialect == "postgresql":
        await event_partitions.rotate(database, now)
        spared = await event_partitions.droppable(database, before)
    sessions = await _erase_idle(database, before, spared) if idle is not None else 0
    partitions = sum([await event_partitions.compact(database, cohort) for cohort in spared])
    commands = await _cut_commands(database, now - TRIM_AFTER)
    names, size = await _delete_orphans(database, blobs, now - orphans)
    files = await _delete_orphan_files(database, blobs, now - orphans)
    fingerprints = await _delete_fingerprints(database, now - FINGERPRINT_SECONDS)
    credentials = await database.write(
        lambda _: _rows(_OLD_CREDENTIALS, now - FINGERPRINT_SECONDS), MAINTENANCE_QUEUE, is_long=True
    )
    if database.dialect == "sqlite":
        await _rewrite(database)
    return RetentionResult(sessions, commands, names, size, files, fingerprints, len(credentials), partitions)


async def _delete_fingerprints(database: Database, before: float) -> int:
    """Remove old fingerprints, and those beyond the limit of each tenant."""
    count = len(await database.write(lambda _: _rows(_OLD_MARKS, before), MAINTENANCE_QUEUE, is_long=True))
    for (tenant,) in await database.read(lambda: _rows(_MARKED), is_long=True):
        removed = await database.write(
            lambda _, t=tenant: _rows(_SURPLUS_MARKS, t, FINGERPRINTS_LIMIT), MAINTENANCE_QUEUE, is_long=True
        )
        count += len(removed)
    return count


async def _rewrite(database: Database) -> None:
    """Remove erased data from the file.

    SQLite overwrites deleted data with zeros, but a page that was split keeps a copy of its former content; only a new
    file has none. PostgreSQL does this with its own VACUUM.
    """
    is_unclean = bool(await database.read(lambda: _rows(_IS_UNCLEAN)))
    if is_unclean:
        await database.write(lambda _: _all(_MERGE_INDEX), MAINTENANCE_QUEUE, is_long=True)
    await database.compact(rewrite=is_unclean)
    if is_unclean:
        await database.write(lambda _: _all(_IS_CLEAN), MAINTENANCE_QUEUE, is_long=True)


def _all(statement: Statement) -> Operation[None]:
    yield Query(statement, [()], many=True)


def _rows(statement: Statement, *parameters: object) -> Operation[list[Row]]:
    return (yield Query(statement, parameters))


async def _erase_idle(database: Database, before: float, spared: Sequence[int]) -> int:
    count, last, partitions = 0, "", ",".join(map(str, spared))
    while sessions := await _idle(database, last, before):
        if database.dialect == "postgresql":  # in one transaction, a statement for all of them
            erased = await asyncio.gather(
                *(_erase_one(database, session, before, partitions, is_long=False) for session in sessions)
            )
        else:
            erased = [await _erase_one(database, session, before, partitions, is_long=True) for session in sessions]
        count, last = count + sum(erased), sessions[-1]
    return count


async def _erase_one(database: Database, session: str, before: float, spared: str, is_long: bool) -> int:
    # A session that waits for a person stays, however long.
    with contextlib.suppress(SessionBusy):
        return len(await database.write(lambda _: erase_if_idle(session, before, spared), session, is_long=is_long))
    return 0


async def _idle(database: Database, after: str, before: float) -> list[str]:
    rows = await database.read(lambda: _rows(_IDLE, after, before, BATCH), is_long=True)
    return [session for (session,) in rows]


async def _cut_commands(database: Database, before: float) -> int:
    count, last = 0, 0
    while rows := await database.read(
        lambda at=last: _rows(_ACTED_ON, at, TRIM_MIN_BYTES, before, BATCH), is_long=True
    ):
        shorter = [(trim_command(load_command(bytes(body))), session, key) for _, body, session, key in rows]
        await database.write(lambda _, shorter=shorter: _cut_all(shorter), MAINTENANCE_QUEUE, is_long=True)
        count, last = count + len(rows), rows[-1][0]
    return count


def _cut_all(rows: Sequence[tuple[bytes, str, str]]) -> Operation[None]:
    yield Query(_CUT, rows, many=True)


async def _delete_orphans(database: Database, blobs: SqlBlobs, before: float) -> tuple[int, int]:
    count = size = 0
    while rows := await database.write(lambda _: _delete_some_orphans(before), MAINTENANCE_QUEUE, is_long=True):
        count, size = count + len(rows), size + sum(row[1] for row in rows)
        files = [bytes(data).decode() for _, _, place, data in rows if place == "folder"]
        if files and blobs.folder is not None:
            await asyncio.to_thread(blobs.folder.remove, files)
    return count, size


def _delete_some_orphans(before: float) -> Operation[list[Row]]:
    rows = yield Query(_SWEEP, (before, BATCH))
    if chunked := [(name,) for name, _, place, _ in rows if place in ("chunks", "writing")]:
        yield Query(_SWEEP_CHUNKS, chunked, many=True)
    return rows


async def _delete_orphan_files(database: Database, blobs: SqlBlobs, before: float) -> int:
    if blobs.folder is None:
        return 0
    old, count = blobs.folder.old(before), 0
    while batch := await asyncio.to_thread(_take, old):
        stray = await database.read(lambda batch=batch: _strays(batch), is_long=True)
        await asyncio.to_thread(blobs.folder.remove, stray)
        count += len(stray)
    return count


def _take(files: Iterator[str]) -> list[str]:
    return list(islice(files, BATCH))


def _strays(files: Sequence[str]) -> Operation[list[str]]:
    strays: list[str] = []
    for file in files:
        rows = yield Query(_FILE, (file.partition(".")[0],))
        if not rows or bytes(rows[0][0]).decode() != file:
            strays.append(file)
    return strays


__all__ = ["RetentionResult", "erase", "run_maintenance", "stored_command", "trim_command"]
