"""Gate rows: gates as a store keeps them, and the checks of an answer or a claim at admission.

A store accepts an answer once, for the bytes that were shown, while the turn still waits. Every other answer raises its
own error and changes nothing.
"""

from __future__ import annotations

from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical_json import parse_json
from everturn.core.events import CallClaimed, CallFinished, Event, GateOpened, GateResolved, TurnFinishing
from everturn.core.gates import GATE_KINDS_OF_RUNNING_TOOL, GATE_KINDS_WITHOUT_CALL, CallClaim, Gate, GateResolution
from everturn.core.json_schema import validate_schema
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
    """A gate, the answer that was admitted for it, and whether it is still open."""

    gate: Gate
    opened: float
    resolution: GateResolution | None = None
    is_open: bool = True
    claim: CallClaim | None = None  # set at admission, like the resolution

    @property
    def due(self) -> float:
        """When the gate expires or its claim runs out; 0: never."""
        return gate_deadline(self.gate, self.claim)


MAX_LEASE = 3600.0  # seconds
MAX_RESULT_LENGTH = 4_000_000  # characters of a submitted result


def gate_deadline(gate: Gate, claim: CallClaim | None) -> float:
    """When a gate expires, or the claim of a call that may run at most once runs out; 0: never."""
    times = (gate.expires, claim.until if claim is not None and gate.once else 0.0)
    return min((time for time in times if time), default=0.0)


def claim_end(gate: Gate, now: float, lease: float) -> float:
    """When a claim ends: after its lease, but no later than the gate expires."""
    return min(now + lease, gate.expires) if gate.expires else now + lease


def apply_to_gates(rows: dict[str, GateRow], event: Event) -> None:
    """Project one event onto the rows of its session."""
    kind = type(event)
    if kind is GateOpened:
        opened = cast("GateOpened", event)
        rows[opened.gate.id] = GateRow(opened.gate, opened.at)
    elif kind is GateResolved:
        resolved = cast("GateResolved", event)
        rows[resolved.gate].resolution, rows[resolved.gate].is_open = resolved.resolution, False
    elif kind is CallClaimed:
        claimed = cast("CallClaimed", event)
        rows[claimed.gate].claim = claimed.claim
    elif kind is CallFinished and rows:  # whatever its result, nothing is left to ask
        for row in rows.values():
            if row.gate.call == cast("CallFinished", event).call:
                row.is_open = False
    elif kind is TurnFinishing and rows:
        for row in rows.values():
            if row.gate.turn == cast("TurnFinishing", event).turn:
                row.is_open = False


def check_claim(row: GateRow | None, gate: str, hash: str, by: str, lease: float, now: float) -> CallClaim:
    """Check a client's claim of a call, and return the claim with its end.

    Raises:
        UnknownGate, HashMismatch, GateClosed, GateExpired: as for an answer.
        AnswerUnfit: the gate is not for clients, or the lease is too long.
        AnsweredOtherwise: the gate has been answered.
        ClaimedOtherwise: another client holds the claim, or held it for a call that may run at most once.
    """
    row = _existing_row(row, gate, hash)
    if row.resolution is not None:
        raise AnsweredOtherwise(f"gate {gate} has been answered already")
    _check_open(row, now)
    if row.gate.kind != "client":
        raise AnswerUnfit(
            f"gate {gate} is of kind {row.gate.kind}: only a person can answer it, a client cannot claim it"
        )
    if not by or not 0 < lease <= MAX_LEASE:
        raise AnswerUnfit(f"gate {gate}: a claim needs the name of its client, and lasts at most {MAX_LEASE:g} seconds")
    claim = row.claim
    if claim is not None and claim.by != by and (row.gate.once or now < claim.until):
        raise ClaimedOtherwise(f"gate {gate} was claimed by another client")
    if claim is not None and row.gate.once and now >= claim.until:
        raise ClaimedOtherwise(f"gate {gate}: your claim has expired, and it is not known whether the tool took effect")
    return CallClaim(by, claim_end(row.gate, now, lease))


