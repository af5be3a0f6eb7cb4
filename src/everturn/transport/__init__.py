"""HTTP transport to model providers: sends a request and returns the response as bytes arrive. It does not interpret them.

- `limits`: limits on the size of lines, events and streams
- `live`: the network, on aiohttp, which is imported with the first request
- `replay`: recorded responses, from memory or a file
- `sse`: decodes server-sent events, with limits
- `ndjson`: decodes newline-delimited JSON, with limits
- `event_stream`: decodes the binary event streams of AWS, with limits
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from everturn.errors import ModelError
from everturn.transport.limits import StreamLimits


class HttpRequest(Struct, frozen=True):
    """A request."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    method: str = "POST"


class HttpResponse(Protocol):
    """A response whose headers have arrived, and whose body has not."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names are case-insensitive."""
        ...

    def read(self) -> AsyncIterator[bytes]:
        """The body, in chunks as they arrive.

        Raises:
            ModelError: the connection broke.
        """
        ...

    async def finish(self) -> None:
        """The response is complete: read the rest if it arrives at once, so that the connection can be reused."""
        ...


class Transport(Protocol):
    """Sends a request. Leaving the context closes the socket of a response that was not read to its end."""

    def post(self, post: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        """Send a request.

        Raises:
            ModelError: the server does not answer; kind `network`, retryable.
        """
        ...


class StreamDecoder(Protocol):
    """Splits the bytes of a response into events. Once `error` is set nothing more is read; earlier events are valid."""

    error: ModelError | None

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes. Returns the events they complete."""
        ...

    def end(self) -> list[bytes]:
        """The end of the stream. Returns a last event without a terminator."""
        ...


def url_origin(url: str) -> str:
    """The scheme, host and port of a URL, without a password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


__all__ = ["HttpRequest", "HttpResponse", "StreamDecoder", "StreamLimits", "Transport", "url_origin"]
