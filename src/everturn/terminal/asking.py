"""The gates that stand open → one question after the other, while nobody else draws."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from everturn import CallSettled, Chat, Gate, GateAnswered, GateOpened
from everturn.core.asking import WITHIN, Verdict
from everturn.core.deltas import Shown
from everturn.core.events import Event, TurnEnding
from everturn.errors import GateClosed
from everturn.terminal.desk import NOBODY_ASKS
from everturn.terminal.exact import seen

LOOK = 1.0  # seconds between two looks at a gate of another session, of which we are not told
ACT = 2.0  # seconds that a driver has to act on an answer, before the next gate is asked: it may be answered with it
SHOWN = 200  # characters of a question that nobody answers
ELSEWHERE = "it was answered elsewhere meanwhile"
NOBODY = "there is nobody to ask"


class Asks(Protocol):
    """Whoever puts a gate to a person."""

    def close(self, gate: str, how: str) -> None:
        """Tell that nobody has to answer this gate any more."""
        ...

    async def ask(self, gate: Gate, place: str = "") -> bool:
        """Ask, and say whether anybody is there who could answer more."""
        ...


class Nobody:
    """Where nobody can be asked, nothing waits: every gate is denied, and that is said."""

    def __init__(self, chat: Chat, tell: Callable[[str], None]) -> None:
        self._chat, self._tell = chat, tell

    def close(self, gate: str, how: str) -> None:
        """Nothing: nobody is being asked."""

    async def ask(self, gate: Gate, place: str = "") -> bool:
        """Deny it."""
        done = "its result was withheld" if gate.kind == "result" else "it was denied"
        asks = "waits for a client" if gate.kind == "client" else "asks"
        why = shortened(seen(gate.why or gate.arguments)) if gate.kind in WITHIN else gate.why or "a person decides"
        self._tell(f"{gate.tool} {asks}, and {NOBODY}, so {done}: {why}")
        with suppress(GateClosed):
            await self._chat.answer(gate, deny=NOBODY, by="everturn chat")
        return True


class Asking:
    """Asks about every gate of a chat that stands open. While `is_busy`, what a turn shows has to wait."""

    def __init__(self, chat: Chat, desk: Asks, free: Callable[[], None], after: type[Event] = GateOpened) -> None:
        self._chat, self._desk, self._free, self._after = chat, desk, free, after
        self._rings, self._look_now, self._quiet = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._closed: set[str] = set()  # gates that a driver has acted on
        self._asked: set[str] = set()
        self._now: Gate | None = None
        self.is_busy = self._has_left = False

    def see(self, shown: Shown) -> None:
        """Take note of what the turn shows: a gate opens, or need not be answered any more."""
        if isinstance(shown, self._after):
            self.is_busy = not self._has_left
            self._rings.set()
        match shown:
            case GateAnswered(gate=gate, verdict=verdict):
                self._closed.add(gate)
                self._desk.close(gate, answered(verdict))
            case CallSettled(call=call) if self._now is not None and self._now.call == call:
                self._desk.close(self._now.id, NOBODY_ASKS)
            case CallSettled() if self._now is not None and self._is_below(self._now):
                self._look_now.set()  # it may have been the call that asks below
            case TurnEnding(outcome=outcome) if self._now is not None:
                is_told = outcome == "cancelled" or not self._is_below(self._now)
                self._desk.close(self._now.id, "" if is_told else ELSEWHERE)
            case _:
                return
        self._rings.set()

    async def serve(self) -> None:
        """Ask until the input ends, or somebody cancels this."""
        listeners = self._chat.runtime.listeners
        ring = self._ring
        listeners.append(ring)
        self._rings.set()
        try:
            while await self._ask_all():
                self.is_busy = False
                self._free()
                await self._rings.wait()
            self._has_left = True
        finally:
            listeners.remove(ring)

    async def end(self) -> None:
        """The turn is over: nobody asks any more, and what is to be said of that is said."""
        if self._now is not None:
            self._desk.close(self._now.id, ELSEWHERE)
            with suppress(TimeoutError):
                async with asyncio.timeout(ACT):
                    await self._quiet.wait()

    def _is_below(self, gate: Gate) -> bool:
        return gate.session not in ("", self._chat.session)

    def _ring(self, snapshot: object) -> None:
        if getattr(snapshot, "session", "") != self._chat.session and getattr(snapshot, "gates", ()):
            self._rings.set()

    async def _ask_all(self) -> bool:
        self._rings.clear()
        count = 0
        while gates := [gate for gate in await self._chat.gates() if gate.id not in self._asked]:
            self.is_busy = True
            gate, count = gates[0], count + 1
            total = count + len(gates) - 1
            if not await self._ask(gate, f"{count} of {total}" if total > 1 else ""):
                return False
            self._asked.add(gate.id)
            await self._acted_on(gate)
        return True

    async def _ask(self, gate: Gate, place: str) -> bool:
        self._now = gate
        self._quiet.clear()
        looking = asyncio.ensure_future(self._look(gate))
        try:
            return await self._desk.ask(gate, place)
        finally:
            looking.cancel()
            self._now = None
            self._quiet.set()

    async def _look(self, gate: Gate) -> None:
        """Find out whether a gate that our turn does not tell of still stands open."""
        if not self._is_below(gate):
            return
        while any(gate.id == other.id for other in await self._chat.gates()):
            self._look_now.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._look_now.wait()
        self._desk.close(gate.id, ELSEWHERE)

    async def _acted_on(self, gate: Gate) -> None:
        if self._is_below(gate):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(ACT):
                while gate.id not in self._closed:
                    await self._rings.wait()
                    self._rings.clear()


def answered(verdict: Verdict) -> str:
    """How somebody else has answered."""
    if verdict.by == "everturn":
        return "the time to answer is over"
    return f"{verdict.by or 'somebody'} has answered it meanwhile: {'allowed' if verdict.allowed else 'not allowed'}"


def shortened(text: str) -> str:
    """The beginning of what a stranger wrote, for a line about it."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} [and {len(text) - SHOWN} characters more]"
