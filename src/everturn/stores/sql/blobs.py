"""Bytes ⇄ their hash: small ones in a row, large ones in a folder or, without one, in rows of a megabyte.

A blob never changes, so putting it again only says that somebody still wants it. What comes out is what went in: bytes
that no longer give their name are an error. A file has a name of its own for every time it was written, so that taking
an old one away can never hit a new one that was put at the same moment.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ParamSpec, TypeVar

from everturn.errors import StoreUnavailable, UnknownMessage, UnreadableLog
from everturn.stores.sql.database import Database, Operation, Query, Row, Statement
from everturn.stores.sql.folder import Folder

P = ParamSpec("P")
T = TypeVar("T")

ROW_LIMIT = 64 * 1024
"""Bytes up to which a blob lives in its row."""

CHUNK = 1024 * 1024

THREAD_FROM = 256 * 1024
"""Bytes from which hashing takes longer than going to a thread and coming back."""

_TOUCH = Statement(
    "touch_blob",
    "UPDATE blobs SET touched = max(touched, ?) WHERE name = ? RETURNING place, data",
    "UPDATE blobs b SET touched = greatest(b.touched, given.at) "
    "FROM unnest($1::double precision[], $2::text[]) WITH ORDINALITY AS given (at, name, row) "
    "WHERE b.name = given.name RETURNING given.row, b.place, b.data",
    returns=True,
)
# Who comes second finds what the first has written; only a file, or an unfinished one, gives way to a new one.
_PUT = Statement(
    "put_blob",
    "INSERT INTO blobs (name, size, touched, place, data) VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
    "touched = max(touched, excluded.touched), place = excluded.place, data = excluded.data "
    "WHERE excluded.place <> 'writing' OR blobs.place = 'writing'",
    "INSERT INTO blobs (name, size, touched, place, data) SELECT * FROM "
    "unnest($1::text[], $2::bigint[], $3::double precision[], $4::text[], $5::bytea[]) "
    "ON CONFLICT (name) DO UPDATE SET touched = greatest(blobs.touched, excluded.touched), "
    "place = excluded.place, data = excluded.data "
    "WHERE excluded.place <> 'writing' OR blobs.place = 'writing'",
)
_CHUNK = Statement(
    "put_chunk",
    "INSERT INTO chunks (blob, n, data) VALUES (?, ?, ?) ON CONFLICT (blob, n) DO UPDATE SET data = excluded.data",
    "INSERT INTO chunks (blob, n, data) SELECT * FROM unnest($1::text[], $2::int[], $3::bytea[]) "
    "ON CONFLICT (blob, n) DO UPDATE SET data = excluded.data",
)
_GET = Statement(
    "blob",
    "SELECT size, place, data FROM blobs WHERE name = ?",
    "SELECT given.row, b.size, b.place, b.data FROM unnest($1::text[]) WITH ORDINALITY AS given (name, row) "
    "JOIN blobs b ON b.name = given.name",
    returns=True,
)
_GET_CHUNK = Statement(
    "chunk",
    "SELECT data FROM chunks WHERE blob = ? AND n = ?",
    "SELECT given.row, c.data FROM unnest($1::text[], $2::int[]) WITH ORDINALITY AS given (blob, n, row) "
    "JOIN chunks c ON c.blob = given.blob AND c.n = given.n",
    returns=True,
)
_MENTION = Statement(
    "mention",
    "INSERT INTO mentions (blob, session) VALUES (?, ?) ON CONFLICT DO NOTHING",
    "INSERT INTO mentions (blob, session) SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING",
)


def mention(session: str, names: Iterable[str], now: float) -> Operation[None]:
    """Note that a session speaks of blobs, so that they stay. Touched first: whoever sweeps meanwhile sees that."""
    if wanted := sorted(set(names)):
        for name in wanted:
            yield Query(_TOUCH, (now, name))
        yield Query(_MENTION, [(name, session) for name in wanted], many=True)


class Blobs:
    """The blobs of one database. `now` is asked for the time of a touch."""

    def __init__(self, database: Database, folder: Path | None, now: Callable[[], float]) -> None:
        self._database, self._now = database, now
        self.folder = Folder(folder) if folder is not None else None

    async def put(self, data: bytes) -> str:
        """Keep bytes under their hash."""
        name = await _hash(data)
        there = await self._database.write(lambda _: _one(_TOUCH, self._now(), name), name)
        if there is None or not await self._is_whole(there, len(data)):
            await self._write(name, data)
        return name

    async def get(self, name: str) -> bytes:
        """The bytes behind a hash.

        Raises:
            UnknownMessage: there is no such blob.
            UnreadableLog: its bytes are damaged, or gone.
        """
        if not _is_name(name):  # which a database may not even be able to look for
            raise UnknownMessage(f"there is no blob {name!r}")
        for _ in range(2):
            data = await self._read(name)
            if data is not None and await _hash(data) == name:
                return data
            # A file may have been taken away and put again between the two looks; a damaged one stays damaged.
        raise UnreadableLog(f"blob {name} is damaged: what is stored under this name has other bytes, or none")

    async def _is_whole(self, there: Row, size: int) -> bool:
        place, data = there
        if place == "folder":
            return self.folder is not None and await asyncio.to_thread(self.folder.size, _file(data)) == size
        return place != "writing"

    async def _write(self, name: str, data: bytes) -> None:
        if len(data) <= ROW_LIMIT:
            await self._put(name, len(data), "row", data)
        elif self.folder is not None:
            file = await _to_disk(self.folder.write, name, data)
            await self._put(name, len(data), "folder", file.encode())
        else:
            # Chunk by chunk, so that no transaction is long; whoever reads meanwhile is told that there is none yet.
            await self._put(name, len(data), "writing", None)
            for n, at in enumerate(range(0, len(data), CHUNK)):
                await self._database.write(_many(_CHUNK, (name, n, data[at : at + CHUNK])), name)
            await self._put(name, len(data), "chunks", None)

    async def _put(self, name: str, size: int, place: str, data: bytes | None) -> None:
        await self._database.write(_many(_PUT, (name, size, self._now(), place, data)), name)

    async def _read(self, name: str) -> bytes | None:
        row = await self._database.read(lambda: _one(_GET, name))
        if row is None or row[1] == "writing":
            raise UnknownMessage(f"there is no blob {name!r}")
        size, place, data = row
        if place == "row":
            return bytes(data)
        if place == "folder":
            return await _to_disk(self.folder.read, _file(data), size) if self.folder is not None else None
        pieces: list[bytes] = []
        for n in range(-(-size // CHUNK)):
            piece = await self._database.read(lambda n=n: _one(_GET_CHUNK, name, n))
            if piece is None:
                return None
            pieces.append(bytes(piece[0]))
        return b"".join(pieces)


async def _hash(data: bytes) -> str:
    if len(data) < THREAD_FROM:
        return hashlib.sha256(data).hexdigest()
    return (await asyncio.to_thread(hashlib.sha256, data)).hexdigest()


async def _to_disk(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return await asyncio.to_thread(work, *args, **kwargs)
    except OSError as error:
        raise StoreUnavailable(f"the folder of the blobs does not work: {error}") from error


_is_name = re.compile("[0-9a-f]{64}").fullmatch


def _file(data: bytes | None) -> str:
    return bytes(data or b"").decode()


def _one(statement: Statement, *parameters: object) -> Operation[Row | None]:
    rows = yield Query(statement, parameters)
    return rows[0] if rows else None


def _many(statement: Statement, *rows: tuple[object, ...]) -> Callable[[bool], Operation[None]]:
    def operation(_: bool) -> Operation[None]:
        yield Query(statement, rows, many=True)

    return operation
