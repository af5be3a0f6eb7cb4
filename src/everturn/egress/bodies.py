"""Bytes from the wire → the body of an answer, unpacked, and never more of it than agreed."""

from __future__ import annotations

import zlib

from everturn.errors import FetchFailed

_EITHER = 47  # zlib's number for: gzip or zlib, whichever its head says


class Body:
    """Takes the pieces of a body and holds it, as long as neither they nor it are more than `limit` bytes."""

    def __init__(self, encoding: str, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._made = bytearray()
        named = encoding.strip().lower()
        if named not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise FetchFailed(f"the server packed it as {named[:40]!a}, which was not asked for", "protocol")
        self._unpack = zlib.decompressobj(_EITHER) if named not in ("", "identity") else None

    @property
    def is_whole(self) -> bool:
        """Whether nothing more can come: what lies behind the end of a packed body is not looked at."""
        return self._unpack is not None and self._unpack.eof

    def take(self, piece: bytes) -> None:
        """Take what one read brought."""
        self._taken += len(piece)
        if self._taken > self._limit:
            raise self._too_much("")
        if self._unpack is None:
            self._made += piece
            return
        try:
            self._made += self._unpack.decompress(piece, self._limit - len(self._made) + 1)
        except zlib.error:
            raise FetchFailed("what the server sent cannot be unpacked", "protocol") from None
        if len(self._made) > self._limit:
            raise self._too_much(" when unpacked")

    def end(self) -> bytes:
        """The whole of it."""
        if self._unpack is not None and self._taken and not self._unpack.eof:
            raise FetchFailed("the answer broke off before its end", "protocol")
        return bytes(self._made)

    def _too_much(self, when: str) -> FetchFailed:
        return FetchFailed(
            f"the answer is more than {self._limit:,} bytes{when}, which is the most that is read", "size"
        )
