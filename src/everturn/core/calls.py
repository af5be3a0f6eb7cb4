"""The machine of one call.

Rule 1: every transition is a row in `CALL_TRANSITIONS`. If it is not in the table it cannot happen.
Rule 2: a settled call stays as it is; a late result is attached to it and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from msgspec import Struct

from everturn.core.asking import WITHIN, Gate, Verdict
from everturn.core.events import (
    CallBelow,
    CallJudged,
    CallPaused,
    CallResumed,
    CallSettled,
    CallStarted,
    CallStirred,
    Event,
    GateAnswered,
    GateOpened,
    LateArrived,
)
from everturn.core.loops import mark_of
from everturn.core.parts import CallState, Output
from everturn.errors import InvalidEvent

SETTLED: Final[frozenset[CallState]] = frozenset(
    {"completed", "failed", "denied", "withheld", "cancelled", "outcome_unknown"}
)

_ASKED: Final[frozenset[CallState]] = frozenset({"running", "reviewing"})

CALL_TRANSITIONS: Final[dict[CallState, dict[type[Event], CallState | frozenset[CallState]]]] = {
    # An unknown tool, broken arguments or a cancel settle a call that never asked and never ran.
    "pending": {GateOpened: "asking", CallJudged: "pending", CallStarted: "running", CallSettled: SETTLED},
    # An answer sends it back to pending: the verdict is known, the effect has not begun.
    "asking": {GateAnswered: "pending", CallSettled: SETTLED},
    # It may ask by itself, and be put aside meanwhile; what it brought may be for a person to read first.
    "running": {
        GateOpened: _ASKED,
        GateAnswered: "running",
        CallBelow: "running",
        CallStirred: "running",  # before it was put aside: whoever puts it aside looks again
        CallPaused: "waiting",
        CallSettled: SETTLED,
    },
    # What it did at the same time is still written.
    "waiting": {
        GateOpened: "waiting",
        GateAnswered: "waiting",
        CallBelow: "waiting",
        CallPaused: "waiting",
        CallStirred: "waiting",
        CallResumed: "running",
        CallSettled: SETTLED,
    },
    "reviewing": {GateAnswered: "reviewing", CallSettled: SETTLED},
    "completed": {},
    "failed": {},
    "denied": {},
    "withheld": {},
    "cancelled": {LateArrived: "cancelled"},
    "outcome_unknown": {},
}


CallMove = (
    CallJudged
    | GateOpened
    | GateAnswered
    | CallStarted
    | CallBelow
    | CallPaused
    | CallStirred
    | CallResumed
    | CallSettled
    | LateArrived
)


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
    parent: str = ""  # the call whose tool made it
    below: dict[int, tuple[str, str]] = {}  # number -> session and turn of a sub-turn it has had run
    paused: CallPaused | None = None  # its tool was put aside, and when it is begun again this is what it kept
    output: Output | None = None  # what it came to
    is_stirred: bool = False  # the sub-turn it waits for is about to be over
    is_late: bool = False
    is_out: bool = False  # its tool runs on without it

    @property
    def is_settled(self) -> bool:
        """Whether it has its one result."""
        return self.state in SETTLED

    def advance(self, event: CallMove) -> None:
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
        elif kind in _ASIDE:
            _ASIDE[kind](self, event)
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
        self.state, self.is_out, self.trail, self.output = event.state, event.out, event.trail, event.output

    def _ask(self, event: GateOpened) -> None:
        if event.gate.kind in WITHIN:
            if self.state not in ("running", "waiting"):
                raise InvalidEvent(f"call {self.id} is {self.state}: its tool cannot ask")
            return
        is_review = event.gate.kind == "result"
        if is_review != (self.state == "running") or self.state == "waiting":
            raise InvalidEvent(f"call {self.id} is {self.state}: a gate about its {event.gate.kind} cannot open")
        if is_review and event.gate.output is None:
            raise InvalidEvent(f"gate {event.gate.id} asks about the result of call {self.id} and has none")
        if is_review:
            self.review, self.state = event.gate, "reviewing"
            return
        if self.verdict is not None:
            raise InvalidEvent(f"call {self.id} has been answered already; it cannot ask again")
        if self.judged is not None and not self.judged.allowed:
            raise InvalidEvent(f"call {self.id} was not allowed; nobody is asked about it any more")
        self.gate, self.state = event.gate, "asking"
        self.known_as = event.gate.mark

    def _answer(self, event: GateAnswered) -> None:
        if self.state in ("running", "waiting"):
            return  # its tool asked, and the turn knows what
        gate = self.asks
        if gate is None or gate.id != event.gate:
            raise InvalidEvent(f"call {self.id} does not wait at gate {event.gate}")
        if gate.kind == "result":
            self.reviewed = event.verdict
        else:
            self.verdict, self.state = event.verdict, "pending"

    def _descend(self, event: CallBelow) -> None:
        if event.number in self.below:
            raise InvalidEvent(f"call {self.id} has asked for its sub-turn {event.number} before")
        self.below[event.number] = event.session, event.below

    def _pause(self, event: CallPaused) -> None:
        self.paused, self.state = event, "waiting"

    def _stir(self, event: CallStirred) -> None:
        self.is_stirred = True

    def _resume(self, event: CallResumed) -> None:
        self.state, self.is_stirred = "running", False

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


_ASIDE: Final[dict[type[Event], Callable[[Call, Any], None]]] = {
    CallBelow: Call._descend,  # pyright: ignore[reportPrivateUsage]
    CallPaused: Call._pause,  # pyright: ignore[reportPrivateUsage]
    CallStirred: Call._stir,  # pyright: ignore[reportPrivateUsage]
    CallResumed: Call._resume,  # pyright: ignore[reportPrivateUsage]
}
