"""One open stream: bytes in at one end, an ASGI response at the other. It is bounded, and delays nobody.

Two tasks per connection: the server's own, which writes, and one that waits for the other side to hang up. None is made
for a message. A reader that does not keep up is told so and let go; it comes back with its cursor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from everturn.core.accounts import Principal
from everturn.server.sse import HEADERS, KEEP_ALIVE, Why
from everturn.telemetry import metrics

BYTES = 512 * 1024  # that may wait for a reader
MESSAGES = 1024
CATCH_UP = 64 * 1024  # bytes that are written at once to one who catches up
STALLED = 30.0  # seconds in which these must be taken


def _never() -> bool:
    return False


class SlowReader(Exception):
    """Whoever asked does not read what they are told; the connection is closed, and that is no news."""


class Ended(Exception):
    """The stream was ended while something was on its way into it."""


class Live(Response):
    """A stream, and the answer that carries it. `begin` writes what comes first, and joins it to what comes then."""

    def __init__(
        self,
        principal: Principal,
        begin: Callable[[Live], Awaitable[None]],
        ending: Callable[[Why], bytes],
        arrive: Callable[[Live], None],
        leave: Callable[[Live], None],
        headers: Mapping[str, str] | None = None,
        kind: str = "session",
    ) -> None:
        self._has_left = self._is_cut = False
        self.kind = kind  # session, turn, inbox or protocol: how it is counted
        super().__init__(headers=dict(headers or HEADERS))
        if "content-length" in self.headers:
            del self.headers["content-length"]
        self.principal, self.why = principal, ""
        self._begin: Callable[[Live], Awaitable[None]] | None = begin
        self._ending, self._arrive, self._leave = ending, arrive, leave
        self.on_leave: Callable[[], None] | None = None  # of whatever it has joined
        self._outbox: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._send: Send | None = None
        self.is_quiet = False  # nothing was written since somebody last looked
        # Whether it is about to be over by itself; a node that leaves lets such a one finish, for a while.
        self.finishing: Callable[[], bool] = _never

    def push(self, data: bytes) -> bool:
        """Give it something to write; False: it has not kept up, and is about to be closed."""
        if self.why:
            return False
        outbox = self._outbox
        if outbox and (self._size + len(data) > BYTES or len(outbox) >= MESSAGES):
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

    def end(self, why: Why) -> None:
        """Write what waits, say why it ends, and close."""
        if not self.why:
            self.why = why
            self._outbox.append(self._ending(why))
            self._wake()

    def cut(self) -> None:
        """Close it although the other side takes nothing."""
        self.why, self._is_cut = self.why or "slow", True
        if self._task is not None:
            self._task.cancel()

    async def write(self, data: bytes) -> None:
        """Write something now, as fast as the other side takes it. Only for `begin`.

        Raises:
            Ended: it was ended meanwhile.
        """
        if self.why or self._send is None:
            raise Ended
        metrics.count("deliveries_total", self.kind)
        self.is_quiet = False
        try:
            async with asyncio.timeout(STALLED):
                await self._send({"type": "http.response.body", "body": data, "more_body": True})
        except TimeoutError:  # what it has read of the log is held until then
            self._outbox.clear()
            self.end("slow")
        if self.why:
            raise Ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Be the response."""
        self._send, self._task = send, asyncio.current_task()
        watcher: asyncio.Task[None] | None = None
        self._arrive(self)
        try:
            if scope["method"] == "HEAD":
                self.why = "over"
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            watcher = asyncio.get_running_loop().create_task(self._watch(receive))
            try:
                begin, self._begin = self._begin, None  # what it holds is not needed for as long as the stream lasts
                if begin is not None and not self.why:
                    await begin(self)
                del begin
            except Ended:
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
            elif self.why:
                return
            else:
                self._waiter = loop.create_future()
                await self._waiter

    async def _watch(self, receive: Receive) -> None:
        """Wait for the other side to hang up. That ends the stream, and nothing else."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self.why = self.why or "gone"
        self._outbox.clear()
        self._wake()

    def _wake(self) -> None:
        if (waiter := self._waiter) is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def leave(self) -> None:
        """Give back what it has, once."""
        if not self._has_left:
            self._has_left = True
            self.why = self.why or "gone"
            if self.on_leave is not None:
                self.on_leave()
            self._leave(self)

    def __del__(self) -> None:
        # An answer that nobody called: its request had gone by then.
        if not self._has_left:
            self.leave()
