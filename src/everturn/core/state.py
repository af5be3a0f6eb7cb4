"""The turn's state machine: `fold` reads the log, `decide` says what happens next.

Rule 1: every change of phase is a row in `TRANSITIONS`. If it is not in the table it cannot happen.
Rule 2: this file decides; it does not act. It reads no clock and awaits nothing.
Rule 3: there is nothing else to know. A process that takes a turn over reads the log, folds, decides, and goes on
        exactly as the one that began it would have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from everturn.core.calls import Call
from everturn.core.events import (
    AnswerOpened,
    Append,
    CallSettled,
    CallStarted,
    Event,
    GateAnswered,
    GateOpened,
    HookFinished,
    LateArrived,
    MessageAdded,
    Outcome,
    Problem,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TitleSet,
    TurnCancelled,
    TurnCompleted,
    TurnEnding,
    TurnEvent,
    TurnFailed,
    TurnOptions,
    TurnParked,
    TurnStarted,
    Verdict,
)
from everturn.core.messages import Message
from everturn.core.parts import Finish, ToolPart, Usage
from everturn.core.tree import absorb
from everturn.errors import InvalidEvent


class Phase(StrEnum):
    """Where a turn is, as anyone may see it. Each phase is announced before its work starts."""

    IDLE = "idle"
    PREPARING = "preparing"
    STREAMING = "streaming"
    TOOL_CALL = "tool_call"
    WAITING = "waiting"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    ERROR = "error"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        """Whether the turn is over."""
        return self in (Phase.COMPLETED, Phase.ERROR, Phase.CANCELLED)


_P = Phase

TRANSITIONS: Final[dict[Phase, dict[type[Event], Phase]]] = {
    _P.IDLE: {TurnStarted: _P.PREPARING},
    _P.PREPARING: {
        MessageAdded: _P.PREPARING,  # late results, offered before the first request
        AnswerOpened: _P.PREPARING,
        StepStarted: _P.STREAMING,
        TurnEnding: _P.FINALIZING,
    },
    _P.STREAMING: {
        StepRestarted: _P.STREAMING,
        StepFinished: _P.STREAMING,
        StepInterrupted: _P.STREAMING,
        HookFinished: _P.STREAMING,
        MessageAdded: _P.STREAMING,
        AnswerOpened: _P.STREAMING,
        StepStarted: _P.STREAMING,  # a plugin asked for another request
        GateOpened: _P.TOOL_CALL,
        CallStarted: _P.TOOL_CALL,
        CallSettled: _P.TOOL_CALL,
        TurnParked: _P.WAITING,
        TurnEnding: _P.FINALIZING,
    },
    _P.TOOL_CALL: {
        GateOpened: _P.TOOL_CALL,
        GateAnswered: _P.TOOL_CALL,
        CallStarted: _P.TOOL_CALL,
        CallSettled: _P.TOOL_CALL,
        HookFinished: _P.TOOL_CALL,
        MessageAdded: _P.TOOL_CALL,
        AnswerOpened: _P.TOOL_CALL,
        StepStarted: _P.STREAMING,
        TurnParked: _P.WAITING,
        TurnEnding: _P.FINALIZING,
    },
    _P.WAITING: {GateAnswered: _P.TOOL_CALL, TurnEnding: _P.FINALIZING},
    _P.FINALIZING: {
        CallSettled: _P.FINALIZING,
        TitleSet: _P.FINALIZING,
        LateArrived: _P.FINALIZING,
        TurnCompleted: _P.COMPLETED,
        TurnFailed: _P.ERROR,
        TurnCancelled: _P.CANCELLED,
    },
    _P.COMPLETED: {LateArrived: _P.COMPLETED},
    _P.ERROR: {LateArrived: _P.ERROR},
    _P.CANCELLED: {LateArrived: _P.CANCELLED},
}

_OUTCOME_OF: Final[dict[type[Event], Outcome]] = {
    TurnCompleted: "completed",
    TurnFailed: "error",
    TurnCancelled: "cancelled",
}


class Step(Struct):
    """One model request, the calls it made, and what plugins still want of it."""

    number: int
    closing: bool = False
    finish: Finish | None = None
    problem: Problem | None = None
    calls: list[Call] = field(default_factory=list[Call])
    done: set[str] = field(default_factory=set[str])  # plugins whose on_after_request is finished
    deferred: list[tuple[str, Append]] = field(default_factory=list[tuple[str, Append]])
    request: bool = False  # somebody asked for another step

    @property
    def is_open(self) -> bool:
        """Whether its stream is still to come, or under way."""
        return self.finish is None


class TurnState(Struct):
    """The fold of one turn's events. Owned by whoever folds; everyone else reads."""

    id: str
    phase: Phase = Phase.IDLE
    options: TurnOptions = TurnOptions()
    started: float = 0.0
    parent: str | None = None
    input: str | None = None
    untitled: bool = False
    messages: dict[str, Message] = {}  # the turn's own, in the order in which they joined: a chain
    tip: str | None = None
    answer: str | None = None
    step: Step | None = None
    calls: dict[str, Call] = {}
    gates: dict[str, Verdict | None] = {}  # every gate of this turn, with its answer
    usage: Usage = Usage()
    ending: TurnEnding | None = None

    @property
    def open_calls(self) -> list[Call]:
        """The calls without a result, in the order in which the model made them."""
        return [call for call in self.calls.values() if not call.is_settled]

    def apply(self, event: TurnEvent) -> None:  # noqa: C901 - a row per event, no logic of its own
        """Take one event in, or refuse it and stay as it was.

        Raises:
            InvalidEvent: it cannot happen here.
        """
        to = TRANSITIONS[self.phase].get(type(event))
        if to is None or event.turn != self.id:
            raise InvalidEvent(f"turn {self.id} is {self.phase}: {type(event).__name__} cannot happen")
        match event:
            case TurnStarted():
                self._start(event)
            case AnswerOpened(message=message):
                self._open(message)
            case MessageAdded(message=message, request=request):
                self._join(message)
                if self.step is not None:
                    self.step.request |= request
            case StepStarted(step=number, closing=closing):
                self._begin(number, closing)
            case StepRestarted(step=number):
                self._open_step(number)
            case StepFinished(step=number, parts=parts, finish=finish, usage=usage):
                self._finish(self._open_step(number), event, parts, finish)
                self.usage = self.usage + usage
            case StepInterrupted(step=number, parts=parts, finish=finish, problem=problem):
                step = self._open_step(number)
                self._finish(step, event, parts, finish)
                step.problem = problem
            case HookFinished(step=number, plugin=plugin, deferred=deferred):
                self._finish_hook(number, plugin, deferred)
            case GateOpened() | GateAnswered():
                self._advance_gate(event)
            case CallStarted() | CallSettled() | LateArrived():
                self._advance_call(event)
            case TurnParked(step=number):
                self._closed_step(number)
            case TurnEnding():
                self.ending = event
            case TitleSet():
                self.untitled = False
            case TurnCompleted() | TurnFailed() | TurnCancelled():
                self._end(event)
            case _:
                raise InvalidEvent(f"{type(event).__name__} is not an event of a turn")
        self.phase = to

    def _start(self, event: TurnStarted) -> None:
        if event.input is not None and event.input.parent != event.parent:
            raise InvalidEvent(f"message {event.input.id} does not follow {event.parent}")
        self.options, self.started, self.untitled = event.options, event.at, event.untitled
        self.parent = self.tip = event.parent
        if event.input is not None:
            self._join(event.input)
            self.input = event.input.id

    def _join(self, message: Message) -> None:
        if message.parent != self.tip or message.id in self.messages:
            raise InvalidEvent(f"message {message.id} does not follow {self.tip}")
        self.messages[message.id] = message
        self.tip = message.id

    def _open(self, message: Message) -> None:
        if self.answer is not None and self.answer == self.tip:
            raise InvalidEvent("there is an answer to write into already")
        self._settled_step()
        self._join(message)
        self.answer = message.id

    def _begin(self, number: int, closing: bool) -> None:
        last = self._settled_step()
        if number != last + 1 or self.answer is None or self.answer != self.tip:
            raise InvalidEvent(f"step {number} cannot follow step {last}")
        self.step = Step(number, closing)

    def _settled_step(self) -> int:
        if self.step is None:
            return 0
        if self.step.is_open or any(not call.is_settled for call in self.step.calls):
            raise InvalidEvent(f"step {self.step.number} is not settled yet")
        return self.step.number

    def _open_step(self, number: int) -> Step:
        if self.step is None or self.step.number != number or not self.step.is_open:
            raise InvalidEvent(f"step {number} is not open")
        return self.step

    def _closed_step(self, number: int) -> Step:
        if self.step is None or self.step.number != number or self.step.is_open:
            raise InvalidEvent(f"step {number} has not finished")
        return self.step

    def _finish(
        self, step: Step, event: StepFinished | StepInterrupted, parts: Sequence[object], finish: Finish
    ) -> None:
        made = [part for part in parts if isinstance(part, ToolPart)]
        ids = {part.call for part in made}
        if self.answer is None or len(ids) < len(made) or not ids.isdisjoint(self.calls):
            raise InvalidEvent(f"step {step.number} repeats a call")
        for index, part in enumerate(made):
            call = Call(part.call, step.number, index, part.name, part.arguments)
            self.calls[part.call] = call
            step.calls.append(call)
        self.messages[self.answer] = absorb(self.messages[self.answer], event)
        step.finish = finish

    def _finish_hook(self, number: int, plugin: str, deferred: tuple[Append, ...]) -> None:
        step = self._closed_step(number)
        if plugin in step.done:
            raise InvalidEvent(f"{plugin} was done with step {number} already")
        step.done.add(plugin)
        step.deferred += [(plugin, append) for append in deferred]

    def _advance_gate(self, event: GateOpened | GateAnswered) -> None:
        if isinstance(event, GateOpened):
            gate, called, verdict = event.gate.id, event.gate.call, None
            is_wrong = gate in self.gates
        else:
            gate, called, verdict = event.gate, event.call, event.verdict
            is_wrong = gate not in self.gates or self.gates[gate] is not None
        if is_wrong:
            raise InvalidEvent(f"gate {gate} was opened or answered already, or never opened")
        if called:  # a gate without a call is a plugin's own question
            self._advance_call(event)
        self.gates[gate] = verdict

    def _advance_call(self, event: GateOpened | GateAnswered | CallStarted | CallSettled | LateArrived) -> None:
        called = event.gate.call if isinstance(event, GateOpened) else event.call
        call = self.calls.get(called)
        if call is None:
            raise InvalidEvent(f"there is no call {called} in turn {self.id}")
        call.advance(event)
        # A call stands in the answer of its own step, which need not be the one being written now.
        for at in reversed(self.messages):
            changed = absorb(self.messages[at], event)
            if changed is not self.messages[at]:
                self.messages[at] = changed
                return

    def _end(self, event: TurnCompleted | TurnFailed | TurnCancelled) -> None:
        if self.ending is None or self.ending.outcome != _OUTCOME_OF[type(event)]:
            raise InvalidEvent(f"{type(event).__name__} is not how this turn was ending")
        if self.open_calls:
            raise InvalidEvent(f"{len(self.open_calls)} calls have no result yet")


