"""Gate queue of line mode: asks about the open gates of a chat one after the other, while output is held back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from everturn import Chat, Gate
from everturn.core.deltas import TurnItem
from everturn.core.events import Event, TurnFinishing
from everturn.core.gates import GATE_KINDS_OF_RUNNING_TOOL, GateResolution
from everturn.errors import GateClosed
from everturn.events import CallFinished, GateOpened, GateResolved
from everturn.terminal.lines.gate_prompt import GATE_CLOSED
from everturn.terminal.text.visible_text import escape_invisible

CHECK_INTERVAL = 1.0  # seconds between two checks of a gate of another session, whose events we do not receive
ACT_TIMEOUT = (
    2.0  # seconds that a driver has to act on an answer before the next gate is asked: it may resolve that one, too
)
MAX_QUESTION = 200  # characters of a question that are printed when it is denied without a person
ELSEWHERE = "it was answered in another client"
NOBODY = "there is nobody to ask"


class GatePrompter(Protocol):
    """Asks a person about a gate."""

    def close(self, gate: str, how: str) -> None:
        """End the question about this gate: it needs no answer any more."""
        ...

    async def ask(self, gate: Gate, place: str = "") -> bool:
        """Ask, and return whether the person can be asked further questions."""
        ...


class DenyAll:
    """Prompter without a person (a pipe): denies every gate and prints that it did, so that nothing waits."""

    def __init__(self, chat: Chat, tell: Callable[[str], None]) -> None:
        self._chat, self._tell = chat, tell

    def close(self, gate: str, how: str) -> None:
        """Do nothing: there is no open question."""

    async def ask(self, gate: Gate, place: str = "") -> bool:
        """Deny the gate."""
        outcome = "its result was withheld" if gate.kind == "result" else "it was denied"
        verb = "waits for a client" if gate.kind == "client" else "asks"
        reason = (
            truncate_text(escape_invisible(gate.why or gate.arguments))
            if gate.kind in GATE_KINDS_OF_RUNNING_TOOL
            else gate.why or "a person decides"
        )
        self._tell(f"{gate.tool} {verb}, and {NOBODY}, so {outcome}: {reason}")
        with suppress(GateClosed):
            await self._chat.answer(gate, deny=NOBODY, by="everturn chat")
        return True


class GateQueue:
    """Asks about every open gate of a chat. While `is_busy`, the output of the turn has to wait."""

    def __init__(
        self, chat: Chat, prompter: GatePrompter, free: Callable[[], None], after: type[Event] = GateOpened
    ) -> None:
        self._chat, self._prompter, self._free, self._after = chat, prompter, free, after
        self._wakeup, self._check_now, self._idle = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._closed: set[str] = set()  # gates whose answer a driver has acted on
        self._shown_gates: set[str] = set()
        self._current: Gate | None = None
        self.is_busy = self._has_left = False

    def handle(self, shown: TurnItem) -> None:
        """Handle an event of the turn: a gate opens, or needs no answer any more."""
        if isinstance(shown, self._after):
            self.is_busy = not self._has_left
            self._wakeup.set()
        match shown:
            case GateResolved(gate=gate, resolution=resolution):
                self._closed.add(gate)
                self._prompter.close(gate, describe_resolution(resolution))
            case CallFinished(call=call) if self._current is not None and self._current.call == call:
                self._prompter.close(self._current.id, GATE_CLOSED)
            case CallFinished() if self._current is not None and self._is_of_subagent(self._current):
                self._check_now.set()  # it may have been the call whose sub-agent asks
            case TurnFinishing(outcome=outcome) if self._current is not None:
                is_known = outcome == "cancelled" or not self._is_of_subagent(self._current)
                self._prompter.close(self._current.id, "" if is_known else ELSEWHERE)
            case _:
                return
        self._wakeup.set()

    async def serve(self) -> None:
        """Ask until the input ends, or this task is cancelled."""
        listeners = self._chat.app.listeners
        listener = self._on_snapshot
        listeners.append(listener)
        self._wakeup.set()
        try:
            while await self._ask_all():
                self.is_busy = False
                self._free()
                await self._wakeup.wait()
            self._has_left = True
        finally:
            listeners.remove(listener)

    async def end(self) -> None:
        """The turn is over: close the open question, and wait until its message is printed."""
        if self._current is not None:
            self._prompter.close(self._current.id, ELSEWHERE)
            with suppress(TimeoutError):
                async with asyncio.timeout(ACT_TIMEOUT):
                    await self._idle.wait()

    def _is_of_subagent(self, gate: Gate) -> bool:
        return gate.session not in ("", self._chat.session)

    def _on_snapshot(self, snapshot: object) -> None:
        if getattr(snapshot, "session", "") != self._chat.session and getattr(snapshot, "gates", ()):
            self._wakeup.set()

    async def _ask_all(self) -> bool:
        self._wakeup.clear()
        count = 0
        while gates := [gate for gate in await self._chat.gates() if gate.id not in self._shown_gates]:
            self.is_busy = True
            gate, count = gates[0], count + 1
            total = count + len(gates) - 1
            if not await self._ask(gate, f"{count} of {total}" if total > 1 else ""):
                return False
            self._shown_gates.add(gate.id)
            await self._wait_until_acted_on(gate)
        return True

    async def _ask(self, gate: Gate, place: str) -> bool:
        self._current = gate
        self._idle.clear()
        check = asyncio.ensure_future(self._watch_subagent_gate(gate))
        try:
            return await self._prompter.ask(gate, place)
        finally:
            check.cancel()
            self._current = None
            self._idle.set()

    async def _watch_subagent_gate(self, gate: Gate) -> None:
        """Watch a gate of a sub-agent's session, whose events our turn does not show, until it is closed."""
        if not self._is_of_subagent(gate):
            return
        while any(gate.id == other.id for other in await self._chat.gates()):
            self._check_now.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_INTERVAL):
                    await self._check_now.wait()
        self._prompter.close(gate.id, ELSEWHERE)

    async def _wait_until_acted_on(self, gate: Gate) -> None:
        if self._is_of_subagent(gate):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(ACT_TIMEOUT):
                while gate.id not in self._closed:
                    await self._wakeup.wait()
                    self._wakeup.clear()


def describe_resolution(resolution: GateResolution) -> str:
    """Describe how another client has answered."""
    if resolution.by == "everturn":
        return "the approval has expired"
    return f"{resolution.by or 'another person'} has answered it: {'allowed' if resolution.allowed else 'not allowed'}"


def truncate_text(text: str) -> str:
    """Return the beginning of an untrusted text, for a message about it."""
    return (
        text if len(text) <= MAX_QUESTION else f"{text[:MAX_QUESTION]} [and {len(text) - MAX_QUESTION} characters more]"
    )
