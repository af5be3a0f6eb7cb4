"""The lines of a process ⇄ the messages of the `mcp` library, without what need not trouble it."""

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

from everturn.mcp.child import Child
from everturn.mcp.events import Events, Sending
from everturn.mcp.lines import SMALL, Incoming, read_message

CHANGED: Final = "notifications/tools/list_changed"
PROGRESS: Final = "notifications/progress"
CANCELLED: Final = "notifications/cancelled"
HEARD: Final = (CHANGED, CANCELLED, "notifications/subscriptions/acknowledged")
OFTEN: Final = 0.05  # seconds between two pieces of progress of one call
TOKENS: Final = 1000  # calls whose progress is watched
AT_ONCE: Final = 64  # questions of a server that are being answered; each of them is a task


class Asked:
    """The questions of a server to which it has not read an answer yet."""

    def __init__(self) -> None:
        self._ids, self._fewer = set[int | str](), asyncio.Event()

    def add(self, id: int | str) -> bool:
        """Note one; False if it is asked already."""
        is_new = id not in self._ids
        self._ids.add(id)
        return is_new

    def done(self, id: Any) -> None:
        """It was answered, or is wanted no more."""
        self._ids.discard(id)
        self._fewer.set()

    async def fewer(self, child: Child) -> None:
        """Wait while there are too many, for as long as it lives."""
        while len(self._ids) >= AT_ONCE and not child.is_over:
            self._fewer.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.25):
                    await self._fewer.wait()


class Reading:
    """The messages of a process, as the library reads them."""

    def __init__(self, child: Child, events: Events, asked: Asked) -> None:
        self._child, self._events, self._asked = child, events, asked
        self._last: dict[object, float] = {}  # when a call told of its progress

    async def receive(self) -> SessionMessage:
        while True:
            await asyncio.sleep(0)  # a flood of lines is no reason to let nobody else run
            await self._asked.fewer(self._child)
            try:
                line = await self._child.receive()
            except EOFError:
                raise anyio.EndOfStream from None
            if isinstance(line, Incoming):
                incoming = line
            elif len(line) <= SMALL:
                incoming = read_message(line)
            else:  # in pieces of some 40 ms, between which others run
                incoming = await asyncio.to_thread(read_message, line)
            if incoming is not None and not self._is_noise(incoming):
                return SessionMessage(_message(incoming))

    def _is_noise(self, incoming: Incoming) -> bool:
        """Whether the library need not see it. Each notification that it sees is a task, and a server may send many."""
        params = incoming.params or {}
        if incoming.method is None:
            return False
        if incoming.id is not None:
            return not self._asked.add(incoming.id)
        if incoming.method == CANCELLED:
            self._asked.done(params.get("requestId"))
        if incoming.method == CHANGED and not params.get("_meta"):
            self._events.changed()
            return True
        if incoming.method == PROGRESS:
            token, now = str(params.get("progressToken"))[:100], time.monotonic()
            if len(self._last) > TOKENS:
                self._last.clear()
            last, self._last[token] = self._last.get(token, 0.0), now
            return now - last < OFTEN
        return incoming.method not in HEARD

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """The process is ended by whoever started it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def _message(incoming: Incoming) -> types.JSONRPCMessage:
    """A message as the library has it; made without another look, for ours was the closer one."""
    given: dict[str, Any] = {"jsonrpc": "2.0"}
    if incoming.params is not None:
        given["params"] = incoming.params
    if incoming.method is not None:
        given["method"] = incoming.method
        if incoming.id is None:
            return types.JSONRPCNotification.model_construct(**given)
        return types.JSONRPCRequest.model_construct(id=incoming.id, **given)
    if incoming.error is not None:
        error = types.ErrorData.model_construct(data=None, **incoming.error)
        return types.JSONRPCError.model_construct(id=incoming.id, error=error, **given)
    return types.JSONRPCResponse.model_construct(id=incoming.id, result=incoming.result, **given)


class Writing:
    """Messages to a process. Runs in the task that calls, which is how it knows whose message it is."""

    def __init__(self, child: Child, sending: ContextVar[Sending | None], asked: Asked) -> None:
        self._child, self._sending, self._asked = child, sending, asked

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
            self._asked.done(getattr(item.message, "id", None))

    async def aclose(self) -> None:
        """The process is ended by whoever started it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
