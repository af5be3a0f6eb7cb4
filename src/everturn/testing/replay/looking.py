"""A recording and a place in it → how things stood there, in words. Nothing is run: state is the log, folded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from everturn.core.asking import Gate
from everturn.core.calls import Call
from everturn.core.events import (
    CallJudged,
    CallMade,
    CallStarted,
    Event,
    GateOpened,
    LogEvent,
    StepStarted,
    TurnEvent,
)
from everturn.core.messages import Message
from everturn.core.state import (
    Action,
    AfterRequest,
    Done,
    Finalize,
    OpenAnswer,
    Request,
    SettleIncomplete,
    TurnState,
    Wait,
    WriteDeferred,
    decide,
    fold,
)
from everturn.errors import ConfigError
from everturn.testing.replay.recording import Recording
from everturn.testing.replay.script import plugins_of

KINDS: Final = {kind.__name__: kind for kind in LogEvent.__args__}
PLACES: Final = "a number, step:2, gate, call:NAME, or a kind of event such as CallStarted"
DIGITS: Final = 18  # of a number that could be one of an event
SHOWN: Final = 160  # characters of what is shown in one row


class Standing(Struct, frozen=True):
    """How a turn stood behind an event."""

    number: int  # of the event, from 1
    count: int
    event: Event
    state: TurnState
    next: Action


def place_of(recording: Recording, where: str) -> int:
    """The number of the first event that a word means, from 1; it is looked for in the turn that was recorded.

    Raises:
        ConfigError: there is none; it says what there is.
    """
    if where.isdecimal() and len(where) <= DIGITS:
        if not 1 <= int(where) <= len(recording.events):
            raise ConfigError(f"there is no event {where}; there are 1 to {len(recording.events)}")
        return int(where)
    fits = _fitting(where)
    turns = recording.turns
    for number, event in enumerate(recording.events, 1):
        if fits(event) and (not isinstance(event, TurnEvent) or event.turn in turns):
            return number
    there = sorted({type(one).__name__ for one in recording.events})
    raise ConfigError(f"nothing in this recording is {where!r}; its events are {', '.join(there)}")


def _fitting(where: str) -> Callable[[Event], bool]:
    word, _, about = where.partition(":")
    if word == "step" and about.isdecimal() and len(about) <= DIGITS:
        return lambda event: isinstance(event, StepStarted) and event.step == int(about)
    if where == "gate":
        return lambda event: isinstance(event, GateOpened)
    if word == "call" and about:
        return lambda event: _calls(event, about)
    if where in KINDS:
        return lambda event: type(event) is KINDS[where]
    raise ConfigError(f"--until {where}: that is no place; say {PLACES}")


def _calls(event: Event, name: str) -> bool:
    match event:
        case GateOpened(gate=gate):
            return gate.tool == name and bool(gate.call)
        case CallJudged(tool=tool) | CallStarted(tool=tool):
            return tool == name
        case CallMade(name=made):
            return made == name
        case _:
            return False


def stand(recording: Recording, number: int) -> Standing:
    """How things stood behind the event of that number.

    Raises:
        ConfigError: no turn was under way there.
    """
    event = recording.events[number - 1]
    if not isinstance(event, TurnEvent):
        raise ConfigError(f"event {number} is a {type(event).__name__}, which is of no turn; say another place")
    own = [one for one in recording.events[:number] if isinstance(one, TurnEvent) and one.turn == event.turn]
    state = fold(own)
    plugins = plugins_of(recording.events).get(event.turn, ())
    return Standing(number, len(recording.events), event, state, decide(state, plugins))


def told(at: Standing) -> list[tuple[str, str]]:
    """How things stood, as rows: what it is about, and what there is to say."""
    state = at.state
    step = f", step {state.step.number}" if state.step is not None else ""
    rows = [
        ("event", f"{at.number} of {at.count}: {type(at.event).__name__}"),
        ("turn", f"{state.id}{step}"),
        ("phase", str(state.phase)),
    ]
    rows += [("call" if not at else "", _call(call)) for at, call in enumerate(state.calls.values())]
    waiting = [gate for name, gate in state.asked.items() if state.gates[name] is None]
    rows += [("gate" if not at else "", _gate(gate)) for at, gate in enumerate(waiting)]
    rows += [("messages" if not at else "", row) for at, row in enumerate(_messages(state))]
    return [*rows, ("next", _next(at.next, state))]


def _call(call: Call) -> str:
    output = f": {call.output.text}" if call.output is not None else ""
    return _cut(f"{call.id} {call.name} {call.arguments} is {call.state}{output}")


def _gate(gate: Gate) -> str:
    return _cut(f"{gate.id} asks ({gate.kind}) about {gate.tool} {gate.arguments}: {gate.why}")


def _messages(state: TurnState) -> Iterator[str]:
    for message in state.messages.values():
        yield _cut(f"{message.role}{f' ({message.by})' if message.by else ''}: {_said(message)}")


def _said(message: Message) -> str:
    return " ".join(message.text.split()) or "(nothing yet)"


def _next(action: Action, state: TurnState) -> str:
    """What the state machine says comes next."""
    match action:
        case OpenAnswer():
            return "an answer is opened"
        case Request(step=step, closing=closing, again=again):
            how = "asked again" if again else "asked for a closing answer, without tools" if closing else "asked"
            return f"the model is {how} (step {step})"
        case SettleIncomplete(reason=reason):
            return f"the open calls are settled as incomplete: {reason}"
        case AfterRequest(plugins=plugins):
            return f"{', '.join(plugins)} {'goes' if len(plugins) == 1 else 'go'} on with this step"
        case WriteDeferred(appends=appends):
            return f"{len(appends)} deferred {'message joins' if len(appends) == 1 else 'messages join'} the turn"
        case Finalize(outcome=outcome):
            return f"the turn ends as {outcome}"
        case Wait():
            open_gates = [name for name, verdict in state.gates.items() if verdict is None]
            return f"it waits for {', '.join(open_gates) or 'something from outside'}"
        case Done():
            return "nothing: the turn is over"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
