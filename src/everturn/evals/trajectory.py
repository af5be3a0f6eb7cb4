"""Trajectory: what a turn did, as checks see it: its answer, its tool calls, its gates and what it used. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from everturn.core.canonical_json import JsonObject, encode_canonical, parse_object
from everturn.core.events import (
    CallFinished,
    CallStarted,
    Event,
    GateOpened,
    GateResolved,
    PermissionDecided,
    StepFinished,
    StepInterrupted,
    TurnCancelled,
    TurnEvent,
    TurnFailed,
    TurnStarted,
)
from everturn.core.parts import TextPart, ToolPart, Usage
from everturn.replay.recording import Recording

Decision = Literal["", "allow", "ask", "deny"]
"""What permission rules decided about a call; "": they were not asked."""
Status = Literal["completed", "failed", "cancelled", "unfinished"]
CALL_GATES = ("call", "egress", "loop", "manual")
CallKey = tuple[str, str, str]
"""Identity of a call's tool, its name, and its canonical arguments."""


class EvalCall(Struct, frozen=True):
    """A tool call of a trajectory."""

    call: str
    tool: str
    identity: str
    arguments: JsonObject
    decision: Decision = ""
    approved: bool | None = None  # what the person answered at its gate; None: nobody was asked
    has_run: bool = False  # the tool was started
    acts: bool = True  # the tool changes something: it is not declared `read_only`, or not known
    state: str = ""  # of the finished call
    text: str = ""  # what the model read

    @property
    def key(self) -> CallKey:
        """What a recorded result belongs to, with the number of earlier calls with the same key."""
        return (self.identity, self.tool, encode_canonical(self.arguments))

    def __str__(self) -> str:
        """The tool and its canonical arguments."""
        return f"{self.tool} {encode_canonical(self.arguments)}"


class Trajectory(Struct, frozen=True):
    """What the turns of a recording did."""

    recording: Recording
    status: Status
    text: str  # of the last answer
    calls: tuple[EvalCall, ...] = ()
    steps: int = 0
    usage: Usage = Usage()
    seconds: float = 0.0  # from the first event to the last, waiting included
    problem: str = ""  # the error of a turn that failed
    problem_kind: str = ""

    @property
    def cost(self) -> float:
        """US dollars, as far as prices are known."""
        return self.usage.cost or 0.0

    @property
    def tokens(self) -> int:
        """Input and output tokens."""
        return self.usage.input + self.usage.output

    @property
    def actions(self) -> list[EvalCall]:
        """The calls that ran and act: what the turn did to the world."""
        return [call for call in self.calls if call.has_run and call.acts]


class _CallBuilder:
    def __init__(self, call: str, tool: str, arguments: str, identity: str = "") -> None:
        self.call, self.tool, self.arguments, self.identity = call, tool, arguments, identity
        self.decision: Decision = ""
        self.approved: bool | None = None
        self.has_run, self.acts, self.state, self.text = False, True, "", ""

    def build(self) -> EvalCall:
        return EvalCall(
            self.call,
            self.tool,
            self.identity,
            parse_object(self.arguments) or {},
            self.decision,
            self.approved,
            self.has_run,
            self.acts,
            self.state,
            self.text,
        )


def collect_calls(events: Sequence[Event]) -> list[EvalCall]:
    """List the calls of a log, in the order in which the model made them; calls that tools make are part of theirs."""
    calls: dict[str, _CallBuilder] = {}
    gates: dict[str, str] = {}  # gate -> its kind
    for event in events:
        match event:
            case StepFinished(parts=parts):
                for part in parts:
                    if isinstance(part, ToolPart):
                        calls[part.call] = _CallBuilder(part.call, part.name, part.arguments, part.identity)
            case GateOpened(gate=gate) if gate.call in calls:
                gates[gate.id] = gate.kind
                if gate.kind in CALL_GATES:
                    calls[gate.call].decision = "ask"
                    calls[gate.call].arguments = gate.arguments
                    calls[gate.call].identity = gate.identity
            case GateResolved(gate=gate, call=call, resolution=resolution) if (
                call in calls and gates.get(gate) in CALL_GATES
            ):
                calls[call].approved = resolution.allowed
            case PermissionDecided(call=call) if call in calls:
                calls[call].identity = event.identity
                if calls[call].decision == "":
                    calls[call].decision = "allow" if event.allowed else "deny"
            case CallStarted(call=call) if call in calls:
                calls[call].arguments, calls[call].has_run = event.arguments, True
                calls[call].acts = not event.read_only
            case CallFinished(call=call) if call in calls:
                calls[call].state, calls[call].text = event.state, event.output.text
            case _:
                pass
    return [call.build() for call in calls.values()]


def make_trajectory(recording: Recording) -> Trajectory:
    """Collect what the turns of a recording did."""
    turns = set(recording.turns)
    events = [event for event in recording.events if isinstance(event, TurnEvent) and event.turn in turns]
    steps = [event for event in events if isinstance(event, StepFinished | StepInterrupted)]
    answers = [step for step in steps if isinstance(step, StepFinished) and _text(step.parts)]
    usage = Usage()
    for step in steps:
        usage = usage + step.usage
    failures = [event.problem for event in events if isinstance(event, TurnFailed)]
    return Trajectory(
        recording,
        _status(events),
        _text(answers[-1].parts) if answers else "",
        tuple(collect_calls(events)),
        len(steps),
        usage,
        events[-1].at - events[0].at if events else 0.0,
        failures[0].text if failures else "",
        failures[0].kind if failures else "",
    )


def _status(events: Sequence[TurnEvent]) -> Status:
    kinds = {type(event).__name__ for event in events}
    if TurnFailed.__name__ in kinds:
        return "failed"
    if TurnCancelled.__name__ in kinds:
        return "cancelled"
    started = {event.turn for event in events if isinstance(event, TurnStarted)}
    over = {event.turn for event in events if type(event).__name__ == "TurnCompleted"}
    return "completed" if started and started == over else "unfinished"


def _text(parts: Sequence[object]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart))
