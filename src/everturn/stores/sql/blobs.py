"""Blobs: bytes stored under their hash, small ones in a row, large ones in a folder or, without one, in 1 MB rows.

A blob never changes, so putting it again only updates when it was last needed. A read verifies the hash: bytes that do
not match their name are an error. Each write of a file gets a new file name, so that removing an old file can never
remove one that was put at the same moment.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ParamSpec, TypeVar

from everturn.errors import StoreUnavailable, UnknownMessage, UnreadableLog
from everturn.stores.sql.blob_folder import BlobFolder
from everturn.stores.sql.database import Database, Operation, Query, Row, Statement

P = ParamSpec("P")
T = TypeVar("T")

ROW_LIMIT = 64 * 1024
"""Maximum size in bytes of a blob that is stored in its row."""

CHUNK = 1024 * 1024

THREAD_FROM = 256 * 1024
"""Size in bytes from which hashing takes longer than the round trip to a thread."""

_TOUCH = Statement(
    "touch_blob",
    "UPDATE blobs SET touched = max(touched, ?) WHERE name = ? RETURNING place, data",
    "UPDATE blobs b SET touched = greatest(b.touched, given.at) "
    "FROM unnest($1::double precision[], $2::text[]) WITH ORDINALITY AS given (at, name, row) "
    "WHERE b.name = given.name RETURNING given.row, b.place, b.data",
    returns=True,
)
# The session is in it for its tenant: with encryption, the name of a blob is another for each tenant.
_TOUCH_REFERENCED = Statement(
    "touch_referenced_blob",
    "UPDATE blobs SET touched = max(touched, ?1) WHERE name = ?2 AND ?3 IS NOT NULL RETURNING place",
    "UPDATE blobs b SET touched = greatest(b.touched, given.at) "
    "FROM unnest($1::double precision[], $2::text[], $3::text[]) WITH ORDINALITY AS given (at, name, session, row) "
    "WHERE b.name = given.name AND given.session IS NOT NULL RETURNING given.row, b.place",
    returns=True,
)
# A second writer keeps what the first has written; only a file, or an unfinished blob, is replaced by a new one.
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


def reference_blobs(session: str, names: Iterable[str], now: float) -> Operation[None]:
    """Record that a session references blobs. It touches them first, so that a concurrent retention job keeps them."""
    if sorted_names := sorted(set(names)):
        for name in sorted_names:
            yield Query(_TOUCH_REFERENCED, (now, name, session))
        yield Query(_MENTION, [(name, session) for name in sorted_names], many=True)


class SqlBlobs:
    """The blobs of one database. `now` returns the time for a touch."""

    def __init__(self, database: Database, folder: Path | None, now: Callable[[], float]) -> None:
        self._database, self._now = database, now
        self.folder = BlobFolder(folder) if folder is not None else None

    async def put(self, data: bytes) -> str:
        """Store bytes under their hash."""
        name = await hash_blob(data)
        if not await self.touch(name, len(data)):
            await self.write(name, data)
        return name

    async def touch(self, name: str, size: int) -> bool:
        """Record that a blob is needed now, and return whether it is stored as a whole."""
        row = await self._database.write(lambda _: _fetch_row(_TOUCH, self._now(), name), name)
        return row is not None and await self._is_whole(row, size)

    async def get(self, name: str) -> bytes:
        """Return the bytes of a hash.

        Raises:
            UnknownMessage: there is no such blob.
            UnreadableLog: its bytes are damaged or missing.
        """
        check_blob_name(name)
        for _ in range(2):
            data = await self.read(name)
            if data is not None and await hash_blob(data) == name:
                return data
            # A file may be removed and put again between the two reads; a damaged one stays damaged.
        raise damaged_blob(name)

    async def _is_whole(self, row: Row, size: int) -> bool:
        place, data = row
        if place == "folder":
            return self.folder is not None and await asyncio.to_thread(self.folder.size, _file(data)) == size
        return place != "writing"

    async def write(self, name: str, data: bytes) -> None:
        """Store bytes under a name."""
        if len(data) <= ROW_LIMIT:
            await self._put(name, len(data), "row", data)
        elif self.folder is not None:
            file = await _to_disk(self.folder.write, name, data)
            await self._put(name, len(data), "folder", file.encode())
        else:
            # Chunk by chunk, so that no transaction is long; until the end, readers do not find the blob.
            await self._put(name, len(data), "writing", None)
            for n, at in enumerate(range(0, len(data), CHUNK)):
                await self._database.write(_write_rows(_CHUNK, (name, n, data[at : at + CHUNK])), name)
            await self._put(name, len(data), "chunks", None)

    async def _put(self, name: str, size: int, place: str, data: bytes | None) -> None:
        await self._database.write(_write_rows(_PUT, (name, size, self._now(), place, data)), name)

    async def read(self, name: str) -> bytes | None:
        """Return the bytes that are stored under a name; None if they are missing.

        Raises:
            UnknownMessage: there is no such blob.
        """
        row = await self._database.read(lambda: _fetch_row(_GET, name))
        if row is None or row[1] == "writing":
            raise UnknownMessage(f"there is no blob {name!r}")
        size, place, data = row
        if place == "row":
            return bytes(data)
        if place == "folder":
            return await _to_disk(self.folder.read, _file(data), size) if self.folder is not None else None
        pieces: list[bytes] = []
        for n in range(-(-size // CHUNK)):
            piece = await self._database.read(lambda n=n: _fetch_row(_GET_CHUNK, name, n))
            if piece is None:
                return None
            pieces.append(bytes(piece[0]))
        return b"".join(pieces)


async def hash_blob(data: bytes) -> str:
    """Return the name of a blob with these bytes."""
    if len(data) < THREAD_FROM:
        return hashlib.sha256(data).hexdigest()
    return (await asyncio.to_thread(hashlib.sha256, data)).hexdigest()


async def _to_disk(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return await asyncio.to_thread(work, *args, **kwargs)
    except OSError as error:
        raise StoreUnavailable(f"the folder of the blobs cannot be used: {error}") from error


def check_blob_name(name: str) -> None:
    """Refuse what is no name of a blob: some invalid names cannot be sent to a database.

    Raises:
        UnknownMessage: there is no such blob.
    """
    if not _is_name(name):
        raise UnknownMessage(f"there is no blob {name!r}")


def damaged_blob(name: str) -> UnreadableLog:
    """Return the error for a blob whose bytes do not match its name."""
    return UnreadableLog(f"blob {name} is damaged: the stored bytes do not match its name, or are missing")


_is_name = re.compile("[0-9a-f]{64}").fullmatch


def _file(data: bytes | None) -> str:
    return bytes(data or b"").decode()


def _fetch_row(statement: Statement, *parameters: object) -> Operation[Row | None]:
    rows = yield Query(statement, parameters)
    return rows[0] if rows else None


def _write_rows(statement: Statement, *rows: tuple[object, ...]) -> Callable[[bool], Operation[None]]:
    def operation(_: bool) -> Operation[None]:
        yield Query(statement, rows, many=True)

    return operation
