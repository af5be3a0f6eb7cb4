"""The turn's state machine: `fold` reads the log, `decide` says what happens next.

Rule 1: every change of phase is a row in `TRANSITIONS`. If it is not in the table it cannot happen.
Rule 2: this file decides; it does not act. It reads no clock and awaits nothing.
Rule 3: there is nothing else to know. A process that takes a turn over reads the log, folds, decides, and goes on
        exactly as the one that began it would have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, ClassVar, Final

from msgspec import Struct, field

from everturn.core.asking import WITHIN, Claimed, Gate, Verdict
from everturn.core.calls import Call
from everturn.core.events import (
    AnswerOpened,
    Append,
    CallBelow,
    CallJudged,
    CallMade,
    CallPaused,
    CallResumed,
    CallSettled,
    CallStarted,
    CallStirred,
    Event,
    FilesChanged,
    GateAnswered,
    GateClaimed,
    GateOpened,
    HookFinished,
    LateArrived,
    LimitReached,
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
    TurnParked,
    TurnStarted,
)
from everturn.core.gates import due_of
from everturn.core.messages import Message
from everturn.core.options import Spent, TurnOptions
from everturn.core.parts import Finish, ToolPart, Usage
from everturn.core.tree import CallEvent, called_by, with_call, with_files, with_made, with_step
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
        TitleSet: _P.PREPARING,  # with the first turn of a session
        MessageAdded: _P.PREPARING,  # late results, or a person's second thought, before the first request
        AnswerOpened: _P.PREPARING,
        LimitReached: _P.PREPARING,
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
        LimitReached: _P.STREAMING,
        FilesChanged: _P.STREAMING,
        CallJudged: _P.TOOL_CALL,
        GateOpened: _P.TOOL_CALL,
        CallSettled: _P.TOOL_CALL,
        TurnParked: _P.WAITING,
        TurnEnding: _P.FINALIZING,
    },
    _P.TOOL_CALL: {
        LimitReached: _P.TOOL_CALL,
        CallJudged: _P.TOOL_CALL,
        GateOpened: _P.TOOL_CALL,
        GateAnswered: _P.TOOL_CALL,
        GateClaimed: _P.TOOL_CALL,
        CallMade: _P.TOOL_CALL,
        CallStarted: _P.TOOL_CALL,
        CallBelow: _P.TOOL_CALL,
        CallPaused: _P.TOOL_CALL,
        CallStirred: _P.TOOL_CALL,
        CallResumed: _P.TOOL_CALL,
        CallSettled: _P.TOOL_CALL,
        FilesChanged: _P.TOOL_CALL,
        HookFinished: _P.TOOL_CALL,
        MessageAdded: _P.TOOL_CALL,
        AnswerOpened: _P.TOOL_CALL,
        StepStarted: _P.STREAMING,
        TurnParked: _P.WAITING,
        TurnEnding: _P.FINALIZING,
    },
    _P.WAITING: {
        GateAnswered: _P.TOOL_CALL,
        GateClaimed: _P.WAITING,
        CallStirred: _P.TOOL_CALL,
        LimitReached: _P.TOOL_CALL,
        TurnEnding: _P.FINALIZING,
    },
    _P.FINALIZING: {
        CallSettled: _P.FINALIZING,
        FilesChanged: _P.FINALIZING,
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


_HELD: Final = ("running", "waiting")


class Step(Struct):
    """One model request, the calls it made, and what plugins still want of it."""

    number: int
    closing: bool = False
    finish: Finish | None = None
    broke_off: bool = False  # its stream did not end well: none of its calls may start
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
    messages: dict[str, Message] = {}  # the turn's own, in the order in which they joined: a chain
    tip: str | None = None
    answer: str | None = None
    step: Step | None = None
    calls: dict[str, Call] = {}
    gates: dict[str, Verdict | None] = {}  # every gate of this turn, with its answer
    asked: dict[str, Gate] = {}  # what each of them shows
    claims: dict[str, Claimed] = {}  # gate -> the client that has its call
    trees: dict[str, str] = {}  # root -> the tree that was recorded last
    has_parked: bool = False
    has_made: bool = False  # some tool of it has made calls of its own
    usage: Usage = Usage()
    begun: int = 0  # calls that were started
    below: Spent = Spent()  # by its sub-turns
    has_cut: bool = False  # some result of it was too long to show
    has_private: bool = False
    has_untrusted: bool = False
    limit: LimitReached | None = None
    is_unnamed: bool = False  # its session had no title when it began, and has none yet
    ending: TurnEnding | None = None

    @property
    def due(self) -> float:
        """When something happens in it although nothing comes: it or a gate of it has had its time; 0: never."""
        if self.ending is not None:
            return 0.0
        deadline = self.options.due(self.started, self.is_out_of_time)
        expiries = (due_of(gate, self.claims.get(name)) for name, gate in self.asked.items() if self.is_asked(name))
        return min((time for time in (deadline, *expiries) if time), default=0.0)

    @property
    def is_out_of_time(self) -> bool:
        """Whether its budget of time is used up, and that was noticed."""
        return self.limit is not None and self.limit.limit == "seconds"

    @property
    def spent(self) -> Spent:
        """What it has used so far, its sub-turns included."""
        return self.own + self.below

    @property
    def own(self) -> Spent:
        """What it has used itself."""
        steps = 0 if self.step is None else self.step.number - self.step.is_open
        return Spent(steps, self.begun, self.usage)

    def is_asked(self, gate: str) -> bool:
        """Whether a gate still waits for its answer: it has none, and its call was not settled without one."""
        asked = self.asked[gate]
        call = self.calls.get(asked.call)
        waits = ("running", "waiting") if asked.kind in WITHIN else ("asking", "reviewing")
        return self.gates[gate] is None and (call is None or call.state in waits)

    @property
    def is_blocked(self) -> bool:
        """Whether a hook failed before the first request was sent: the model has read nothing of it, and never does."""
        problem = None if self.ending is None else self.ending.problem
        is_unsent = self.step is None or (self.step.number == 1 and self.step.is_open)
        return self.phase is Phase.ERROR and is_unsent and problem is not None and problem.kind == "hook"

    @property
    def out(self) -> list[str]:
        """The calls whose tools run on without the turn."""
        return [call.id for call in self.calls.values() if call.is_out]

    @property
    def is_joinable(self) -> bool:
        """Whether a person's message may join here: between two steps, and another may still follow."""
        step = self.step
        if self.ending is not None or self.limit is not None:
            return False
        if step is None:
            return self.answer is None
        if step.is_open or step.broke_off or step.closing or step.number >= self.options.max_steps:
            return False
        # An answer that was opened is written first, or it would stay empty.
        is_blank = self.answer is not None and self.answer == self.tip and not self.messages[self.answer].parts
        return not is_blank and all(call.is_settled for call in step.calls)

    @property
    def open_calls(self) -> list[Call]:
        """The calls without a result, in the order in which the model made them."""
        return [call for call in self.calls.values() if not call.is_settled]

    def apply(self, event: TurnEvent) -> None:
        """Take one event in, or refuse it and stay as it was.

        Raises:
            InvalidEvent: it cannot happen here.
        """
        to = TRANSITIONS[self.phase].get(type(event))
        if to is None or event.turn != self.id:
            raise InvalidEvent(f"turn {self.id} is {self.phase}: {type(event).__name__} cannot happen")
        self._handlers[type(event)](self, event)
        self.phase = to

    def _start(self, event: TurnStarted) -> None:
        if event.input is not None and event.input.parent != event.parent:
            raise InvalidEvent(f"message {event.input.id} does not follow {event.parent}")
        self.options, self.started = event.options, event.at
        self.parent = self.tip = event.parent
        if event.input is not None:
            self._join(event.input)
            self.input = event.input.id
        self.is_unnamed = event.untitled

    def _join(self, message: Message) -> None:
        if message.parent != self.tip or message.id in self.messages:
            raise InvalidEvent(f"message {message.id} does not follow {self.tip}")
        self.messages[message.id] = message
        self.tip = message.id

    def _append(self, event: MessageAdded) -> None:
        if event.command and not self.is_joinable:
            raise InvalidEvent(f"message {event.message.id} cannot join: turn {self.id} is not between two steps")
        self._join(event.message)
        if self.step is not None:
            self.step.request |= event.request

    def _open(self, event: AnswerOpened) -> None:
        message = event.message
        if self.answer is not None and self.answer == self.tip:
            raise InvalidEvent("there is an answer to write into already")
        self._settled_step()
        self._join(message)
        self.answer = message.id

    def _begin(self, event: StepStarted) -> None:
        number, last = event.step, self._settled_step()
        if number != last + 1 or self.answer is None or self.answer != self.tip:
            raise InvalidEvent(f"step {number} cannot follow step {last}")
        self.step = Step(number, event.closing)

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

    def _restart(self, event: StepRestarted) -> None:
        self._open_step(event.step)

    def _finish(self, event: StepFinished) -> None:
        self._end_step(event)

    def _interrupt(self, event: StepInterrupted) -> None:
        step = self._end_step(event)
        step.broke_off, step.problem = True, event.problem

    def _end_step(self, event: StepFinished | StepInterrupted) -> Step:
        step = self._open_step(event.step)
        made = [part for part in event.parts if type(part) is ToolPart]
        ids = {part.call for part in made}
        if self.answer is None or len(ids) < len(made) or not ids.isdisjoint(self.calls):
            raise InvalidEvent(f"step {step.number} repeats a call")
        for index, part in enumerate(made):
            call = Call(part.call, step.number, index, part.name, part.arguments, self.answer)
            call.identity = part.identity
            self.calls[part.call] = call
            step.calls.append(call)
        self.messages[self.answer] = with_step(self.messages[self.answer], event)
        self.usage = self.usage + event.usage
        step.finish = event.finish
        return step

    def _finish_hook(self, event: HookFinished) -> None:
        step = self._closed_step(event.step)
        if event.plugin in step.done:
            raise InvalidEvent(f"{event.plugin} was done with step {event.step} already")
        step.done.add(event.plugin)
        step.deferred += [(event.plugin, append) for append in event.deferred]

    def _open_gate(self, event: GateOpened) -> None:
        gate = event.gate
        if gate.id in self.gates:
            raise InvalidEvent(f"gate {gate.id} was opened already")
        if gate.call:
            self._advance_call(event)
        elif self.step is None or self.step.is_open:
            # A gate without a call is a plugin's own question, about a step that has finished.
            raise InvalidEvent(f"gate {gate.id} cannot open: no step of turn {self.id} has finished")
        self.gates[gate.id] = None
        self.asked[gate.id] = gate

    def _answer_gate(self, event: GateAnswered) -> None:
        asked = self.asked.get(event.gate)
        if asked is None or asked.call != event.call or self.gates[event.gate] is not None:
            raise InvalidEvent(f"gate {event.gate} was answered already, or never opened for call {event.call!r}")
        if event.call:
            self._advance_call(event)
        self.gates[event.gate] = event.verdict

    def _advance_call(self, event: CallEvent) -> None:
        called = called_by(event)
        call = self.calls.get(called)
        if call is None:
            raise InvalidEvent(f"there is no call {called} in turn {self.id}")
        if type(event) is CallStarted and (self.step is None or self.step.broke_off):
            raise InvalidEvent(f"the stream that made call {called} broke off; it cannot start")
        if type(event) is CallStarted and self.limit is not None:
            raise InvalidEvent(f"turn {self.id} has reached a limit; call {called} cannot start")
        if type(event) is CallPaused:
            self._check_pause(call, event)
        call.advance(event)
        if type(event) is CallStarted:
            self.begun += 1
        elif type(event) is CallSettled:
            self._take(event)
        self.messages[call.message] = with_call(self.messages[call.message], called, event)

    def _check_pause(self, call: Call, event: CallPaused) -> None:
        """A suspended call waits only for what it asked for itself: the driver looks each of these up."""
        asked = all(gate in self.asked and self.asked[gate].call == call.id for gate in event.gates)
        made = all(name in self.calls and self.calls[name].parent == call.id for name in event.calls)
        below = not event.below or any(event.below == turn for _, turn in call.below.values())
        if not (asked and made and below):
            raise InvalidEvent(f"call {call.id} waits for a gate, a call or a sub-turn that is not its own")

    def _take(self, event: CallSettled) -> None:
        """What a result brings beside its text."""
        output = event.output
        if event.spent is not None:
            self.below = self.below + event.spent
        self.has_cut |= bool(output.blob)
        self.has_private |= bool(output.private) or output.sensitive
        self.has_untrusted |= output.untrusted

    def _make(self, event: CallMade) -> None:
        parent, step = self.calls.get(event.parent), self.step
        if parent is None or parent.state not in _HELD or event.call in self.calls or step is None:
            raise InvalidEvent(f"call {event.parent} does not run, or has made call {event.call} before")
        call = Call(event.call, parent.step, len(step.calls), event.name, event.arguments, parent.message)
        call.identity, call.parent = event.identity, event.parent
        self.calls[call.id], self.has_made = call, True
        step.calls.append(call)
        self.messages[parent.message] = with_made(self.messages[parent.message], event)

    def _claim(self, event: GateClaimed) -> None:
        if event.gate not in self.asked or not self.is_asked(event.gate):
            raise InvalidEvent(f"gate {event.gate} cannot be claimed: nobody is asked")
        self.claims[event.gate] = event.claim

    def _file(self, event: FilesChanged) -> None:
        self.trees[event.root] = event.after
        if self.answer is not None:
            self.messages[self.answer] = with_files(self.messages[self.answer], event)

    def _judge(self, event: CallJudged) -> None:
        call = self.calls.get(event.call)
        if call is None:
            raise InvalidEvent(f"there is no call {event.call} in turn {self.id}")
        call.advance(event)

    def _reach(self, event: LimitReached) -> None:
        # The time may run out behind another limit, for then nothing is waited for.
        if self.limit is not None and (event.limit != "seconds" or self.limit.limit == "seconds"):
            raise InvalidEvent(f"turn {self.id} has reached a limit already")
        self.limit = event

    def _park(self, event: TurnParked) -> None:
        self._closed_step(event.step)
        self.has_parked = True

    def _name(self, event: TitleSet) -> None:
        self.is_unnamed = False

    def _begin_to_end(self, event: TurnEnding) -> None:
        self.ending = event

    def _end(self, event: TurnCompleted | TurnFailed | TurnCancelled) -> None:
        if self.ending is None or self.ending.outcome != _OUTCOME_OF[type(event)]:
            raise InvalidEvent(f"{type(event).__name__} is not how this turn was ending")
        if self.open_calls:
            raise InvalidEvent(f"{len(self.open_calls)} calls have no result yet")

    # By exact type, a row per event: a class pattern that misses on a Struct costs more than most of these do.
    _handlers: ClassVar[dict[type[Event], Callable[[Any, Any], None]]] = {
        TurnStarted: _start,
        AnswerOpened: _open,
        MessageAdded: _append,
        StepStarted: _begin,
        StepRestarted: _restart,
        StepFinished: _finish,
        StepInterrupted: _interrupt,
        HookFinished: _finish_hook,
        GateOpened: _open_gate,
        GateAnswered: _answer_gate,
        CallJudged: _judge,
        LimitReached: _reach,
        CallStarted: _advance_call,
        CallBelow: _advance_call,
        CallPaused: _advance_call,
        CallStirred: _advance_call,
        CallResumed: _advance_call,
        CallSettled: _advance_call,
        LateArrived: _advance_call,
        CallMade: _make,
        GateClaimed: _claim,
        FilesChanged: _file,
        TurnParked: _park,
        TitleSet: _name,
        TurnEnding: _begin_to_end,
        TurnCompleted: _end,
        TurnFailed: _end,
        TurnCancelled: _end,
    }


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
    """No step is left for the open calls, or no plugin wanted them: they get their result without running."""

    reason: str  # max_steps_reached | nobody_answered | the limit that was reached


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


