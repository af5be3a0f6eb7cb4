"""A request → the bytes of its answer, as they arrive. What the bytes mean is for others to know.

live.py      over the network, on aiohttp, imported when the first request goes out
replay.py    from bytes kept in memory or in a file, split as one likes
limits.py    how much is taken in
sse.py       bytes → the data of server-sent events, bounded
ndjson.py    bytes → lines of JSON, bounded
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from everturn.errors import ModelError
from everturn.transport.limits import Limits


class Post(Struct, frozen=True):
    """A request, ready to go out."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class Reply(Protocol):
    """An answer whose head has arrived and whose body has not."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names are found in any case."""
        ...

    def read(self) -> AsyncIterator[bytes]:
        """The body, in the pieces in which it comes.

        Raises:
            ModelError: the connection broke.
        """
        ...

    async def finish(self) -> None:
        """The answer is complete: read what is left if it comes at once, so that the connection can be used again."""
        ...


class Transport(Protocol):
    """Sends a request. Leaving the context closes the socket of an answer that was not read to its end."""

    def post(self, post: Post) -> AbstractAsyncContextManager[Reply]:
        """Send it.

        Raises:
            ModelError: nobody answers there; kind `network`, worth another try.
        """
        ...


class Reader(Protocol):
    """Cuts the bytes of an answer into its events. Once `error` is set nothing more is read; what came before is good."""

    error: ModelError | None

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes in, and give the events they complete."""
        ...

    def end(self) -> list[bytes]:
        """There is nothing more: a last event that nobody ended."""
        ...


def place(url: str) -> str:
    """Where a URL leads, without the password it may hold."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


__all__ = ["Limits", "Post", "Reader", "Reply", "Transport", "place"]
