"""Stdio bridge: the lines of a server process as the message streams of the `mcp` library, without messages it need not
see."""

from __future__ import annotations

import asyncio
import contextlib
import time
from contextvars import ContextVar
from typing import Any, Final, Self

import anyio
import mcp_types as types
import msgspec
from mcp.shared.message import SessionMessage

from everturn.mcp.events import SentCall, SessionEvents
from everturn.mcp.jsonrpc import SMALL, IncomingMessage, read_message
from everturn.mcp.subprocess import ServerProcess
from everturn.mcp.tasks import STATUS

CHANGED: Final = "notifications/tools/list_changed"
PROGRESS: Final = "notifications/progress"
CANCELLED: Final = "notifications/cancelled"
FORWARDED_NOTIFICATIONS: Final = (CHANGED, CANCELLED, STATUS, "notifications/subscriptions/acknowledged")
PROGRESS_INTERVAL: Final = 0.05  # seconds between two progress messages of one call
TOKENS: Final = 1000  # progress tokens that are remembered
MAX_OPEN_REQUESTS: Final = 64  # requests of a server that are being answered; each of them is a task


class OpenServerRequests:
    """Requests of a server whose responses it has not read yet."""

    def __init__(self) -> None:
        self._ids, self._fewer = set[int | str](), asyncio.Event()

    def add(self, id: int | str) -> bool:
        """Add a request; False if its id is already open."""
        is_new = id not in self._ids
        self._ids.add(id)
        return is_new

    def done(self, id: Any) -> None:
        """Remove a request that was answered or cancelled."""
        self._ids.discard(id)
        self._fewer.set()

    async def wait_for_capacity(self, child: ServerProcess) -> None:
        """Wait while too many requests are open and the process lives."""
        while len(self._ids) >= MAX_OPEN_REQUESTS and not child.is_over:
            self._fewer.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.25):
                    await self._fewer.wait()


class StdioReadStream:
    """Messages from a process, as the library reads them."""

    def __init__(self, child: ServerProcess, events: SessionEvents, open_requests: OpenServerRequests) -> None:
        self._child, self._events, self._open_requests = child, events, open_requests
        self._last: dict[object, float] = {}  # progress token → time of its last message

    async def receive(self) -> SessionMessage:
        while True:
            await asyncio.sleep(0)  # other tasks must run, even during a flood of lines
            await self._open_requests.wait_for_capacity(self._child)
            try:
                line = await self._child.receive()
            except EOFError:
                raise anyio.EndOfStream from None
            if isinstance(line, IncomingMessage):
                incoming = line
            elif len(line) <= SMALL:
                incoming = read_message(line)
            else:  # takes about 40 ms, so it runs in a thread
                incoming = await asyncio.to_thread(read_message, line)
            if incoming is not None and not self._is_noise(incoming):
                return SessionMessage(_message(incoming))

    def _is_noise(self, incoming: IncomingMessage) -> bool:
        """Whether the library need not see a message.

        Each notification it sees is a task, and a server may send many.
        """
        params = incoming.params or {}
        if incoming.method is None:
            return False
        if incoming.id is not None:
            return not self._open_requests.add(incoming.id)
        if incoming.method == CANCELLED:
            self._open_requests.done(params.get("requestId"))
        if incoming.method == CHANGED and not params.get("_meta"):
            self._events.tools_changed()
            return True
        if incoming.method == PROGRESS:
            token, now = str(params.get("progressToken"))[:100], time.monotonic()
            if len(self._last) > TOKENS:
                self._last.clear()
            last, self._last[token] = self._last.get(token, 0.0), now
            return now - last < PROGRESS_INTERVAL
        return incoming.method not in FORWARDED_NOTIFICATIONS

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Do nothing: the owner of the process ends it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def _message(incoming: IncomingMessage) -> types.JSONRPCMessage:
    """Convert a message to the library's type, without validating it again."""
    fields: dict[str, Any] = {"jsonrpc": "2.0"}
    if incoming.params is not None:
        fields["params"] = incoming.params
    if incoming.method is not None:
        fields["method"] = incoming.method
        if incoming.id is None:
            return types.JSONRPCNotification.model_construct(**fields)
        return types.JSONRPCRequest.model_construct(id=incoming.id, **fields)
    if incoming.error is not None:
        error = types.ErrorData.model_construct(data=None, **incoming.error)
        return types.JSONRPCError.model_construct(id=incoming.id, error=error, **fields)
    return types.JSONRPCResponse.model_construct(id=incoming.id, result=incoming.result, **fields)


class StdioWriteStream:
    """Messages to a process.

    It runs in the task of the caller, by whose context it knows the call a message belongs to.
    """

    def __init__(
        self, child: ServerProcess, sending: ContextVar[SentCall | None], open_requests: OpenServerRequests
    ) -> None:
        self._child, self._sending, self._open_requests = child, sending, open_requests

    async def send(self, item: SessionMessage, /) -> None:
        line = msgspec.json.encode(item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)) + b"\n"
        try:
            self._child.write(line)
        except BrokenPipeError:
            raise anyio.BrokenResourceError from None
        if (sending := self._sending.get()) is not None and getattr(item.message, "method", "") == "tools/call":
            sending.is_sent = True
        await self._child.drain()
        if not hasattr(item.message, "method"):
            self._open_requests.done(getattr(item.message, "id", None))

    async def aclose(self) -> None:
        """Do nothing: the owner of the process ends it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
