"""Inspection of a recording: the state of a turn after one of its events, in words. Nothing runs: the log is folded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from everturn.core.calls import CallRecord
from everturn.core.decide import (
    AfterRequest,
    AskAtLimit,
    Compact,
    Finalize,
    FinishIncompleteCalls,
    RequestModel,
    StartAnswer,
    TurnAction,
    TurnDone,
    WaitForInput,
    WriteDeferred,
    decide,
)
from everturn.core.events import (
    CallStarted,
    Event,
    GateOpened,
    LogEvent,
    NestedCallRequested,
    PermissionDecided,
    StepStarted,
    TurnEvent,
)
from everturn.core.gates import Gate
from everturn.core.messages import Message
from everturn.core.state import TurnState, fold
from everturn.errors import ConfigError
from everturn.replay.recording import Recording
from everturn.replay.script import plugins_by_turn

KINDS: Final = {kind.__name__: kind for kind in LogEvent.__args__}
PLACES: Final = "a number, step:2, gate, call:NAME, or a kind of event such as CallStarted"
DIGITS: Final = 18  # at most, of the number of an event
SHOWN: Final = 160  # characters of one row


class TurnInspection(Struct, frozen=True):
    """State of a turn after an event."""

    number: int  # of the event, from 1
    count: int
    event: Event
    state: TurnState
    next: TurnAction


def find_event_number(recording: Recording, where: str) -> int:
    """Return the number of the first event that matches, from 1, in the recorded turn.

    Raises:
        ConfigError: there is none; the text lists the kinds of events.
    """
    if where.isdecimal() and len(where) <= DIGITS:
        if not 1 <= int(where) <= len(recording.events):
            raise ConfigError(f"there is no event {where}; there are 1 to {len(recording.events)}")
        return int(where)
    matches = _make_matcher(where)
    turns = recording.turns
    for number, event in enumerate(recording.events, 1):
        if matches(event) and (not isinstance(event, TurnEvent) or event.turn in turns):
            return number
    kinds = sorted({type(item).__name__ for item in recording.events})
    raise ConfigError(f"this recording has no event {where!r}; its events are {', '.join(kinds)}")


def _make_matcher(where: str) -> Callable[[Event], bool]:
    kind, _, detail = where.partition(":")
    if kind == "step" and detail.isdecimal() and len(detail) <= DIGITS:
        return lambda event: isinstance(event, StepStarted) and event.step == int(detail)
    if where == "gate":
        return lambda event: isinstance(event, GateOpened)
    if kind == "call" and detail:
        return lambda event: _is_about_tool(event, detail)
    if where in KINDS:
        return lambda event: type(event) is KINDS[where]
    raise ConfigError(f"--until {where}: this is not a place in a recording; write {PLACES}")


def _is_about_tool(event: Event, name: str) -> bool:
    match event:
        case GateOpened(gate=gate):
            return gate.tool == name and bool(gate.call)
        case PermissionDecided(tool=tool) | CallStarted(tool=tool):
            return tool == name
        case NestedCallRequested(name=nested_name):
            return nested_name == name
        case _:
            return False


def inspect_turn(recording: Recording, number: int) -> TurnInspection:
    """Return the state of the turn after the event of that number.

    Raises:
        ConfigError: the event belongs to no turn.
    """
    event = recording.events[number - 1]
    if not isinstance(event, TurnEvent):
        raise ConfigError(f"event {number} is a {type(event).__name__}, which belongs to no turn; choose another place")
    turn_events = [
        entry for entry in recording.events[:number] if isinstance(entry, TurnEvent) and entry.turn == event.turn
    ]
    state = fold(turn_events)
    plugins = plugins_by_turn(recording.events).get(event.turn, ())
    return TurnInspection(number, len(recording.events), event, state, decide(state, plugins))


def render_inspection(at: TurnInspection) -> list[tuple[str, str]]:
    """Render the state as rows of heading and text."""
    state = at.state
    step = f", step {state.step.number}" if state.step is not None else ""
    rows = [
        ("event", f"{at.number} of {at.count}: {type(at.event).__name__}"),
        ("turn", f"{state.id}{step}"),
        ("phase", str(state.phase)),
    ]
    rows += [("call" if not at else "", _call(call)) for at, call in enumerate(state.calls.values())]
    waiting = [gate for name, gate in state.gate_details.items() if state.gates[name] is None]
    rows += [("gate" if not at else "", _gate(gate)) for at, gate in enumerate(waiting)]
    rows += [("messages" if not at else "", row) for at, row in enumerate(_messages(state))]
    return [*rows, ("next", _next(at.next, state))]


def _call(call: CallRecord) -> str:
    output = f": {call.output.text}" if call.output is not None else ""
    return _shorten(f"{call.id} {call.name} {call.arguments} is {call.state}{output}")


def _gate(gate: Gate) -> str:
    return _shorten(f"{gate.id} asks ({gate.kind}) about {gate.tool} {gate.arguments}: {gate.why}")


def _messages(state: TurnState) -> Iterator[str]:
    for message in state.messages.values():
        yield _shorten(f"{message.role}{f' ({message.by})' if message.by else ''}: {_message_text(message)}")


def _message_text(message: Message) -> str:
    return " ".join(message.text.split()) or "(nothing yet)"


def _next(action: TurnAction, state: TurnState) -> str:
    """Describe what the state machine does next."""
    match action:
        case StartAnswer():
            return "an answer is opened"
        case RequestModel(step=step, closing=closing, again=again):
            verb = "asked again" if again else "asked for a closing answer, without tools" if closing else "asked"
            return f"the model is {verb} (step {step})"
        case Compact(started=started):
            return f"earlier messages are summarised{' again' if started is not None else ''}"
        case FinishIncompleteCalls(reason=reason):
            return f"the open calls are settled as incomplete: {reason}"
        case AskAtLimit(max_steps=limit, gate=gate):
            return f"it waits for {gate}" if gate else f"a person is asked for up to {limit} steps in all"
        case AfterRequest(plugins=plugins):
            return f"{', '.join(plugins)} {'goes' if len(plugins) == 1 else 'go'} on with this step"
        case WriteDeferred(appends=appends):
            return f"{len(appends)} deferred {'message joins' if len(appends) == 1 else 'messages join'} the turn"
        case Finalize(outcome=outcome):
            return f"the turn ends as {outcome}"
        case WaitForInput():
            open_gates = [name for name, resolution in state.gates.items() if resolution is None]
            return f"it waits for {', '.join(open_gates) or 'something from outside'}"
        case TurnDone():
            return "nothing: the turn is over"


def _shorten(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
