"""Event stream response: the ASGI response of one stream, with a bounded outbox, so that a slow client delays no other.

Each connection has two tasks: the server's own, which writes, and one that waits for the client to disconnect. No task is
created per event. A client that does not keep up is disconnected with the reason `slow`; it resumes with its cursor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from everturn.core.tenants.accounts import Principal
from everturn.server.streams.sse import HEADERS, KEEP_ALIVE, EndReason
from everturn.telemetry import metrics

OUTBOX_BYTES = 512 * 1024  # bytes that may wait for a client
OUTBOX_MESSAGES = 1024
CATCH_UP_CHUNK = 64 * 1024  # bytes that are written at once to a client that catches up
WRITE_TIMEOUT = 30.0  # seconds in which the client must read these


def _never() -> bool:
    return False


class SlowReader(Exception):
    """The client does not read its response; the connection is closed without a log entry."""


class StreamEnded(Exception):
    """The stream was ended during a write."""


class EventStreamResponse(Response):
    """One stream as a response. `begin` writes the first events and attaches the stream to its source."""

    def __init__(
        self,
        principal: Principal,
        begin: Callable[[EventStreamResponse], Awaitable[None]],
        ending: Callable[[EndReason], bytes],
        arrive: Callable[[EventStreamResponse], None],
        leave: Callable[[EventStreamResponse], None],
        headers: Mapping[str, str] | None = None,
        kind: str = "session",
        session: str = "",
    ) -> None:
        self._has_left = self._is_cut = False
        self.session = session  # that it shows; "": none, or those of an inbox
        self.kind = kind  # session, turn, inbox or protocol: the label of its metrics
        super().__init__(headers=dict(headers or HEADERS))
        if "content-length" in self.headers:
            del self.headers["content-length"]
        self.principal, self.end_reason = principal, ""
        self._begin: Callable[[EventStreamResponse], Awaitable[None]] | None = begin
        self._ending, self._arrive, self._leave = ending, arrive, leave
        self.on_leave: Callable[[], None] | None = None  # detaches it from its source
        self._outbox: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._send: Send | None = None
        self.is_quiet = False  # nothing was written since the last keep-alive check
        # Whether it is about to end by itself; a node that shuts down lets such a stream finish for a while.
        self.finishing: Callable[[], bool] = _never

    def push(self, data: bytes) -> bool:
        """Queue bytes to be sent; False if the client has not kept up and is about to be disconnected."""
        if self.end_reason:
            return False
        outbox = self._outbox
        if outbox and (self._size + len(data) > OUTBOX_BYTES or len(outbox) >= OUTBOX_MESSAGES):
            outbox.clear()
            self.end("slow")
            return False
        outbox.append(data)
        self._size += len(data)
        if data is not KEEP_ALIVE:
            metrics.count("deliveries_total", self.kind)
        self.is_quiet = False
        self._wake()
        return True

    def end(self, why: EndReason) -> None:
        """Send what is queued and an event with the reason, then close."""
        if not self.end_reason:
            self.end_reason = why
            self._outbox.append(self._ending(why))
            self._wake()

    def cut(self) -> None:
        """Close the stream although the client reads nothing."""
        self.end_reason, self._is_cut = self.end_reason or "slow", True
        if self._task is not None:
            self._task.cancel()

    async def write(self, data: bytes) -> None:
        """Send bytes now, as fast as the client reads. Only for `begin`.

        Raises:
            StreamEnded: the stream was ended meanwhile.
        """
        if self.end_reason or self._send is None:
            raise StreamEnded
        metrics.count("deliveries_total", self.kind)
        self.is_quiet = False
        try:
            async with asyncio.timeout(WRITE_TIMEOUT):
                await self._send({"type": "http.response.body", "body": data, "more_body": True})
        except TimeoutError:  # the log entries it has read are held in memory until then
            self._outbox.clear()
            self.end("slow")
        if self.end_reason:
            raise StreamEnded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the stream (ASGI)."""
        self._send, self._task = send, asyncio.current_task()
        watcher: asyncio.Task[None] | None = None
        self._arrive(self)
        try:
            if scope["method"] == "HEAD":
                self.end_reason = "over"
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            watcher = asyncio.get_running_loop().create_task(self._watch(receive))
            try:
                begin, self._begin = self._begin, None  # what it holds is not needed for as long as the stream lasts
                if begin is not None and not self.end_reason:
                    await begin(self)
                del begin
            except StreamEnded:
                pass
            await self._pump(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except asyncio.CancelledError:
            if not self._is_cut:
                raise
            if self._task is not None:
                self._task.uncancel()
            raise SlowReader from None
        finally:
            if watcher is not None:
                watcher.cancel()
            self.leave()

    async def _pump(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if outbox := self._outbox:
                data = outbox[0] if len(outbox) == 1 else b"".join(outbox)
                self._outbox, self._size = [], 0
                await send({"type": "http.response.body", "body": data, "more_body": True})
            elif self.end_reason:
                return
            else:
                self._waiter = loop.create_future()
                await self._waiter

    async def _watch(self, receive: Receive) -> None:
        """Wait for the client to disconnect. That ends the stream, and nothing else."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self.end_reason = self.end_reason or "gone"
        self._outbox.clear()
        self._wake()

    def _wake(self) -> None:
        if (waiter := self._waiter) is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def leave(self) -> None:
        """Release the stream's resources, once."""
        if not self._has_left:
            self._has_left = True
            self.end_reason = self.end_reason or "gone"
            if self.on_leave is not None:
                self.on_leave()
            self._leave(self)

    def __del__(self) -> None:
        # A response that was never served: its request was gone by then.
        if not self._has_left:
            self.leave()
