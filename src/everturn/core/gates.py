"""Gates as a store keeps them: rows that outlive every process, and the check at the door.

An answer is accepted once, for the bytes that were shown, while its turn still waits. Everything else is refused
with an error of its own and changes nothing.
"""

from __future__ import annotations

from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.asking import WITHIN, Claimed, Gate, Verdict
from everturn.core.canonical import parse
from everturn.core.events import CallSettled, Event, GateAnswered, GateClaimed, GateOpened, TurnEnding
from everturn.core.schemas import misfits
from everturn.errors import (
    AnsweredOtherwise,
    AnswerUnfit,
    ClaimedOtherwise,
    GateClosed,
    GateExpired,
    HashMismatch,
    NotClaimed,
    UnknownGate,
)


class GateRow(Struct):
    """A gate, the answer that was admitted for it, and whether it still stands open."""

    gate: Gate
    opened: float
    verdict: Verdict | None = None
    is_open: bool = True
    claim: Claimed | None = None  # admitted at the door, like the verdict

    @property
    def due(self) -> float:
        """When something is to be done about it although nothing comes; 0: never."""
        return due_of(self.gate, self.claim)


LONGEST_LEASE = 3600.0  # seconds
LONGEST_RESULT = 4_000_000  # characters of a result that somebody hands in


def due_of(gate: Gate, claim: Claimed | None) -> float:
    """When a gate expires, or the time is over of a client that has begun what no other may begin; 0: never."""
    times = (gate.expires, claim.until if claim is not None and gate.once else 0.0)
    return min((time for time in times if time), default=0.0)


def until_of(gate: Gate, now: float, lease: float) -> float:
    """Until when a client has a call that it claims: as long as it says, and no longer than the gate stands open."""
    return min(now + lease, gate.expires) if gate.expires else now + lease


def apply_to_gates(rows: dict[str, GateRow], event: Event) -> None:
    """Project one event onto the rows of its session."""
    kind = type(event)
    if kind is GateOpened:
        opened = cast("GateOpened", event)
        rows[opened.gate.id] = GateRow(opened.gate, opened.at)
    elif kind is GateAnswered:
        answered = cast("GateAnswered", event)
        rows[answered.gate].verdict, rows[answered.gate].is_open = answered.verdict, False
    elif kind is GateClaimed:
        claimed = cast("GateClaimed", event)
        rows[claimed.gate].claim = claimed.claim
    elif kind is CallSettled and rows:  # however it was settled, there is nothing left to ask
        for row in rows.values():
            if row.gate.call == cast("CallSettled", event).call:
                row.is_open = False
    elif kind is TurnEnding and rows:
        for row in rows.values():
            if row.gate.turn == cast("TurnEnding", event).turn:
                row.is_open = False


def check_claim(row: GateRow | None, gate: str, hash: str, by: str, lease: float, now: float) -> Claimed:
    """What a client is given that wants to do a call.

    Raises:
        UnknownGate, HashMismatch, GateClosed, GateExpired: as for an answer.
        AnswerUnfit: it is not for clients, or so much time is not given.
        AnsweredOtherwise: it was answered.
        ClaimedOtherwise: another client has it, or has had it and must not be followed.
    """
    row = _standing(row, gate, hash)
    if row.verdict is not None:
        raise AnsweredOtherwise(f"gate {gate} has been answered already")
    _check_open(row, now)
    if row.gate.kind != "client":
        raise AnswerUnfit(f"gate {gate} is about a {row.gate.kind}: it is for a person, no client can claim it")
    if not by or not 0 < lease <= LONGEST_LEASE:
        raise AnswerUnfit(f"gate {gate}: a claim names its client, and takes at most {LONGEST_LEASE:g} seconds")
    held = row.claim
    if held is not None and held.by != by and (row.gate.once or now < held.until):
        raise ClaimedOtherwise(f"gate {gate} was claimed by another client")
    if held is not None and row.gate.once and now >= held.until:
        raise ClaimedOtherwise(f"gate {gate}: the time of your claim is over, and whether it took effect is not known")
    return Claimed(by, until_of(row.gate, now, lease))


def check_answer(row: GateRow | None, gate: str, hash: str, verdict: Verdict, now: float) -> bool:
    """Whether an answer is news (True), or the same one again (False).

    Raises:
        UnknownGate: there is no such gate here.
        HashMismatch: the answer was given to something else than what would run.
        AnswerUnfit: it is no answer to what is asked.
        GateClosed: its turn is over; AnsweredOtherwise, GateExpired: it was, or has.
    """
    row = _standing(row, gate, hash)
    if row.verdict is not None:
        if replace(row.verdict, by="") == replace(verdict, by=""):
            return False
        raise AnsweredOtherwise(f"gate {gate} has been answered otherwise already")
    _check_open(row, now)
    check_fit(row.gate, verdict)
    if row.gate.kind == "client" and verdict.allowed:
        _check_holder(row, verdict.claim, now)
    return True


def _standing(row: GateRow | None, gate: str, hash: str) -> GateRow:
    if row is None:
        raise UnknownGate(f"there is no gate {gate!r} in this session")
    if row.gate.hash != hash:
        raise HashMismatch(f"gate {gate} was opened for {row.gate.hash[:12]}…, the answer is for {hash[:12]}…")
    return row


def _check_open(row: GateRow, now: float) -> None:
    if not row.is_open:
        raise GateClosed(f"gate {row.gate.id} is closed: its turn is over")
    if row.gate.expires and now >= row.gate.expires:
        raise GateExpired(f"gate {row.gate.id} has expired")


def _check_holder(row: GateRow, client: str, now: float) -> None:
    """Refuse the result of a client that has not the call: two may have done it, and one did it unasked."""
    held = row.claim
    if held is None or held.by != client:
        raise NotClaimed(
            f"gate {row.gate.id}: claim it first; {'another client has' if held else 'nobody has'} claimed it"
        )
    if now >= held.until:
        raise NotClaimed(f"gate {row.gate.id}: the time of this claim is over; claim it again")


def check_fit(gate: Gate, verdict: Verdict) -> None:
    """Refuse what the gate does not ask, above all a grant that is wider than the one it showed."""
    v = verdict
    if len(v.result or "") > LONGEST_RESULT or len(v.text or "") > LONGEST_RESULT:
        raise AnswerUnfit(f"gate {gate.id}: an answer has at most {LONGEST_RESULT:,} characters")
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
    if gate.kind in WITHIN:
        _check_form(gate, verdict)
    if v.allowed and v.others:
        raise AnswerUnfit(f"gate {gate.id}: only a denial can be one of everything that is asked beside")


def _check_form(gate: Gate, verdict: Verdict) -> None:
    if verdict.arguments:
        raise AnswerUnfit(f"gate {gate.id} is about a {gate.kind}: there are no arguments to be edited")
    if verdict.failed and gate.kind != "client":
        raise AnswerUnfit(f"gate {gate.id} is about a {gate.kind}: fill it in, or deny it")
    if not verdict.allowed or verdict.failed:
        return
    if verdict.result is None:
        if gate.form or gate.kind == "client":
            raise AnswerUnfit(f"gate {gate.id}: an answer to this has a result")
        return
    if gate.form:
        try:
            wrong = misfits(parse(verdict.result), parse(gate.form))
        except ValueError:
            raise AnswerUnfit(f"gate {gate.id}: the result must be JSON") from None
        if wrong:
            raise AnswerUnfit(f"gate {gate.id}: the result does not fit: {'; '.join(map(str, wrong))}")
