"""SQL `UserMemory`: the memory files of users in the database of the sessions.

A change locks the user, reads the list of files and the text it changes, and writes the result together with the key of
its call, in one transaction. The keys of a session are removed when it is erased: its calls are not run again then.
"""

from __future__ import annotations

import msgspec

from everturn.core.memory.user_memory import (
    NO_MARKS,
    MemoryChange,
    MemoryFile,
    MemoryFileInfo,
    MemoryMarks,
    MemoryOrigin,
    MemoryPut,
    MemoryReceipt,
    apply_memory_change,
    memory_base,
    memory_hash,
)
from everturn.errors import HashMismatch
from everturn.stores.sql.database import Database, Operation, Query, Row, Statement
from everturn.stores.user_memory import MEMORY_CHANGED

_INFO = "f.path, f.size, f.hash, f.updated, f.untrusted, f.sensitive"
# PostgreSQL: a change of a user's files waits here for the current one, on any node.
_LOCK = Statement(
    "lock memory",
    "SELECT ?, ?",
    """SELECT p.n, pg_advisory_xact_lock(hashtextextended(
        'everturn.memory.' || current_schema() || '.' || p.tenant || '/' || p.owner, 0))
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(tenant, owner, n)""",
    returns=True,
)
_FILES = Statement(
    "memory files",
    f"SELECT {_INFO} FROM memory_files f WHERE f.tenant = ? AND f.owner = ?",
    f"""SELECT p.n, {_INFO} FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(tenant, owner, n)
    JOIN memory_files f ON f.tenant = p.tenant AND f.owner = p.owner""",
    returns=True,
)
_FILE = Statement(
    "memory file",
    f"SELECT {_INFO}, f.text FROM memory_files f WHERE f.tenant = ? AND f.owner = ? AND f.path = ?",
    f"""SELECT p.n, {_INFO}, f.text
    FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS p(tenant, owner, path, n)
    JOIN memory_files f ON f.tenant = p.tenant AND f.owner = p.owner AND f.path = p.path""",
    returns=True,
)
_COLUMNS = "tenant, owner, path, size, hash, updated, untrusted, sensitive, text"
_PUT = Statement(
    "put memory file",
    f"""INSERT INTO memory_files ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, owner, path) DO UPDATE SET size = excluded.size, hash = excluded.hash,
        updated = excluded.updated, untrusted = excluded.untrusted, sensitive = excluded.sensitive, text = excluded.text""",
    f"""INSERT INTO memory_files ({_COLUMNS})
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::float8[], $7::boolean[],
        $8::boolean[], $9::text[])
    ON CONFLICT (tenant, owner, path) DO UPDATE SET size = excluded.size, hash = excluded.hash,
        updated = excluded.updated, untrusted = excluded.untrusted, sensitive = excluded.sensitive, text = excluded.text""",
)
_REMOVE = Statement(
    "remove memory file",
    "DELETE FROM memory_files WHERE tenant = ? AND owner = ? AND path = ?",
    """DELETE FROM memory_files f USING unnest($1::text[], $2::text[], $3::text[]) AS p(tenant, owner, path)
    WHERE f.tenant = p.tenant AND f.owner = p.owner AND f.path = p.path""",
)
_MOVE = Statement(
    "move memory file",
    """UPDATE memory_files SET path = ?4, updated = ?5, untrusted = untrusted OR ?6, sensitive = sensitive OR ?7
    WHERE tenant = ?1 AND owner = ?2 AND path = ?3""",
    """UPDATE memory_files f SET path = p.target, updated = p.updated, untrusted = f.untrusted OR p.untrusted,
        sensitive = f.sensitive OR p.sensitive
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::boolean[], $7::boolean[])
        AS p(tenant, owner, path, target, updated, untrusted, sensitive)
    WHERE f.tenant = p.tenant AND f.owner = p.owner AND f.path = p.path""",
)
# After a move: with encryption, a text is bound to the path of its file.
_REWRITE = Statement(
    "rewrite memory file",
    "UPDATE memory_files SET hash = ?, text = ? WHERE tenant = ? AND owner = ? AND path = ?",
    """UPDATE memory_files f SET hash = p.hash, text = p.text
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) AS p(hash, text, tenant, owner, path)
    WHERE f.tenant = p.tenant AND f.owner = p.owner AND f.path = p.path""",
)
_RECEIPT = Statement(
    "memory write",
    "SELECT w.receipt, w.tenant FROM memory_writes w WHERE w.session = ? AND w.key = ?",
    """SELECT p.n, w.receipt, w.tenant FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(session, key, n)
    JOIN memory_writes w ON w.session = p.session AND w.key = p.key""",
    returns=True,
)
_PUT_RECEIPT = Statement(
    "put memory write",
    "INSERT INTO memory_writes (session, key, tenant, owner, receipt) VALUES (?, ?, ?, ?, ?)",
    """INSERT INTO memory_writes (session, key, tenant, owner, receipt)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[])""",
)
_ERASE = Statement(
    "erase memory",
    "DELETE FROM memory_files WHERE tenant = ? AND owner = ? RETURNING path",
    """DELETE FROM memory_files f USING unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(tenant, owner, n)
    WHERE f.tenant = p.tenant AND f.owner = p.owner RETURNING p.n, f.path""",
    returns=True,
)


