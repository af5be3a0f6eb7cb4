"""HTTP/1.1 connections of the provider: reads requests from a socket, and writes answers with their timing. Knows no
format.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Protocol, cast

from msgspec import Struct

from everturn.testing.provider.answers import Answer, make_answer

_MAX_HEAD = 65_536


class Request(Struct):
    """A complete request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    query: str = ""


class ExchangeObserver(Protocol):
    """A request that is being answered, for the server's records."""

    def ended(self, *, is_early: bool) -> None:
        """The answer is complete, or the client went away before it was."""
        ...


class RequestHandler(Protocol):
    """The handler of requests."""

    def connected(self, connection: Connection) -> None: ...
    def disconnected(self, connection: Connection) -> None: ...
    def answer(self, request: Request) -> tuple[Answer, ExchangeObserver | None]: ...


def read_head(head: bytes) -> Request:
    """The request line and the headers, with names in lower case.

    Raises:
        ValueError: this is not HTTP.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    path, _, query = target.partition("?")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return Request(method, path, headers, b"", query)


class Connection(asyncio.Protocol):
    """One client. Requests that arrive during an answer are queued."""

    def __init__(self, desk: RequestHandler, loop: asyncio.AbstractEventLoop) -> None:
        self._desk, self._loop = desk, loop
        self._buffer = bytearray()
        self._head: Request | None = None  # read, while its body is still arriving
        self._length = 0
        self._moves: Iterator[bytes | float] | None = None  # the current answer
        self._exchange: ExchangeObserver | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._is_full = False
        self._is_flushing = False
        self._is_last = False

    # asyncio callbacks ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self.transport = cast("asyncio.Transport", transport)
        # With a limit of zero, `resume_writing` is called when the last byte has been sent.
        self.transport.set_write_buffer_limits(high=0)
        self._desk.connected(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected, or was disconnected."""
        if self._timer is not None:
            self._timer.cancel()
        if self._exchange is not None:
            exchange, self._exchange = self._exchange, None
            exchange.ended(is_early=True)
        self._desk.disconnected(self)

    def pause_writing(self) -> None:
        """The client reads more slowly than we write."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Everything that was written has been sent."""
        self._is_full = False
        if self._is_flushing:
            self._done()

    def data_received(self, data: bytes) -> None:
        """Some bytes, which may be less than a request or more than one."""
        self._buffer += data
        if self._moves is None:
            self._take()

    # --------------------------------------------------------------------------------------------- requests

    def _take(self) -> None:
        """Answer the requests that have arrived, until an answer takes time."""
        while self._moves is None and not self.transport.is_closing():
            if self._head is None and not self._read_head():
                return
            head = self._head
            if head is None or len(self._buffer) < self._length:
                return
            head.body = bytes(self._buffer[: self._length])
            del self._buffer[: self._length]
            self._head = None
            self._is_last = head.headers.get("connection", "").lower() == "close"
            answer, self._exchange = self._desk.answer(head)
            self._begin(answer)

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MAX_HEAD:
                self._reject(431)
            return False
        try:
            self._head = read_head(bytes(self._buffer[:end]))
            self._length = int(self._head.headers.get("content-length", "0"))
        except ValueError:
            self._reject(400)
            return False
        del self._buffer[: end + 4]
        if "transfer-encoding" in self._head.headers:
            self._reject(411)
            return False
        if self._length > len(self._buffer) and self._head.headers.get("expect", "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return True

    def _reject(self, status: int) -> None:
        self.transport.write(cast("bytes", make_answer(status, b"", {"connection": "close"}).moves[0]))
        self.transport.close()

    # ---------------------------------------------------------------------------------------------- answers

    def _begin(self, answer: Answer) -> None:
        self._moves, self._end = iter(answer.moves), answer.end
        self._due = self._loop.time()
        self._move()

    def _move(self) -> None:
        """Write until there is something to wait for. Times are absolute, so a late timer does not slow a stream."""
        for move in self._moves or ():
            if isinstance(move, bytes):
                self.transport.write(move)
            else:
                self._due += move
                self._timer = self._loop.call_at(self._due, self._resume)
                return
        if self._end == "hang":
            return
        if self._is_full:
            self._is_flushing = True
        else:
            self._done()

    def _resume(self) -> None:
        self._timer = None
        self._move()

    def _done(self) -> None:
        self._is_flushing = False
        self._moves = None
        if self._exchange is not None:
            exchange, self._exchange = self._exchange, None
            exchange.ended(is_early=False)
        if self._end == "close" or self._is_last:
            self.transport.close()
        elif self._buffer:
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        if self._moves is None:
            self._take()