def fold(events: Iterable[Event]) -> TurnState:
    """Read a turn's events from its first to its last.

    Raises:
        InvalidEvent: the events are not the log of one turn.
    """
    state: TurnState | None = None
    for event in events:
        if not isinstance(event, TurnEvent):
            raise InvalidEvent(f"{type(event).__name__} is not an event of a turn")
        if state is None:
            state = TurnState(event.turn)
        state.apply(event)
    if state is None:
        raise InvalidEvent("a turn has at least one event")
    return state


# What happens next -----------------------------------------------------------------------------------------------


class OpenAnswer(Struct, frozen=True):
    """Make the placeholder the next step writes into."""


class Request(Struct, frozen=True):
    """Ask the model: a new step, or once more the one whose driver died."""

    step: int
    closing: bool = False
    again: bool = False


class SettleIncomplete(Struct, frozen=True):
    """No step is left for these calls: they get their result without running."""


class AfterRequest(Struct, frozen=True):
    """Let these plugins do what they want of the step; they are not done with it."""

    plugins: tuple[str, ...]


class WriteDeferred(Struct, frozen=True):
    """Every plugin is done; what they deferred joins the tree, in this order."""

    appends: tuple[Append, ...]


class Finalize(Struct, frozen=True):
    """End the turn."""

    outcome: Outcome
    problem: Problem | None = None


