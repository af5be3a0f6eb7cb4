"""A turn → its end, or the gates it waits at; what it says on the way is told as progress."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

from everturn.chat.session import Chat
from everturn.chat.turn import Turn
from everturn.core.asking import Gate
from everturn.core.deltas import CallProgress, Shown, TextDelta
from everturn.core.events import CallSettled, GateAnswered, GateOpened

PACE = 0.2  # seconds between two pieces of progress
PIECE = 2000  # characters of one

Tell = Callable[[int, str], Awaitable[None]]


class Watch:
    """Reads a turn beside whoever answers its gates."""

    def __init__(self, chat: Chat, turn: Turn, tell: Tell, cursor: str = "") -> None:
        self._chat, self._tell = chat, tell
        self._shown = turn.events(cursor or None)
        self._rings = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None
        self._said, self._told, self._count = "", 0.0, 0
        self._open: dict[str, asyncio.Event] = {}  # gate → set when nobody has to answer it any more
        self._seen: set[str] = set()

    @property
    def cursor(self) -> str:
        """Where it has read to."""
        return str(self._shown.cursor)

    async def __aenter__(self) -> Watch:
        """Begin to read."""
        self._chat.runtime.listeners.append(self._ring)
        self._rings.set()
        self._reading = asyncio.get_running_loop().create_task(self._read())
        return self

    async def __aexit__(self, *error: object) -> None:
        """Read no more. The turn does not mind."""
        self._chat.runtime.listeners.remove(self._ring)
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading

    async def gates(self) -> list[Gate]:
        """The next gates that nobody was given yet, of any turn of the session or below; none: this one is over.

        One that waits may stand in the way of this turn.
        """
        assert self._reading is not None
        while True:
            await self._rings.wait()
            self._rings.clear()
            if self._reading.done():
                await self._reading
                return []
            found = [gate for gate in await self._chat.gates() if gate.id not in self._seen]
            if found:
                self._seen.update(gate.id for gate in found)
                return found

    def skip(self, gate: str) -> None:
        """Do not give this one out: it was answered."""
        self._seen.add(gate)

    async def unless_closed(self, gate: Gate, asking: Awaitable[Any]) -> Any:
        """Wait for an answer, as long as somebody wants it; None: nobody does."""
        assert self._reading is not None
        closed = self._open[gate.id] = asyncio.Event()
        asked = asyncio.ensure_future(asking)
        waiting = asyncio.ensure_future(closed.wait())
        try:
            await asyncio.wait({asked, waiting, self._reading}, return_when=asyncio.FIRST_COMPLETED)
            return await asked if asked.done() else None
        finally:
            del self._open[gate.id]
            for task in (asked, waiting):
                task.cancel()
            await asyncio.gather(asked, waiting, return_exceptions=True)

    def _ring(self, snapshot: Any) -> None:
        if snapshot.gates:
            self._rings.set()

    async def _read(self) -> None:
        try:
            async with aclosing(self._shown):
                async for shown in self._shown:
                    await self._see(shown)
        finally:
            self._rings.set()

    async def _see(self, shown: Shown) -> None:
        match shown:
            case TextDelta(text=text) | CallProgress(text=text):
                await self._say(text)
            case GateOpened():
                self._rings.set()
            case GateAnswered(gate=gate) if gate in self._open:
                self._open[gate].set()
            case CallSettled() if self._open:
                standing = {gate.id for gate in await self._chat.gates()}
                for gate, closed in self._open.items():
                    if gate not in standing:
                        closed.set()
            case _:
                pass

    async def _say(self, text: str) -> None:
        self._said += text
        now = time.monotonic()
        if now - self._told >= PACE:
            said, self._said, self._told, self._count = self._said[-PIECE:], "", now, self._count + 1
            await self._tell(self._count, said)
