"""State of a turn: `fold` reads its events, and each event changes the state as the table of handlers says.

Rule 1: every change of phase is a row in `phases.TRANSITIONS`. If it is not in the table it cannot happen.
Rule 2: `decide.decide` says what happens next; neither acts, reads a clock or awaits anything.
Rule 3: there is no other state. A process that takes over a turn reads the log, folds, decides, and continues exactly
        as the process that started it would have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final

from msgspec import Struct, field
from msgspec.structs import replace

from everturn.core.calls import CallRecord
from everturn.core.canonical_json import parse_object
from everturn.core.context.context_size import SUMMARIZE_AT, compaction_of
from everturn.core.events import (
    AgentSwitched,
    AnswerStarted,
    CallClaimed,
    CallFinished,
    CallNotified,
    CallResumed,
    CallStarted,
    CallSuspended,
    CompactionFailed,
    CompactionFinished,
    CompactionStarted,
    DeferredMessage,
    Event,
    FilesChanged,
    FileUploadChanged,
    GateOpened,
    GateResolved,
    HookFinished,
    InputRefused,
    LateResultReceived,
    LimitReached,
    MessageAdded,
    NestedCallRequested,
    Outcome,
    OutputRejected,
    PermissionDecided,
    Problem,
    RequestRetried,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    SubagentStarted,
    TitleSet,
    ToolStepFinished,
    ToolStepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnEvent,
    TurnFailed,
    TurnFinishing,
    TurnStarted,
    TurnSuspended,
    WaitFinished,
    WaitStarted,
)
from everturn.core.gate_rows import gate_deadline
from everturn.core.gates import GATE_KINDS_OF_RUNNING_TOOL, CallClaim, Gate, GateResolution
from everturn.core.messages import Message
from everturn.core.options import Spent, TurnOptions
from everturn.core.parts import (
    CompactionPart,
    ContextPart,
    Finish,
    NoticePart,
    ProviderToolPart,
    StreamedPart,
    SummaryPart,
    ToolPart,
    Usage,
    join_text,
)
from everturn.core.phases import TRANSITIONS, Phase
from everturn.core.tree import CallEvent, call_of_event, with_call, with_files, with_nested_call, with_step
from everturn.errors import InvalidEvent

_OUTCOME_OF: Final[dict[type[Event], Outcome]] = {
    TurnCompleted: "completed",
    TurnFailed: "error",
    TurnCancelled: "cancelled",
}


_HELD: Final = ("running", "waiting")


class StepState(Struct):
    """The state of one step: a model request, its calls, and the plugins that are not done with it."""

    number: int
    closing: bool = False
    instructions: str = ""
    finish: Finish | None = None
    broke_off: bool = False  # its stream was interrupted: none of its calls may start
    problem: Problem | None = None
    calls: list[CallRecord] = field(default_factory=list[CallRecord])
    done: set[str] = field(default_factory=set[str])  # plugins whose on_after_request is finished
    deferred: list[tuple[str, DeferredMessage]] = field(default_factory=list[tuple[str, DeferredMessage]])
    request: bool = False  # a plugin asked for another step
    is_handed_over: bool = False  # another agent has the turn now: no hook of this one is called for the step
    has_recovered: bool = False  # its request was too long, and the conversation was compacted for it
    continues: bool = False  # its text was cut at the output limit, and the next step continues it
    is_continuation: bool = False  # it continues the text of the step before
    loops: bool = False  # the model repeats itself: no plugin may ask for another step
    awaits_provider: bool = (
        False  # a call of a provider's tool has no result yet: nothing may join before the next step
    )

    @property
    def is_open(self) -> bool:
        """Whether its stream has not ended yet."""
        return self.finish is None


class Refusal(Struct, frozen=True):
    """Why a turn is refused: a plugin refused the message that it answers, or (with a `step`) what the model wrote."""

    text: str
    by: str = ""  # the plugin
    message: str = ""
    step: int = 0


class TurnState(Struct):
    """The fold of one turn's events. Only the code that folds may change it."""

    id: str
    phase: Phase = Phase.IDLE
    options: TurnOptions = TurnOptions()
    started: float = 0.0
    parent: str | None = None
    input: str | None = None
    messages: dict[str, Message] = {}  # the turn's own, in the order in which they were added: a chain
    tip: str | None = None
    answer: str | None = None
    step: StepState | None = None
    calls: dict[str, CallRecord] = {}
    gates: dict[str, GateResolution | None] = {}  # every gate of this turn -> its resolution
    gate_details: dict[str, Gate] = {}  # gate id -> gate
    waits: dict[str, WaitStarted] = {}  # open timers and external results of its tools
    claims: dict[str, CallClaim] = {}  # gate -> the client's claim of its call
    trees: dict[str, str] = {}  # root -> the tree that was recorded last
    has_suspended: bool = False
    has_nested_calls: bool = False  # one of its tools made nested calls
    rejected: dict[int, OutputRejected] = {}  # step -> its answer, which was not a valid output
    handoffs: int = 0
    has_rendered_instructions: bool = False
    usage: Usage = Usage()
    calls_started: int = 0  # calls that were started
    child_spend: Spent = Spent()  # by its sub-agent runs
    has_truncated: bool = False  # one of its results was truncated
    has_private: bool = False
    has_untrusted: bool = False
    continuations: int = 0  # steps that continue a text that was cut
    pauses: int = 0  # steps in a row, up to this one, that continue one that the provider paused
    compaction: CompactionStarted | None = None  # the summary that a model is asked for
    compaction_number: int = 0  # of the last one
    compaction_problem: Problem | None = None  # why the last one failed, until the person says something
    compactions: int = 0  # compactions among its messages
    strikes: int = 0  # compactions that failed or were of no use, since the person last said something
    judged_limit: int = 0  # the limit of a compaction whose use the next step shows
    limit: LimitReached | None = None
    raised_limit: int = 0  # the step limit that a person has set at the last one; 0: nobody has
    limit_gate: str = ""  # the last gate that asked whether to continue at the step limit
    is_stopped: bool = False  # a person denied a call and stopped the turn: no further request is sent
    refusal: Refusal | None = None  # then the turn ends with this text, and makes no further request
    needs_title: bool = False  # its session had no title when it started, and has none yet
    may_get_title: bool = False  # it is the first turn of its session, and no model has written a title
    ending: TurnFinishing | None = None

    @property
    def due(self) -> float:
        """The next deadline of the turn, one of its gates or one of its tools' waits; 0: none."""
        if self.ending is not None:
            return 0.0
        deadline = self.options.due(self.started, self.is_out_of_time)
        if not self.gate_details and not self.waits:
            return deadline
        expiries = (
            gate_deadline(gate, self.claims.get(name))
            for name, gate in self.gate_details.items()
            if self.is_gate_open(name)
        )
        timers = (wait.until for wait in self.waits.values())
        return min((time for time in (deadline, *expiries, *timers) if time), default=0.0)

    @property
    def max_steps(self) -> int:
        """The step limit that counts now."""
        return max(self.options.max_steps, self.raised_limit)

    @property
    def may_ask_at_limit(self) -> bool:
        """Whether a person is asked at the step limit: the client wanted that, and nobody has denied it."""
        answer = self.gates[self.limit_gate] if self.limit_gate else None
        return self.options.at_step_limit == "ask" and (answer is None or answer.allowed)

    @property
    def is_out_of_time(self) -> bool:
        """Whether the log records that its time budget is used up."""
        return self.limit is not None and self.limit.limit == "seconds"

    @property
    def spent(self) -> Spent:
        """Usage so far, sub-agent runs included."""
        return self.own_usage + self.child_spend

    @property
    def own_usage(self) -> Spent:
        """Usage so far, without sub-agent runs."""
        steps = 0 if self.step is None else self.step.number - self.step.is_open
        return Spent(steps, self.calls_started + self.usage.provider_calls, self.usage)

    def is_gate_open(self, gate: str) -> bool:
        """Whether a gate still waits: it has no answer, and its call was not finished without one."""
        opened = self.gate_details[gate]
        call = self.calls.get(opened.call)
        waits = ("running", "waiting") if opened.kind in GATE_KINDS_OF_RUNNING_TOOL else ("asking", "reviewing")
        if opened.kind == "limit" and self.limit is not None:  # a budget is used up: no step may follow
            return False
        return self.gates[gate] is None and (call is None or call.state in waits)

    @property
    def is_blocked(self) -> bool:
        """Whether a hook failed before the first request was sent: no model reads the message of this turn, now or
        later.
        """
        problem = None if self.ending is None else self.ending.problem
        is_unsent = self.step is None or (self.step.number == 1 and self.step.is_open)
        return self.phase is Phase.ERROR and is_unsent and problem is not None and problem.kind == "hook"

    @property
    def still_running(self) -> list[str]:
        """The finished calls whose tools still run."""
        return [call.id for call in self.calls.values() if call.is_still_running]

    @property
    def is_joinable(self) -> bool:
        """Whether a steering message may join now: between two steps, if another step may follow."""
        step = self.step
        if self.ending is not None or self.limit is not None or self.is_stopped or self.refusal is not None:
            return False
        if step is None:
            return self.answer is None
        if step.is_open or step.broke_off or step.closing or step.number >= self.max_steps:
            return False
        # An answer that was started is written first, or it would stay empty.
        is_blank = self.answer is not None and self.answer == self.tip and not self.messages[self.answer].parts
        return not is_blank and all(call.is_finished for call in step.calls)

    @property
    def open_calls(self) -> list[CallRecord]:
        """The calls without a result, in the order in which the model made them."""
        return [call for call in self.calls.values() if not call.is_finished]

    def apply(self, event: TurnEvent) -> None:
        """Apply one event, or raise and leave the state unchanged.

        Raises:
            InvalidEvent: the event cannot happen in this phase.
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
            self.has_untrusted = _has_untrusted_text(event.input)
        self.needs_title = self.may_get_title = event.untitled

    def _join(self, message: Message) -> None:
        if message.parent != self.tip or message.id in self.messages:
            raise InvalidEvent(f"message {message.id} does not follow {self.tip}")
        self.messages[message.id] = message
        self.tip = message.id

    def _append(self, event: MessageAdded) -> None:
        if event.command and not self.is_joinable:
            raise InvalidEvent(f"message {event.message.id} cannot join: turn {self.id} is not between two steps")
        self._join(event.message)
        self.has_untrusted |= _has_untrusted_text(event.message)
        if (compaction := compaction_of(event.message)) is not None:
            self._compact(compaction)
        if event.command:  # the person speaks: compactions may be tried again
            self.strikes, self.compaction_problem = 0, None
        if self.step is not None:
            self.step.request |= event.request
            self.step.continues &= compaction is not None  # a message that asks for another answer ends the text

    def _compact(self, part: CompactionPart) -> None:
        self.compactions += 1
        if self.step is not None and self.step.is_open:
            self.step.has_recovered = True
        if isinstance(part, SummaryPart):
            self.has_untrusted |= part.untrusted
            self.has_private |= part.private
            if part.text and part.why != "command":
                is_useless = part.after > part.before * SUMMARIZE_AT
                self.strikes, self.judged_limit = self.strikes + is_useless, 0 if is_useless else part.limit

    def _start_compaction(self, event: CompactionStarted) -> None:
        if self.compaction is not None or event.number != self.compaction_number + 1:
            raise InvalidEvent(f"compaction {event.number} cannot follow number {self.compaction_number}")
        self.compaction, self.compaction_number = event, event.number

    def _finish_compaction(self, event: CompactionFinished | CompactionFailed) -> None:
        if self.compaction is None or self.compaction.number != event.number:
            raise InvalidEvent(f"compaction {event.number} is not under way")
        self.usage = self.usage + event.usage
        self.compaction = None
        if isinstance(event, CompactionFailed):
            self.strikes, self.compaction_problem = self.strikes + 1, event.problem

    def _switch(self, event: AgentSwitched) -> None:
        if event.call:
            if self.step is None or self.open_calls or event.call not in self.calls:
                raise InvalidEvent(f"call {event.call} cannot hand the turn over: a call of its step is not finished")
            self.handoffs += 1
            self.step.is_handed_over = True
        self.options, self.has_rendered_instructions = event.options, not event.call

    def _reject(self, event: OutputRejected) -> None:
        self._open_step(event.step)
        self.rejected[event.step] = event  # again, if the process died before it had finished the step

    def _refuse(self, event: InputRefused) -> None:
        message = self.messages.get(event.message)
        if event.message == (self.parent if self.input is None else self.input):
            if self.step is not None or self.answer is not None or self.refusal is not None:
                raise InvalidEvent(f"message {event.message} cannot be refused: turn {self.id} has begun to answer it")
            self.refusal = Refusal(event.text, event.by, event.message)
        elif message is None or message.role != "user" or message.refused or event.message != self.tip:
            # A steering message is refused in the append in which it joins, or a model might have read it.
            raise InvalidEvent(f"message {event.message} cannot be refused: turn {self.id} has not just been sent it")
        if message is not None and message.turn == self.id:  # as in the tree and in the rows of stores
            self.messages[event.message] = replace(message, refused=True)

    def _open(self, event: AnswerStarted) -> None:
        message = event.message
        if self.answer is not None and self.answer == self.tip:
            raise InvalidEvent("there is an answer to write into already")
        self._last_finished_step()
        self._join(message)
        self.answer = message.id

    def _begin(self, event: StepStarted) -> None:
        number, last = event.step, self._last_finished_step()
        if self.compaction is not None:
            raise InvalidEvent(f"step {number} cannot start: compaction {self.compaction.number} is under way")
        if number != last + 1 or self.answer is None or self.answer != self.tip:
            raise InvalidEvent(f"step {number} cannot follow step {last}")
        is_continuation = self.step is not None and self.step.continues and not event.closing
        self.continuations += is_continuation
        is_after_pause = self.step is not None and self.step.finish == "paused"
        self.pauses = self.pauses + 1 if is_after_pause else 0
        self.step = StepState(number, event.closing, event.instructions, is_continuation=is_continuation)

    def _last_finished_step(self) -> int:
        if self.step is None:
            return 0
        if self.step.is_open or any(not call.is_finished for call in self.step.calls):
            raise InvalidEvent(f"step {self.step.number} is not settled yet")
        return self.step.number

    def _open_step(self, number: int) -> StepState:
        if self.step is None or self.step.number != number or not self.step.is_open:
            raise InvalidEvent(f"step {number} is not open")
        return self.step

    def _closed_step(self, number: int) -> StepState:
        if self.step is None or self.step.number != number or self.step.is_open:
            raise InvalidEvent(f"step {number} has not finished")
        return self.step

    def _restart(self, event: StepRestarted) -> None:
        self._open_step(event.step)

    def _retry(self, event: RequestRetried) -> None:
        self._open_step(event.step)

    def _upload(self, event: FileUploadChanged) -> None:
        if self.step is None or not self.step.is_open:
            raise InvalidEvent(f"no step is open for the upload {event.upload}")

    def _finish(self, event: StepFinished) -> None:
        if (event.refused or event.continues) and any(type(part) is ToolPart for part in event.parts):
            raise InvalidEvent(f"step {event.step} was refused or is continued: it has no calls")
        step = self._end_step(event)
        step.continues, step.loops = event.continues, event.loops
        if event.refused:
            self.refusal = Refusal(join_text(event.parts), event.refused, step=event.step)

    def _interrupt(self, event: StepInterrupted) -> None:
        step = self._end_step(event)
        step.broke_off, step.problem = True, event.problem

    def _end_step(self, event: StepFinished | StepInterrupted) -> StepState:
        step = self._open_step(event.step)
        tool_parts = [part for part in event.parts if type(part) is ToolPart]
        ids = {part.call for part in tool_parts}
        if self.answer is None or len(ids) < len(tool_parts) or not ids.isdisjoint(self.calls):
            raise InvalidEvent(f"step {step.number} repeats a call")
        for index, part in enumerate(tool_parts):
            call = CallRecord(part.call, step.number, index, part.name, part.arguments, self.answer)
            call.identity = part.identity
            self.calls[part.call] = call
            step.calls.append(call)
        self.messages[self.answer] = with_step(self.messages[self.answer], event)
        self.has_untrusted |= any(type(part) is ProviderToolPart for part in event.parts)
        self.usage = self.usage + event.usage
        if self.judged_limit and event.usage.input:
            self.strikes += event.usage.input > self.judged_limit * SUMMARIZE_AT
            self.judged_limit = 0
        step.finish = event.finish
        step.awaits_provider = event.finish == "paused" or _has_open_provider_call(event.parts)
        if event.step in self.rejected:
            if event.parts:  # the step was restarted, and this is another answer
                del self.rejected[event.step]
            else:
                step.request = True
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
        if gate.kind == "limit":
            self._check_limit_gate(gate)
            self.limit_gate = gate.id
        self.gates[gate.id] = None
        self.gate_details[gate.id] = gate

    def _check_limit_gate(self, gate: Gate) -> None:
        is_at_limit = self.step is not None and self.step.number >= self.max_steps and not self.step.closing
        if gate.call or not is_at_limit or limit_of_gate(gate) <= self.max_steps:
            raise InvalidEvent(f"gate {gate.id} does not raise the step limit of {self.max_steps} that was reached")
        if self.limit_gate and self.gates[self.limit_gate] is None:
            raise InvalidEvent(f"gate {gate.id} asks what gate {self.limit_gate} asks already")

    def _answer_gate(self, event: GateResolved) -> None:
        gate = self.gate_details.get(event.gate)
        if gate is None or gate.call != event.call or self.gates[event.gate] is not None:
            raise InvalidEvent(f"gate {event.gate} was answered already, or never opened for call {event.call!r}")
        if event.call:
            self._advance_call(event)
        self.gates[event.gate] = event.resolution
        if gate.kind == "limit" and event.resolution.allowed:
            self.raised_limit = limit_of_gate(gate)
        self.is_stopped |= event.resolution.stop and not event.resolution.allowed

    def _advance_call(self, event: CallEvent) -> None:
        call_id = call_of_event(event)
        call = self.calls.get(call_id)
        if call is None:
            raise InvalidEvent(f"there is no call {call_id} in turn {self.id}")
        if type(event) is CallStarted and (self.step is None or self.step.broke_off):
            raise InvalidEvent(f"the stream that made call {call_id} broke off; it cannot start")
        if type(event) is CallStarted and self.limit is not None:
            raise InvalidEvent(f"turn {self.id} has reached a limit; call {call_id} cannot start")
        if type(event) is CallSuspended:
            self._check_pause(call, event)
        call.advance(event)
        if type(event) is CallStarted:
            self.calls_started += 1
        elif type(event) is CallFinished:
            self._take(event)
        elif type(event) is WaitStarted:
            self.waits[event.wait] = event
        elif type(event) is WaitFinished:
            self.waits.pop(event.wait, None)
        if call.waits and call.state not in _HELD:  # its tool ended without them
            for name in call.waits:
                self.waits.pop(name, None)
        self.messages[call.message] = with_call(self.messages[call.message], call_id, event)

    def _check_pause(self, call: CallRecord, event: CallSuspended) -> None:
        """A suspended call may wait only for its own gates, calls and runs: the driver looks each of these up."""
        owns_gates = all(gate in self.gate_details and self.gate_details[gate].call == call.id for gate in event.gates)
        owns_calls = all(name in self.calls and self.calls[name].parent == call.id for name in event.calls)
        owns_run = not event.child or any(event.child == turn for _, turn in call.children.values())
        owns_waits = all(name in call.waits for name in event.waits)
        if not (owns_gates and owns_calls and owns_run and owns_waits):
            raise InvalidEvent(
                f"call {call.id} waits for a gate, a call, a wait or a sub-agent run that is not its own"
            )

    def _take(self, event: CallFinished) -> None:
        """Fold what a result contains beside its text."""
        output = event.output
        if event.spent is not None:
            self.child_spend = self.child_spend + event.spent
        self.has_truncated |= bool(output.blob)
        self.has_private |= bool(output.private) or output.sensitive
        self.has_untrusted |= output.untrusted

    def _make(self, event: NestedCallRequested) -> None:
        parent, step = self.calls.get(event.parent), self.step
        if parent is None or parent.state not in _HELD or event.call in self.calls or step is None:
            raise InvalidEvent(f"call {event.parent} does not run, or has made call {event.call} before")
        call = CallRecord(event.call, parent.step, len(step.calls), event.name, event.arguments, parent.message)
        call.identity, call.parent = event.identity, event.parent
        self.calls[call.id], self.has_nested_calls = call, True
        step.calls.append(call)
        self.messages[parent.message] = with_nested_call(self.messages[parent.message], event)

    def _claim(self, event: CallClaimed) -> None:
        if event.gate not in self.gate_details or not self.is_gate_open(event.gate):
            raise InvalidEvent(f"gate {event.gate} cannot be claimed: it is not open")
        self.claims[event.gate] = event.claim

    def _file(self, event: FilesChanged) -> None:
        self.trees[event.root] = event.after
        if self.answer is not None:
            self.messages[self.answer] = with_files(self.messages[self.answer], event)

    def _record_decision(self, event: PermissionDecided) -> None:
        call = self.calls.get(event.call)
        if call is None:
            raise InvalidEvent(f"there is no call {event.call} in turn {self.id}")
        call.advance(event)

    def _reach(self, event: LimitReached) -> None:
        # The time may run out after another limit was reached, because then nothing waits any more.
        if self.limit is not None and (event.limit != "seconds" or self.limit.limit == "seconds"):
            raise InvalidEvent(f"turn {self.id} has reached a limit already")
        self.limit = event

    def _suspend(self, event: TurnSuspended) -> None:
        self._closed_step(event.step)
        self.has_suspended = True

    def _name(self, event: TitleSet) -> None:
        self.needs_title = False
        if event.model:
            self.may_get_title, self.usage = False, self.usage + event.usage

    def _begin_to_end(self, event: TurnFinishing) -> None:
        self.ending = event

    def _end(self, event: TurnCompleted | TurnFailed | TurnCancelled) -> None:
        if self.ending is None or self.ending.outcome != _OUTCOME_OF[type(event)]:
            raise InvalidEvent(f"{type(event).__name__} is not how this turn was ending")
        if self.open_calls:
            raise InvalidEvent(f"{len(self.open_calls)} calls have no result yet")

    # By exact type, a row per event: a class pattern that does not match a Struct costs more than most of these.
    _handlers: ClassVar[dict[type[Event], Callable[[Any, Any], None]]] = {
        TurnStarted: _start,
        AgentSwitched: _switch,
        OutputRejected: _reject,
        CompactionStarted: _start_compaction,
        CompactionFinished: _finish_compaction,
        CompactionFailed: _finish_compaction,
        AnswerStarted: _open,
        MessageAdded: _append,
        InputRefused: _refuse,
        StepStarted: _begin,
        StepRestarted: _restart,
        RequestRetried: _retry,
        FileUploadChanged: _upload,
        StepFinished: _finish,
        StepInterrupted: _interrupt,
        HookFinished: _finish_hook,
        GateOpened: _open_gate,
        GateResolved: _answer_gate,
        PermissionDecided: _record_decision,
        LimitReached: _reach,
        CallStarted: _advance_call,
        SubagentStarted: _advance_call,
        ToolStepStarted: _advance_call,
        ToolStepFinished: _advance_call,
        WaitStarted: _advance_call,
        WaitFinished: _advance_call,
        CallSuspended: _advance_call,
        CallNotified: _advance_call,
        CallResumed: _advance_call,
        CallFinished: _advance_call,
        LateResultReceived: _advance_call,
        NestedCallRequested: _make,
        CallClaimed: _claim,
        FilesChanged: _file,
        TurnSuspended: _suspend,
        TitleSet: _name,
        TurnFinishing: _begin_to_end,
        TurnCompleted: _end,
        TurnFailed: _end,
        TurnCancelled: _end,
    }


def limit_of_gate(gate: Gate) -> int:
    """The step limit that an approval of a `limit` gate sets; 0: its arguments name none."""
    limit = (parse_object(gate.arguments) or {}).get("max_steps")
    return limit if type(limit) is int else 0


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


def _has_open_provider_call(parts: Sequence[StreamedPart]) -> bool:
    """Whether a provider's tool was called and its result is still to come: its own calls wait for those of others."""
    made = [part for part in parts if type(part) is ProviderToolPart]
    finished = {part.id for part in made if part.state != "called"}
    return any(part.state == "called" and part.id not in finished for part in made)


def _has_untrusted_text(message: Message) -> bool:
    """Whether a notice or attached context in a message quotes text of third parties."""
    return any(isinstance(part, NoticePart | ContextPart) and part.untrusted for part in message.parts)
