"""Bounded response body: decompresses a body, and never holds more of it than a limit."""

from __future__ import annotations

import zlib

from everturn.errors import FetchFailed

_GZIP_OR_ZLIB = 47  # zlib: detect gzip or zlib by the header


class BoundedBody:
    """Collects the pieces of a body; neither the compressed nor the decompressed size may exceed `limit` bytes."""

    def __init__(self, encoding: str, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._made = bytearray()
        named = encoding.strip().lower()
        if named not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise FetchFailed(f"the server compressed it as {named[:40]!a}, which was not requested", "protocol")
        self._unpack = zlib.decompressobj(_GZIP_OR_ZLIB) if named not in ("", "identity") else None

    @property
    def is_whole(self) -> bool:
        """Whether a compressed body is complete: data after its end is ignored."""
        return self._unpack is not None and self._unpack.eof

    def take(self, piece: bytes) -> None:
        """Add a piece."""
        self._taken += len(piece)
        if self._taken > self._limit:
            raise self._too_much("")
        if self._unpack is None:
            self._made += piece
            return
        try:
            self._made += self._unpack.decompress(piece, self._limit - len(self._made) + 1)
        except zlib.error:
            raise FetchFailed("the response of the server cannot be decompressed", "protocol") from None
        if len(self._made) > self._limit:
            raise self._too_much(" when decompressed")

    def end(self) -> bytes:
        """Return the whole body."""
        if self._unpack is not None and self._taken and not self._unpack.eof:
            raise FetchFailed("the response was cut off", "protocol")
        return bytes(self._made)

    def _too_much(self, when: str) -> FetchFailed:
        return FetchFailed(
            f"the answer is more than {self._limit:,} bytes{when}, which is the most that is read", "size"
        )
