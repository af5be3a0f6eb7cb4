"""A store over the years: what nobody needs any more goes.

`keep_house` erases sessions that were idle for too long, forgets what acted-on commands said, and takes away blobs that
nobody mentions. It goes in small transactions, and may be stopped and begun again at any time.
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

from everturn.core.canonical import canonical
from everturn.core.commands import AnyCommand, Send
from everturn.errors import KeyConflict, SessionBusy
from everturn.stores.sql.blobs import Blobs
from everturn.stores.sql.database import Database, Operation, Query, Row, Statement
from everturn.stores.sql.erasing import erase, erased
from everturn.wire import load_command

CUT_AFTER = 86_400.0
"""Seconds a session rests before its acted-on commands are cut down to what makes a repeat harmless."""

CUT_FROM = 512
"""Bytes of a command below which cutting it down saves nothing."""

MARKS = 100_000
"""Marks of conversations that a tenant may have, the newest."""

MARKS_FOR = 30 * 86_400.0
"""Seconds after which a mark goes, and a login or link that holds no more."""

BATCH = 200

HOUSE = "house-keeping"
"""The name under which writes that belong to no one session are queued."""


class Kept(Struct, frozen=True):
    """What keeping house came to."""

    sessions: int = 0  # erased, for they had been idle for too long
    commands: int = 0  # cut down
    blobs: int = 0  # taken away, for nobody mentioned them
    bytes: int = 0  # in those
    files: int = 0  # taken away, for they were no blob: an earlier process died before it could say so
    marks: int = 0  # of conversations nobody came back to
    credentials: int = 0  # logins and links that hold no more, for long


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
    "SELECT i.n, i.body FROM inbox i JOIN sessions s ON s.id = i.session WHERE i.n > ? AND NOT i.is_open "
    "AND i.kind != 'cut' AND length(i.body) >= ? AND s.touched < ? ORDER BY i.n LIMIT ?",
    "SELECT given.row, c.n, c.body FROM unnest($1::bigint[], $2::int[], $3::double precision[], $4::bigint[]) "
    "WITH ORDINALITY AS given (n, size, before, most, row) CROSS JOIN LATERAL (SELECT i.n, i.body FROM inbox i "
    "JOIN sessions s ON s.id = i.session WHERE i.n > given.n AND NOT i.is_open AND i.kind != 'cut' "
    "AND length(i.body) >= given.size AND s.touched < given.before ORDER BY i.n LIMIT given.most) c ORDER BY 1, 2",
    returns=True,
)
_CUT = Statement(
    "cut_command",
    "UPDATE inbox SET body = ?, kind = 'cut' WHERE n = ? AND NOT is_open",
    "UPDATE inbox i SET body = given.body, kind = 'cut' "
    "FROM unnest($1::bytea[], $2::bigint[]) AS given (body, n) WHERE i.n = given.n AND NOT i.is_open",
)
# What is asked of the row itself comes last: PostgreSQL asks that again if it had to wait for somebody who touched it.
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
# A word that was deleted stays in the older parts of the index until they are merged.
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
# Keys stay: their owners see that they were revoked, and when.
_OLD_CREDENTIALS = Statement(
    "old_credentials",
    "DELETE FROM credentials WHERE kind != 'key' AND ((revoked > 0 AND revoked < ?1) OR (expires > 0 AND expires < ?1)) "
    "RETURNING id",
    "DELETE FROM credentials c USING unnest($1::double precision[]) WITH ORDINALITY AS given (before, row) "
    "WHERE c.kind != 'key' AND ((c.revoked > 0 AND c.revoked < given.before) "
    "OR (c.expires > 0 AND c.expires < given.before)) RETURNING given.row, c.id",
    returns=True,
)


class _Cut(Struct, frozen=True, omit_defaults=True):
    """A command that was acted on long ago: enough to know it again, and to answer as the first time."""

    cut: str
    at: float = 0.0
    turn: str = ""
    message: str = ""
    joins: str = ""


def cut(command: AnyCommand) -> bytes:
    """What is kept of a command that has been acted on."""
    ids = (command.turn, command.message, command.joins) if isinstance(command, Send) else ()
    return msgspec.json.encode(_Cut(_digest(command), command.at, *ids))


def earlier(body: bytes, command: AnyCommand) -> AnyCommand:
    """The command that was stored under the key of this one, whole or cut down.

    Raises:
        KeyConflict: it was another.
    """
    if not body.startswith(b'{"cut":'):
        first = load_command(body)
        is_same = first.body == command.body
    else:
        kept = msgspec.json.decode(body, type=_Cut)
        first = replace(command, at=kept.at)
        if isinstance(first, Send):
            first = replace(first, turn=kept.turn, message=kept.message, joins=kept.joins)
        is_same = kept.cut == _digest(command)
    if not is_same:
        raise KeyConflict(f"the key {command.key!r} was used before, for something else")
    return first


def _digest(command: AnyCommand) -> str:
    return hashlib.sha256(canonical(msgspec.to_builtins(command.body)).encode()).hexdigest()


async def keep_house(
    database: Database, blobs: Blobs, now: float, idle: float | None = None, orphans: float = 86_400.0
) -> Kept:
    """Tidy up: sessions idle for `idle` seconds, commands long acted on, blobs without a mention for `orphans`."""
    sessions = await _erase_idle(database, now - idle) if idle is not None else 0
    commands = await _cut_commands(database, now - CUT_AFTER)
    names, size = await _sweep(database, blobs, now - orphans)
    files = await _sweep_files(database, blobs, now - orphans)
    marks = await _sweep_marks(database, now - MARKS_FOR)
    credentials = await database.write(lambda _: _rows(_OLD_CREDENTIALS, now - MARKS_FOR), HOUSE, is_long=True)
    if database.dialect == "sqlite":
        await _rewrite(database)
    return Kept(sessions, commands, names, size, files, marks, len(credentials))


async def _sweep_marks(database: Database, before: float) -> int:
    """Those that are old, and of each tenant those beyond what it may have."""
    count = len(await database.write(lambda _: _rows(_OLD_MARKS, before), HOUSE, is_long=True))
    for (tenant,) in await database.read(lambda: _rows(_MARKED), is_long=True):
        gone = await database.write(lambda _, t=tenant: _rows(_SURPLUS_MARKS, t, MARKS), HOUSE, is_long=True)
        count += len(gone)
    return count


async def _rewrite(database: Database) -> None:
    """Let what was erased be gone from the file. Zeros are written over what is deleted, but a page that was divided
    keeps a copy of what stood on it before; only a new file has none. PostgreSQL sees to that with its own VACUUM.
    """
    is_unclean = bool(await database.read(lambda: _rows(_IS_UNCLEAN)))
    if is_unclean:
        await database.write(lambda _: _all(_MERGE_INDEX), HOUSE, is_long=True)
    await database.tidy(rewrite=is_unclean)
    if is_unclean:
        await database.write(lambda _: _all(_IS_CLEAN), HOUSE, is_long=True)


def _all(statement: Statement) -> Operation[None]:
    yield Query(statement, [()], many=True)


def _rows(statement: Statement, *parameters: object) -> Operation[list[Row]]:
    return (yield Query(statement, parameters))


async def _erase_idle(database: Database, before: float) -> int:
    count, last = 0, ""
    while sessions := await _idle(database, last, before):
        for session in sessions:
            # One that waits for somebody stays, however long.
            with contextlib.suppress(SessionBusy):
                gone = await database.write(lambda _, session=session: erased(session, before), session, is_long=True)
                count += len(gone)
        last = sessions[-1]
    return count


async def _idle(database: Database, after: str, before: float) -> list[str]:
    rows = await database.read(lambda: _rows(_IDLE, after, before, BATCH), is_long=True)
    return [session for (session,) in rows]


async def _cut_commands(database: Database, before: float) -> int:
    count, last = 0, 0
    while rows := await database.read(lambda at=last: _rows(_ACTED_ON, at, CUT_FROM, before, BATCH), is_long=True):
        shorter = [(cut(load_command(bytes(body))), n) for n, body in rows]
        await database.write(lambda _, shorter=shorter: _cut_all(shorter), HOUSE, is_long=True)
        count, last = count + len(rows), rows[-1][0]
    return count


def _cut_all(rows: Sequence[tuple[bytes, int]]) -> Operation[None]:
    yield Query(_CUT, rows, many=True)


async def _sweep(database: Database, blobs: Blobs, before: float) -> tuple[int, int]:
    count = size = 0
    while rows := await database.write(lambda _: _sweep_some(before), HOUSE, is_long=True):
        count, size = count + len(rows), size + sum(row[1] for row in rows)
        files = [bytes(data).decode() for _, _, place, data in rows if place == "folder"]
        if files and blobs.folder is not None:
            await asyncio.to_thread(blobs.folder.remove, files)
    return count, size


def _sweep_some(before: float) -> Operation[list[Row]]:
    rows = yield Query(_SWEEP, (before, BATCH))
    if chunked := [(name,) for name, _, place, _ in rows if place in ("chunks", "writing")]:
        yield Query(_SWEEP_CHUNKS, chunked, many=True)
    return rows


async def _sweep_files(database: Database, blobs: Blobs, before: float) -> int:
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
    found: list[str] = []
    for file in files:
        rows = yield Query(_FILE, (file.partition(".")[0],))
        if not rows or bytes(rows[0][0]).decode() != file:
            found.append(file)
    return found


__all__ = ["Kept", "cut", "earlier", "erase", "keep_house"]
