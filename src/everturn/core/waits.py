"""Open waits of a session's tools, as a store keeps them: a timer, or the time limit of an external result, makes its
session due.
"""

from __future__ import annotations

from typing import cast

from everturn.core.events import CallFinished, Event, GateOpened, TurnFinishing, WaitFinished, WaitStarted

OpenWaits = dict[tuple[str, str], dict[str, float]]
"""(turn, call) -> its open waits, and until when each of them waits."""


def wait_key(turn: str, wait: str) -> str:
    """The idempotency key of the command that finishes a wait: whoever is first has finished it."""
    return f"wait:{turn}:{wait}"


def apply_to_waits(waits: OpenWaits, event: Event) -> bool:
    """Project one event onto the open waits of its session, and return whether they changed."""
    kind = type(event)
    if kind is WaitStarted:
        started = cast("WaitStarted", event)
        waits.setdefault((started.turn, started.call), {})[started.wait] = started.until
        return True
    if not waits:
        return False
    if kind is WaitFinished:
        finished = cast("WaitFinished", event)
        return waits.get((finished.turn, finished.call), {}).pop(finished.wait, None) is not None
    if kind is CallFinished:
        call = cast("CallFinished", event)
        return waits.pop((call.turn, call.call), None) is not None
    if kind is GateOpened and cast("GateOpened", event).gate.kind == "result":  # its tool has ended
        gate = cast("GateOpened", event).gate
        return waits.pop((gate.turn, gate.call), None) is not None
    if kind is TurnFinishing:
        turn = cast("TurnFinishing", event).turn
        over = [key for key in waits if key[0] == turn]
        for key in over:
            del waits[key]
        return bool(over)
    return False


def next_wait(waits: OpenWaits) -> float:
    """When the next of these waits ends by itself; 0: none does."""
    return min((until for call in waits.values() for until in call.values() if until), default=0.0)