_UNRUN: Final = ("pending", "asking")


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
        is_ready = state.answer is not None and state.answer == state.tip
        return Request(1, closing=state.limit is not None) if is_ready else OpenAnswer()
    if step.is_open:
        return Request(step.number, step.closing, again=True)
    if step.broke_off:
        return Finalize("cancelled" if step.finish == "cancelled" else "error", step.problem)
    return _after(state, step, plugins)


def _after(state: TurnState, step: Step, plugins: Sequence[str]) -> Action:
    """What happens once a step's stream has ended well."""
    limit = state.limit
    is_last = step.closing or step.number >= state.options.max_steps or limit is not None
    open_calls = [call for call in step.calls if not call.is_settled]
    # One that ran has something to say, limit or not.
    if is_last and open_calls and (limit is None or all(call.state in _UNRUN for call in open_calls)):
        return SettleIncomplete("max_steps_reached" if limit is None else f"{limit.limit}_limit_reached")
    if left := tuple(name for name in plugins if name not in step.done):
        return AfterRequest(left)
    if open_calls:
        return SettleIncomplete("nobody_answered")
    if appends := _unwritten(state, step, plugins):
        return WriteDeferred(appends)
    wants_more = bool(step.calls) or step.request
    if not wants_more or step.closing:
        return Finalize("completed")
    if state.answer != state.tip:
        return OpenAnswer()
    return Request(step.number + 1, closing=is_last)


def is_time_to_join(state: TurnState, action: Action) -> bool:
    """Whether a person's message may join before this action is carried out: after it, it would be too late for that."""
    is_between = isinstance(action, OpenAnswer | Finalize) or (isinstance(action, Request) and not action.again)
    return is_between and state.is_joinable


def _unwritten(state: TurnState, step: Step, plugins: Sequence[str]) -> tuple[Append, ...]:
    """The deferred appends that have not joined yet: high priority first, then in registration order."""
    rank = {name: at for at, name in enumerate(plugins)}
    ordered = sorted(step.deferred, key=lambda item: (-item[1].priority, rank.get(item[0], len(rank))))
    return tuple(append for _, append in ordered if append.message.id not in state.messages)
