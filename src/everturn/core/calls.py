"""The machine of one call.

Rule 1: every transition is a row in `CALL_TRANSITIONS`. If it is not in the table it cannot happen.
Rule 2: a settled call stays as it is; a late result is attached to it and changes nothing else.
"""

from __future__ import annotations

from typing import Final, cast

from msgspec import Struct

from everturn.core.asking import Gate, Verdict
from everturn.core.events import CallJudged, CallSettled, CallStarted, Event, GateAnswered, GateOpened, LateArrived
from everturn.core.loops import mark_of
from everturn.core.parts import CallState
from everturn.errors import InvalidEvent

SETTLED: Final[frozenset[CallState]] = frozenset(
    {"completed", "failed", "denied", "withheld", "cancelled", "outcome_unknown"}
)

CALL_TRANSITIONS: Final[dict[CallState, dict[type[Event], CallState | frozenset[CallState]]]] = {
    # An unknown tool, broken arguments or a cancel settle a call that never asked and never ran.
    "pending": {GateOpened: "asking", CallJudged: "pending", CallStarted: "running", CallSettled: SETTLED},
    # An answer sends it back to pending: the verdict is known, the effect has not begun.
    "asking": {GateAnswered: "pending", CallSettled: SETTLED},
    # What it brought may be for a person to read first.
    "running": {GateOpened: "reviewing", CallSettled: SETTLED},
    "reviewing": {GateAnswered: "reviewing", CallSettled: SETTLED},
    "completed": {},
    "failed": {},
    "denied": {},
    "withheld": {},
    "cancelled": {LateArrived: "cancelled"},
    "outcome_unknown": {},
}


class Call(Struct):
    """A call as the fold sees it."""

    id: str
    step: int
    index: int
    name: str
    arguments: str
    message: str = ""  # the answer it stands in
    state: CallState = "pending"
    gate: Gate | None = None
    verdict: Verdict | None = None
    judged: CallJudged | None = None
    started: CallStarted | None = None
    review: Gate | None = None  # of its result
    reviewed: Verdict | None = None
    identity: str = ""  # of the tool the model was offered
    known_as: str = ""  # its mark, once it was understood
    trail: tuple[str, ...] = ()  # of the sub-turn it was
    is_late: bool = False
    is_out: bool = False  # its tool runs on without it

    @property
    def is_settled(self) -> bool:
        """Whether it has its one result."""
        return self.state in SETTLED

    def advance(self, event: CallJudged | GateOpened | GateAnswered | CallStarted | CallSettled | LateArrived) -> None:
        """Move on, or refuse and stay.

        Raises:
            InvalidEvent: the table has no such row, or the event names another gate.
        """
        to = CALL_TRANSITIONS[self.state].get(type(event))
        if to is None:
            raise InvalidEvent(f"call {self.id} is {self.state}: {type(event).__name__} cannot happen")
        kind = type(event)
        if kind is CallStarted:
            self._start(cast("CallStarted", event))
        elif kind is CallSettled:
            self._settle(cast("CallSettled", event))
        elif kind is CallJudged:
            self._judge(cast("CallJudged", event))
        elif kind is GateOpened:
            self._ask(cast("GateOpened", event))
        elif kind is GateAnswered:
            self._answer(cast("GateAnswered", event))
        elif self.is_late:
            raise InvalidEvent(f"call {self.id} has a late result already")
        else:
            self.is_late, self.is_out = True, False

    def _judge(self, event: CallJudged) -> None:
        if self.judged is not None:
            raise InvalidEvent(f"call {self.id} was judged already")
        self.judged, self.known_as = event, event.mark or self.known_as

    def _start(self, event: CallStarted) -> None:
        judged = self.judged
        if judged is None or not judged.allowed or (judged.tool, judged.hash) != (event.tool, event.hash):
            raise InvalidEvent(f"call {self.id} cannot start: this was not allowed")
        if self.verdict is not None and not self.verdict.allowed:
            raise InvalidEvent(f"call {self.id} was denied; it cannot start")
        self.started, self.state = event, "running"

    def _settle(self, event: CallSettled) -> None:
        if event.state not in SETTLED:
            raise InvalidEvent(f"a call cannot be settled as {event.state}")
        if event.out and self.state != "running":
            raise InvalidEvent(f"call {self.id} is {self.state}: it has no tool that could run on")
        self.state, self.is_out, self.trail = event.state, event.out, event.trail

    def _ask(self, event: GateOpened) -> None:
        is_review = event.gate.kind == "result"
        if is_review != (self.state == "running"):
            raise InvalidEvent(f"call {self.id} is {self.state}: a gate about its {event.gate.kind} cannot open")
        if is_review:
            self.review, self.state = event.gate, "reviewing"
            return
        if self.verdict is not None:
            raise InvalidEvent(f"call {self.id} has been answered already; it cannot ask again")
        self.gate, self.state = event.gate, "asking"
        self.known_as = event.gate.mark

    def _answer(self, event: GateAnswered) -> None:
        gate = self.asks
        if gate is None or gate.id != event.gate:
            raise InvalidEvent(f"call {self.id} does not wait at gate {event.gate}")
        if gate.kind == "result":
            self.reviewed = event.verdict
        else:
            self.verdict, self.state = event.verdict, "pending"

    @property
    def mark(self) -> str:
        """By what the same call is known again: what is meant by it or, where that was never understood, its words."""
        return self.known_as or mark_of(self.name, self.arguments)

    @property
    def asks(self) -> Gate | None:
        """The gate at which it waits."""
        if self.state == "reviewing":
            return self.review if self.reviewed is None else None
        return self.gate if self.state == "asking" else None
