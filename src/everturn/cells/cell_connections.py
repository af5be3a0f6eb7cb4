"""Requests to cells over connections that stay open: aiohttp's connector and parser, without its client.

`ClientSession.request` does for each request what a client of anything needs: cookies, redirects, timers, a task that sends. The
router needs none of it, and it was a fourth of its processor time (decision 0284). Connections, TLS, name lookup, the parser
(llhttp) and its errors are aiohttp's here, too; what is written is a request line, headers and a small body. A large
body is streamed by a `ClientSession`.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aiohttp import BaseConnector, ClientPayloadError, ClientRequest, ClientTimeout, ServerDisconnectedError
from aiohttp.client_exceptions import ClientOSError
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

_SAFE_TO_REPEAT: Final = frozenset(("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"))  # RFC 9110, 9.2.2


class CellResponse:
    """The head of an answer, and its body as it comes: the part of `ClientResponse` that the router uses."""

    __slots__ = ("_body", "_connection", "content", "headers", "reason", "status")

    def __init__(self, connection: Any, message: Any, content: Any) -> None:
        self._connection, self._body = connection, None
        self.status: int = message.code
        self.reason: str = message.reason
        self.headers: Any = message.headers
        self.content: Any = content

    @property
    def content_type(self) -> str:
        """The media type, without its parameters."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    async def read(self) -> bytes:
        """The whole body."""
        if self._body is None:
            self._body = await self.content.read()
            self.release()
        return self._body

    def release(self) -> None:
        """Give the connection back; one whose answer was not read to its end is closed."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.release()

    def close(self) -> None:
        """Close the connection: who reads the body gets an error."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if not self.content.is_eof():
            self.content.set_exception(ClientPayloadError("the connection was closed"))


class CellConnections:
    """Connections to one cell."""

    def __init__(self, connector: BaseConnector, address: str, timeout: ClientTimeout) -> None:
        url = URL(address)
        self._connector, self._timeout = connector, timeout
        self._prefix = url.raw_path.rstrip("/")
        # The connector takes from a request where to connect to, and nothing else.
        self._target = ClientRequest("GET", url, loop=asyncio.get_running_loop())

    async def request(self, method: str, path: str, headers: Any, body: bytes) -> CellResponse:
        """Send a request with its whole body; returns when the head of the answer is here.

        Raises:
            ClientError: the cell does not answer, or not in HTTP.
            OSError: it cannot be reached.
        """
        data = _request_bytes(method, self._prefix + path, headers, body)
        is_repeated = False
        while True:
            connection = await self._connector.connect(self._target, [], self._timeout)
            try:
                return await self._exchange(connection, method, data)
            except (ClientOSError, ServerDisconnectedError):
                connection.close()
                # The cell has closed an idle connection while this request was under way (RFC 9112, 9.3.1).
                if is_repeated or method not in _SAFE_TO_REPEAT:
                    raise
                is_repeated = True
            except HttpProcessingError as error:
                connection.close()
                raise ClientPayloadError(f"the answer of the cell is not HTTP: {error.message}") from error
            except BaseException:
                connection.close()
                raise

    async def _exchange(self, connection: Any, method: str, data: bytes) -> CellResponse:
        protocol, transport = connection.protocol, connection.transport
        if transport is None:
            raise ServerDisconnectedError
        protocol.set_response_params(skip_payload=method == "HEAD", read_until_eof=True, auto_decompress=False)
        transport.write(data)
        while True:
            message, content = await protocol.read()
            if message.code >= 200:
                return CellResponse(connection, message, content)


def _request_bytes(method: str, path: str, headers: Any, body: bytes) -> bytes:
    """The request as it is sent. Its parts come from aiohttp's parser, so none has a line break; that is checked again."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if body or method not in ("GET", "HEAD", "OPTIONS", "TRACE", "DELETE"):
        lines.append(f"Content-Length: {len(body)}")
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1 or " " in path:
        raise ValueError("a request line or a header has a line break or a space in it")
    return text.encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body
