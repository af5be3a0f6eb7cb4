"""Gates as a store keeps them: rows that outlive every process, and the check at the door.

An answer is accepted once, for the bytes that were shown, while its turn still waits. Everything else is refused
with an error of its own and changes nothing.
"""

from __future__ import annotations

from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.asking import Gate, Verdict
from everturn.core.events import CallSettled, Event, GateAnswered, GateOpened, TurnEnding
from everturn.errors import AnsweredOtherwise, AnswerUnfit, GateClosed, GateExpired, HashMismatch, UnknownGate


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
        AnswerUnfit: it is no answer to what is asked.
        GateClosed: its turn is over; AnsweredOtherwise, GateExpired: it was, or has.
    """
    if row is None:
        raise UnknownGate(f"there is no gate {gate!r} in this session")
    if row.gate.hash != hash:
        raise HashMismatch(f"gate {gate} was opened for {row.gate.hash[:12]}…, the answer is for {hash[:12]}…")
    if row.verdict is not None:
        if replace(row.verdict, by="") == replace(verdict, by=""):
            return False
        raise AnsweredOtherwise(f"gate {gate} has been answered otherwise already")
    if not row.is_open:
        raise GateClosed(f"gate {gate} is closed: its turn is over")
    if row.gate.expires and now >= row.gate.expires:
        raise GateExpired(f"gate {gate} has expired")
    _check_fit(row.gate, verdict)
    return True


def _check_fit(gate: Gate, verdict: Verdict) -> None:
    """Refuse what the gate does not ask, above all a grant that is wider than the one it showed."""
    v = verdict
    if v.grant is not None and (not v.allowed or v.grant not in gate.offers):
        raise AnswerUnfit(f"gate {gate.id} does not offer to remember this: {v.grant}")
    if v.grant is not None and (v.arguments or v.result is not None):
        raise AnswerUnfit(
            f"gate {gate.id}: what is remembered is the call that was shown, and this answer is for another"
        )
    if (v.everywhere or v.until) and v.grant is None:
        raise AnswerUnfit(f"gate {gate.id}: there is nothing to be remembered")
    if v.text is not None and (gate.kind != "result" or not v.allowed):
        raise AnswerUnfit(f"gate {gate.id} is about a {gate.kind}: only a result can be redacted, when it is sent")
    if gate.kind in ("result", "question") and v.arguments:
        raise AnswerUnfit(f"gate {gate.id} is about a {gate.kind}: there are no arguments to be edited")
    if gate.kind == "result" and v.result is not None:
        raise AnswerUnfit(f"gate {gate.id} is about a result: it is there, and can be sent, redacted or withheld")
    if not v.allowed and (v.arguments or v.result is not None):
        raise AnswerUnfit(f"gate {gate.id}: a call that is not allowed has no arguments and no result")
    if v.allowed and v.others:
        raise AnswerUnfit(f"gate {gate.id}: only a denial can be one of everything that is asked beside")
