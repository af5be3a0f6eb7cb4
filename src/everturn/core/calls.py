"""State machine of one tool call.

Rule 1: every transition is a row in `CALL_TRANSITIONS`. If it is not in the table it cannot happen.
Rule 2: a finished call stays as it is; a late result is attached to it and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from msgspec import Struct

from everturn.core.events import (
    CallFinished,
    CallNotified,
    CallResumed,
    CallStarted,
    CallSuspended,
    Event,
    GateOpened,
    GateResolved,
    LateResultReceived,
    PermissionDecided,
    SubagentStarted,
    ToolStepFinished,
    ToolStepStarted,
    WaitFinished,
    WaitStarted,
)
from everturn.core.gates import GATE_KINDS_OF_RUNNING_TOOL, Gate, GateResolution
from everturn.core.loop_detection import fingerprint_of_text
from everturn.core.parts import CallState, Output
from everturn.errors import InvalidEvent

FINAL_CALL_STATES: Final[frozenset[CallState]] = frozenset(
    {"completed", "failed", "denied", "withheld", "cancelled", "outcome_unknown"}
)

_ASKED: Final[frozenset[CallState]] = frozenset({"running", "reviewing"})

CALL_TRANSITIONS: Final[dict[CallState, dict[type[Event], CallState | frozenset[CallState]]]] = {
    # An unknown tool, invalid arguments or a cancel finish a call that never opened a gate and never ran.
    "pending": {
        GateOpened: "asking",
        PermissionDecided: "pending",
        CallStarted: "running",
        CallFinished: FINAL_CALL_STATES,
    },
    # An answer sends it back to pending: the resolution is known, the effect has not started.
    "asking": {GateResolved: "pending", CallFinished: FINAL_CALL_STATES},
    # A running tool may open gates of its own and be suspended meanwhile; a person may have to review its result.
    "running": {
        GateOpened: _ASKED,
        GateResolved: "running",
        SubagentStarted: "running",
        ToolStepStarted: "running",
        ToolStepFinished: "running",
        WaitStarted: "running",
        WaitFinished: "running",
        CallNotified: "running",  # before it was suspended: the code that suspends it checks again
        CallSuspended: "waiting",
        CallFinished: FINAL_CALL_STATES,
    },
    # Events of what the tool did concurrently are still written.
    "waiting": {
        GateOpened: "waiting",
        GateResolved: "waiting",
        SubagentStarted: "waiting",
        ToolStepStarted: "waiting",
        ToolStepFinished: "waiting",
        WaitStarted: "waiting",
        WaitFinished: "waiting",
        CallSuspended: "waiting",
        CallNotified: "waiting",
        CallResumed: "running",
        CallFinished: FINAL_CALL_STATES,
    },
    "reviewing": {GateResolved: "reviewing", CallFinished: FINAL_CALL_STATES},
    "completed": {},
    "failed": {},
    "denied": {},
    "withheld": {},
    "cancelled": {LateResultReceived: "cancelled"},
    "outcome_unknown": {},
}


CallTransitionEvent = (
    PermissionDecided
    | GateOpened
    | GateResolved
    | CallStarted
    | SubagentStarted
    | ToolStepStarted
    | ToolStepFinished
    | WaitStarted
    | WaitFinished
    | CallSuspended
    | CallNotified
    | CallResumed
    | CallFinished
    | LateResultReceived
)


class CallRecord(Struct):
    """The state of one call, folded from its events."""

    id: str
    step: int
    index: int
    name: str
    arguments: str
    message: str = ""  # the answer that contains it
    state: CallState = "pending"
    gate: Gate | None = None
    resolution: GateResolution | None = None
    decision: PermissionDecided | None = None
    started: CallStarted | None = None
    review: Gate | None = None  # the review gate of its result
    reviewed: GateResolution | None = None
    identity: str = ""  # of the tool the model was offered
    fingerprint: str = ""  # its fingerprint, once its arguments were parsed
    recent_calls: tuple[str, ...] = ()  # fingerprints of the last calls of its sub-agent run
    parent: str = ""  # the call whose tool made it
    children: dict[int, tuple[str, str]] = {}  # number -> session and turn of a sub-agent run it started
    tool_steps: dict[str, ToolStepFinished | None] = {}  # name -> its end; None: it was started, and has not ended
    waits: dict[str, WaitStarted] = {}  # its timers and external results
    wait_results: dict[str, WaitFinished] = {}  # those that have arrived
    suspended: CallSuspended | None = None  # its last suspension, with the state that its tool saved
    output: Output | None = None  # its result
    is_notified: bool = False  # the sub-agent run it waits for is about to end
    is_late: bool = False
    is_still_running: bool = False  # its tool still runs although the call is finished

    @property
    def is_finished(self) -> bool:
        """Whether it has its final result."""
        return self.state in FINAL_CALL_STATES

    def advance(self, event: CallTransitionEvent) -> None:
        """Apply an event, or raise and leave the record unchanged.

        Raises:
            InvalidEvent: the table has no row for this event, or the event names another gate.
        """
        to = CALL_TRANSITIONS[self.state].get(type(event))
        if to is None:
            raise InvalidEvent(f"call {self.id} is {self.state}: {type(event).__name__} cannot happen")
        kind = type(event)
        if kind is CallStarted:
            self._start(cast("CallStarted", event))
        elif kind is CallFinished:
            self._finish(cast("CallFinished", event))
        elif kind is PermissionDecided:
            self._record_decision(cast("PermissionDecided", event))
        elif kind is GateOpened:
            self._ask(cast("GateOpened", event))
        elif kind is GateResolved:
            self._answer(cast("GateResolved", event))
        elif kind in _ASIDE:
            _ASIDE[kind](self, event)
        elif self.is_late:
            raise InvalidEvent(f"call {self.id} has a late result already")
        else:
            self.is_late, self.is_still_running = True, False

    def _record_decision(self, event: PermissionDecided) -> None:
        if self.decision is not None:
            raise InvalidEvent(f"call {self.id} was judged already")
        self.decision, self.fingerprint = event, event.fingerprint or self.fingerprint

    def _start(self, event: CallStarted) -> None:
        decision = self.decision
        if decision is None or not decision.allowed or (decision.tool, decision.hash) != (event.tool, event.hash):
            raise InvalidEvent(f"call {self.id} cannot start: this was not allowed")
        if self.resolution is not None and not self.resolution.allowed:
            raise InvalidEvent(f"call {self.id} was denied; it cannot start")
        self.started, self.state = event, "running"

    def _finish(self, event: CallFinished) -> None:
        if event.state not in FINAL_CALL_STATES:
            raise InvalidEvent(f"a call cannot be settled as {event.state}")
        if event.still_running and self.state != "running":
            raise InvalidEvent(f"call {self.id} is {self.state}: it has no tool that could run on")
        self.state, self.is_still_running, self.recent_calls, self.output = (
            event.state,
            event.still_running,
            event.recent_calls,
            event.output,
        )

    def _ask(self, event: GateOpened) -> None:
        if event.gate.kind in GATE_KINDS_OF_RUNNING_TOOL:
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
        if self.resolution is not None:
            raise InvalidEvent(f"call {self.id} has been answered already; it cannot ask again")
        if self.decision is not None and not self.decision.allowed:
            raise InvalidEvent(f"call {self.id} was denied; it cannot ask for approval any more")
        self.gate, self.state = event.gate, "asking"
        self.fingerprint = event.gate.fingerprint

    def _answer(self, event: GateResolved) -> None:
        if self.state in ("running", "waiting"):
            return  # its tool asked; the turn keeps these answers
        gate = self.open_gate
        if gate is None or gate.id != event.gate:
            raise InvalidEvent(f"call {self.id} does not wait at gate {event.gate}")
        if gate.kind == "result":
            self.reviewed = event.resolution
        else:
            self.resolution, self.state = event.resolution, "pending"

    def _descend(self, event: SubagentStarted) -> None:
        if event.number in self.children:
            raise InvalidEvent(f"call {self.id} has asked for its sub-agent run {event.number} before")
        self.children[event.number] = event.session, event.child

    def _start_tool_step(self, event: ToolStepStarted) -> None:
        step = self.tool_steps.get(event.name)
        if event.name in self.tool_steps and (step is None or not step.failed):
            raise InvalidEvent(f"call {self.id} has run its step {event.name!r} before")
        self.tool_steps[event.name] = None

    def _finish_tool_step(self, event: ToolStepFinished) -> None:
        if (step := self.tool_steps.get(event.name)) is not None and not step.failed:
            raise InvalidEvent(f"step {event.name!r} of call {self.id} has a value already")
        self.tool_steps[event.name] = event

    def _start_wait(self, event: WaitStarted) -> None:
        if event.wait in self.waits:
            raise InvalidEvent(f"call {self.id} waits for {event.wait} already")
        self.waits[event.wait] = event

    def _finish_wait(self, event: WaitFinished) -> None:
        if event.wait not in self.waits or event.wait in self.wait_results:
            raise InvalidEvent(f"call {self.id} does not wait for {event.wait}")
        self.wait_results[event.wait] = event

    def _pause(self, event: CallSuspended) -> None:
        self.suspended, self.state = event, "waiting"

    def _stir(self, event: CallNotified) -> None:
        self.is_notified = True

    def _resume(self, event: CallResumed) -> None:
        self.state, self.is_notified = "running", False

    @property
    def mark(self) -> str:
        """The fingerprint of the call, for loop detection: of its parsed arguments or, if those never parsed, of its
        text.
        """
        return self.fingerprint or fingerprint_of_text(self.name, self.arguments)

    @property
    def open_gate(self) -> Gate | None:
        """The gate it waits for, if any."""
        if self.state == "reviewing":
            return self.review if self.reviewed is None else None
        return self.gate if self.state == "asking" else None


def stop_output(call: CallRecord) -> Output:
    """The result of a call in a turn that a person stopped with a denial, of this call or another."""
    resolution = call.resolution
    if resolution is None or resolution.allowed:
        return Output("The person stopped the turn before this call ran; it had no effect.", code="denied")
    reason = f" and said why: {resolution.reason}" if resolution.reason else ""
    return Output(f"The person did not allow this call{reason}. The person stopped the turn.", code="denied")


_ASIDE: Final[dict[type[Event], Callable[[CallRecord, Any], None]]] = {
    SubagentStarted: CallRecord._descend,  # pyright: ignore[reportPrivateUsage]
    ToolStepStarted: CallRecord._start_tool_step,  # pyright: ignore[reportPrivateUsage]
    ToolStepFinished: CallRecord._finish_tool_step,  # pyright: ignore[reportPrivateUsage]
    WaitStarted: CallRecord._start_wait,  # pyright: ignore[reportPrivateUsage]
    WaitFinished: CallRecord._finish_wait,  # pyright: ignore[reportPrivateUsage]
    CallSuspended: CallRecord._pause,  # pyright: ignore[reportPrivateUsage]
    CallNotified: CallRecord._stir,  # pyright: ignore[reportPrivateUsage]
    CallResumed: CallRecord._resume,  # pyright: ignore[reportPrivateUsage]
}