def check_answer(row: GateRow | None, gate: str, hash: str, resolution: GateResolution, now: float) -> bool:
    """Check an answer: True if it is new, False if it repeats the admitted one.

    Raises:
        UnknownGate: the session has no such gate.
        HashMismatch: the answer is for other bytes than those that would run.
        AnswerUnfit: the answer does not fit the gate.
        GateClosed: the turn is over.
        AnsweredOtherwise: the gate has another answer.
        GateExpired: the gate has expired.
    """
    row = _existing_row(row, gate, hash)
    if row.resolution is not None:
        if replace(row.resolution, by="") == replace(resolution, by=""):
            return False
        raise AnsweredOtherwise(f"gate {gate} has already been answered in another way")
    _check_open(row, now)
    check_answer_fits_gate(row.gate, resolution)
    if row.gate.kind == "client" and resolution.allowed:
        _check_holder(row, resolution.claim, now)
    return True


def _existing_row(row: GateRow | None, gate: str, hash: str) -> GateRow:
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
    """Refuse the result of a client that does not hold the claim: two clients may have run the call."""
    claim = row.claim
    if claim is None or claim.by != client:
        raise NotClaimed(
            f"gate {row.gate.id}: claim it first; {'another client has' if claim else 'no client has'} claimed it"
        )
    if now >= claim.until:
        raise NotClaimed(f"gate {row.gate.id}: this claim has expired; claim it again")


def _check_grant(gate: Gate, resolution: GateResolution) -> None:
    v = resolution
    if v.grant is not None and (not v.allowed or v.grant not in gate.offers):
        raise AnswerUnfit(f"gate {gate.id} does not offer this grant: {v.grant}")
    if v.grant is not None and (v.arguments or v.result is not None):
        raise AnswerUnfit(
            f"gate {gate.id}: a grant must be for the call that was shown, and this answer edits the call"
        )
    if (v.everywhere or v.until) and v.grant is None:
        raise AnswerUnfit(f"gate {gate.id}: this answer has nothing to remember")
    if v.within and not v.everywhere:
        raise AnswerUnfit(f"gate {gate.id}: a grant for one session cannot be limited to a user or a folder")


def check_answer_fits_gate(gate: Gate, resolution: GateResolution) -> None:
    """Refuse an answer that does not fit the gate, above all a grant wider than the ones it offered."""
    v = resolution
    if len(v.result or "") > MAX_RESULT_LENGTH or len(v.text or "") > MAX_RESULT_LENGTH:
        raise AnswerUnfit(f"gate {gate.id}: an answer has at most {MAX_RESULT_LENGTH:,} characters")
    _check_grant(gate, resolution)
    if v.text is not None and (gate.kind != "result" or not v.allowed):
        raise AnswerUnfit(f"gate {gate.id} is about a {gate.kind}: only a result can be redacted, when it is sent")
    if gate.kind == "limit" and v.result is not None:
        raise AnswerUnfit(f"gate {gate.id} is about a limit: the turn may continue, or not")
    if gate.kind in ("result", *GATE_KINDS_WITHOUT_CALL) and v.arguments:
        raise AnswerUnfit(f"gate {gate.id} is about a {gate.kind}: it has no arguments to edit")
    if gate.kind == "result" and v.result is not None:
        raise AnswerUnfit(f"gate {gate.id} is about a result, which can be sent, redacted or withheld")
    if not v.allowed and (v.arguments or v.result is not None):
        raise AnswerUnfit(f"gate {gate.id}: a denial cannot have arguments or a result")
    if gate.kind in GATE_KINDS_OF_RUNNING_TOOL:
        _check_form(gate, resolution)
    if v.allowed and v.others:
        raise AnswerUnfit(f"gate {gate.id}: only a denial can apply to all other pending gates")
    if v.allowed and v.stop:
        raise AnswerUnfit(f"gate {gate.id}: only a denial can stop the turn")


def _check_form(gate: Gate, resolution: GateResolution) -> None:
    if resolution.arguments:
        raise AnswerUnfit(f"gate {gate.id} is about a {gate.kind}: it has no arguments to edit")
    if resolution.failed and gate.kind != "client":
        raise AnswerUnfit(f"gate {gate.id} is about a {gate.kind}: fill it in, or deny it")
    if not resolution.allowed or resolution.failed:
        return
    if resolution.result is None:
        if gate.form or gate.kind == "client":
            raise AnswerUnfit(f"gate {gate.id}: the answer needs a result")
        return
    if gate.form:
        try:
            violations = validate_schema(parse_json(resolution.result), parse_json(gate.form))
        except ValueError:
            raise AnswerUnfit(f"gate {gate.id}: the result must be JSON") from None
        if violations:
            raise AnswerUnfit(
                f"gate {gate.id}: the result does not match the schema: {'; '.join(map(str, violations))}"
            )
