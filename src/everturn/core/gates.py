"""Gates as a store keeps them: rows that outlive every process, and the check at the door.

An answer is accepted once, for the bytes that were shown, while its turn still waits. Everything else is refused
with an error of its own and changes nothing.
"""

from __future__ import annotations

from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.events import CallSettled, Event, Gate, GateAnswered, GateOpened, TurnEnding, Verdict
from everturn.errors import GateClosed, HashMismatch, UnknownGate


class GateRow(Struct):
    """A gate, the answer that was admitted for it, and whether it still stands open."""

    gate: Gate
    opened: float
    verdict: Verdict | None = None
    is_open: bool = True


def apply_to_gates(rows: dict[str, GateRow], event: Event) -> None:
    """Project one event onto the rows of its session."""
    kind = type(event)
    if kind is GateOpened:
        opened = cast("GateOpened", event)
        rows[opened.gate.id] = GateRow(opened.gate, opened.at)
    elif kind is GateAnswered:
        answered = cast("GateAnswered", event)
        rows[answered.gate].verdict, rows[answered.gate].is_open = answered.verdict, False
    elif kind is CallSettled and rows:  # however it was settled, there is nothing left to ask
        for row in rows.values():
            if row.gate.call == cast("CallSettled", event).call:
                row.is_open = False
    elif kind is TurnEnding and rows:
        for row in rows.values():
            if row.gate.turn == cast("TurnEnding", event).turn:
                row.is_open = False


def check_answer(row: GateRow | None, gate: str, hash: str, verdict: Verdict, now: float) -> bool:
    """Whether an answer is news (True), or the same one again (False).

    Raises:
        UnknownGate: there is no such gate here.
        HashMismatch: the answer was given to something else than what would run.
        GateClosed: it was answered otherwise, has expired, or its turn is over.
    """
    if row is None:
        raise UnknownGate(f"there is no gate {gate!r} in this session")
    if row.gate.hash != hash:
        raise HashMismatch(f"gate {gate} was opened for {row.gate.hash[:12]}…, the answer is for {hash[:12]}…")
    if row.verdict is not None:
        if replace(row.verdict, by="") == replace(verdict, by=""):
            return False
        raise GateClosed(f"gate {gate} has been answered otherwise already")
    if not row.is_open:
        raise GateClosed(f"gate {gate} is closed: its turn is over")
    if row.gate.expires and now >= row.gate.expires:
        raise GateClosed(f"gate {gate} has expired")
    return True