class SqlUserMemory:
    """Memory files of users."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def use_database(self, database: Database) -> None:
        """Read and write through another database, such as one that encrypts."""
        self._database = database

    async def files(self, tenant: str, user: str) -> list[MemoryFileInfo]:
        """Return all files of a user, by path."""
        return sorted((await self._database.read(lambda: _infos(tenant, user))).values(), key=lambda info: info.path)

    async def file(self, tenant: str, user: str, path: str) -> MemoryFile | None:
        """Return one file; None if there is none."""
        return await self._database.read(lambda: _file(tenant, user, path))

    async def change(
        self,
        tenant: str,
        user: str,
        change: MemoryChange,
        *,
        at: float,
        marks: MemoryMarks = NO_MARKS,
        base: str = "",
        origin: MemoryOrigin | None = None,
    ) -> MemoryReceipt:
        """Make a change, once for each origin."""
        return await self._database.write(
            lambda again: _change(tenant, user, change, at, marks, base, origin, again), f"memory {tenant} {user}"
        )

    async def erase(self, tenant: str, user: str) -> int:
        """Erase all files of a user, and return their number."""
        return await self._database.write(lambda _: _erase(tenant, user), f"memory {tenant} {user}")


def _infos(tenant: str, user: str) -> Operation[dict[str, MemoryFileInfo]]:
    rows = yield Query(_FILES, (tenant, user))
    return {row[0]: _info(row) for row in rows}


def _file(tenant: str, user: str, path: str) -> Operation[MemoryFile | None]:
    rows = yield Query(_FILE, (tenant, user, path))
    return MemoryFile(_info(rows[0]), rows[0][6]) if rows else None


def _info(row: Row) -> MemoryFileInfo:
    return MemoryFileInfo(row[0], row[1], row[2], row[3], MemoryMarks(bool(row[4]), bool(row[5])))


def _change(
    tenant: str,
    user: str,
    change: MemoryChange,
    at: float,
    marks: MemoryMarks,
    base: str,
    origin: MemoryOrigin | None,
    again: bool,
) -> Operation[MemoryReceipt]:
    yield Query(_LOCK, (tenant, user))
    if origin is not None:
        rows = yield Query(_RECEIPT, (origin.session, origin.key))
        if rows:
            return msgspec.json.decode(rows[0][0], type=MemoryReceipt)
    infos = yield from _infos(tenant, user)
    current = yield from _file(tenant, user, change.path)
    text = current.text if current is not None else None
    if base and memory_base(infos, change.path) != base:
        if again and isinstance(change, MemoryPut) and text == change.text:  # a lost COMMIT had written it
            return MemoryReceipt(change.path, memory_hash(text), base)
        raise HashMismatch(MEMORY_CHANGED)
    edit = apply_memory_change(change, infos, text, at=at, marks=marks)
    if (file := edit.written) is not None:
        info = file.info
        row = (info.path, info.size, info.hash, info.updated, info.marks.untrusted, info.marks.sensitive, file.text)
        yield Query(_PUT, [(tenant, user, *row)], many=True)
    if edit.removed:
        yield Query(_REMOVE, [(tenant, user, path) for path in edit.removed], many=True)
    if edit.moved:
        texts: list[tuple[str, ...]] = []
        for source, target in edit.moved:
            if (moved := (yield from _file(tenant, user, source))) is not None:
                texts.append((moved.info.hash, moved.text, tenant, user, target))
        moves = [(tenant, user, *move, at, marks.untrusted, marks.sensitive) for move in edit.moved]
        yield Query(_MOVE, moves, many=True)
        yield Query(_REWRITE, texts, many=True)
    if origin is not None:
        receipt = msgspec.json.encode(edit.receipt)
        yield Query(_PUT_RECEIPT, [(origin.session, origin.key, tenant, user, receipt)], many=True)
    return edit.receipt


def _erase(tenant: str, user: str) -> Operation[int]:
    yield Query(_LOCK, (tenant, user))
    return len((yield Query(_ERASE, (tenant, user))))
