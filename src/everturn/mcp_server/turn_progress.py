"""Turn progress: follows a turn until it ends or waits at a gate, and reports its text as progress."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

from everturn.chat.session import Chat
from everturn.chat.turn import Turn
from everturn.core.deltas import CallProgress, TextDelta, TurnItem
from everturn.core.events import CallFinished, GateOpened, GateResolved
from everturn.core.gates import Gate

PACE = 0.2  # seconds between two progress messages
PIECE = 2000  # characters of a progress message

Tell = Callable[[int, str], Awaitable[None]]


class TurnProgress:
    """Reads a turn while its gates are being answered."""

    def __init__(self, chat: Chat, turn: Turn, tell: Tell, cursor: str = "") -> None:
        self._chat, self._tell = chat, tell
        self._shown = turn.events(cursor or None)
        self._wakeup = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None
        self._pending_text, self._reported_at, self._count = "", 0.0, 0
        self._open: dict[str, asyncio.Event] = {}  # gate → set when it is closed
        self._seen: set[str] = set()

    @property
    def cursor(self) -> str:
        """Position up to which the turn was read."""
        return str(self._shown.cursor)

    async def __aenter__(self) -> TurnProgress:
        """Start reading."""
        self._chat.app.listeners.append(self._on_snapshot)
        self._wakeup.set()
        self._reading = asyncio.get_running_loop().create_task(self._read())
        return self

    async def __aexit__(self, *error: object) -> None:
        """Stop reading. The turn continues."""
        self._chat.app.listeners.remove(self._on_snapshot)
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading

    async def next_gates(self) -> list[Gate]:
        """Return the next gates that were not returned before, of any turn of the session or its sub-agents; none: the
        turn has ended.

        Gates of other turns are included because an open one may block this turn.
        """
        assert self._reading is not None
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            if self._reading.done():
                await self._reading
                return []
            new_gates = [gate for gate in await self._chat.gates() if gate.id not in self._seen]
            if new_gates:
                self._seen.update(gate.id for gate in new_gates)
                return new_gates

    def skip(self, gate: str) -> None:
        """Never return this gate: it was answered."""
        self._seen.add(gate)

    async def wait_unless_closed(self, gate: Gate, asking: Awaitable[Any]) -> Any:
        """Wait for an answer while the gate is open; None if it was closed meanwhile."""
        assert self._reading is not None
        closed = self._open[gate.id] = asyncio.Event()
        answer = asyncio.ensure_future(asking)
        closing = asyncio.ensure_future(closed.wait())
        try:
            await asyncio.wait({answer, closing, self._reading}, return_when=asyncio.FIRST_COMPLETED)
            return await answer if answer.done() else None
        finally:
            del self._open[gate.id]
            for task in (answer, closing):
                task.cancel()
            await asyncio.gather(answer, closing, return_exceptions=True)

    def _on_snapshot(self, snapshot: Any) -> None:
        if snapshot.gates:
            self._wakeup.set()

    async def _read(self) -> None:
        try:
            async with aclosing(self._shown):
                async for shown in self._shown:
                    await self._handle(shown)
        finally:
            self._wakeup.set()

    async def _handle(self, shown: TurnItem) -> None:
        match shown:
            case TextDelta(text=text) | CallProgress(text=text):
                await self._report(text)
            case GateOpened():
                self._wakeup.set()
            case GateResolved(gate=gate) if gate in self._open:
                self._open[gate].set()
            case CallFinished() if self._open:
                open_gates = {gate.id for gate in await self._chat.gates()}
                for gate, closed in self._open.items():
                    if gate not in open_gates:
                        closed.set()
            case _:
                pass

    async def _report(self, text: str) -> None:
        self._pending_text += text
        now = time.monotonic()
        if now - self._reported_at >= PACE:
            message, self._pending_text, self._reported_at, self._count = (
                self._pending_text[-PIECE:],
                "",
                now,
                self._count + 1,
            )
            await self._tell(self._count, message)