class Wait(Struct, frozen=True):
    """Nothing can be done until something arrives."""


class Done(Struct, frozen=True):
    """The turn is over."""


Action = OpenAnswer | Request | SettleIncomplete | AfterRequest | WriteDeferred | Finalize | Wait | Done


def decide(state: TurnState, plugins: Sequence[str] = ()) -> Action:
    """Say what happens next in a turn; `plugins` are those with an `on_after_request`, in registration order."""
    step = state.step
    if state.phase.is_terminal:
        return Done()
    if state.ending is not None:
        return Finalize(state.ending.outcome, state.ending.problem)
    if state.phase is Phase.WAITING:
        return Wait()
    if step is None:
        return Request(1) if state.answer is not None else OpenAnswer()
    if step.is_open:
        return Request(step.number, step.closing, again=True)
    if step.finish == "cancelled":
        return Finalize("cancelled")
    if step.problem is not None:
        return Finalize("error", step.problem)
    return _after(state, step, plugins)


def _after(state: TurnState, step: Step, plugins: Sequence[str]) -> Action:
    """What happens once a step's stream has ended well."""
    is_last = step.closing or step.number >= state.options.max_steps
    if is_last and any(not call.is_settled for call in step.calls):
        return SettleIncomplete()
    if left := tuple(name for name in plugins if name not in step.done):
        return AfterRequest(left)
    if appends := _unwritten(state, step, plugins):
        return WriteDeferred(appends)
    wants_more = bool(step.calls) or step.request
    if not wants_more or step.closing:
        return Finalize("completed")
    if state.answer != state.tip:
        return OpenAnswer()
    return Request(step.number + 1, closing=is_last)


def _unwritten(state: TurnState, step: Step, plugins: Sequence[str]) -> tuple[Append, ...]:
    """The deferred appends that have not joined yet: high priority first, then in registration order."""
    rank = {name: at for at, name in enumerate(plugins)}
    ordered = sorted(step.deferred, key=lambda item: (-item[1].priority, rank.get(item[0], len(rank))))
    return tuple(append for _, append in ordered if append.message.id not in state.messages)
