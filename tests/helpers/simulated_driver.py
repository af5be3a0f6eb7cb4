"""A driver without a world: answers every action of `decide` with events that could really follow it.

Its choices are read off bytes that hypothesis draws, so an example is cheap, and it shrinks towards the turn in which
nothing remarkable happens: when the bytes run out, every choice is the first one.
"""

from collections.abc import Iterator
from typing import TypeVar

from hypothesis import strategies as st
from msgspec.structs import replace

from everturn.core.calls import CALL_TRANSITIONS, CallRecord
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
    may_steering_join,
)
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
from everturn.core.gates import CallClaim, Gate, GateResolution
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.parts import CallState, Output, ReasoningPart, StreamedPart, SummaryPart, TextPart, ToolPart, Usage
from everturn.core.phases import Phase
from everturn.core.state import TurnState

T = TypeVar("T")

TOOLS, NOTES, IDLE = PLUGINS = ("tool_calling", "notes", "idle")
TERMINAL = (TurnCompleted, TurnFailed, TurnCancelled)
BROKEN = Problem("model", "the stream broke")


class Dice:
    """Choices, until they run out."""

    def __init__(self, rolls: bytes) -> None:
        self._all, self._rolls = rolls, iter(rolls)

    def pick(self, *options: T) -> T:
        return options[next(self._rolls, 0) % len(options)]

    def __repr__(self) -> str:
        return f"Dice({self._all!r})"


dice = st.binary(min_size=64, max_size=256).map(Dice)


class Play:
    """One turn, played to its end: `events` yields each event after the state has taken it in."""

    def __init__(self, dice: Dice, turn: str = "t", parent: str | None = None, has_input: bool = True) -> None:
        self.dice, self.turn = dice, turn
        self.state, self.log = TurnState(turn), list[TurnEvent]()
        message = Message(f"{turn}.in", parent, "user", (TextPart("hello"),), turn=turn) if has_input else None
        self._started = TurnStarted(
            turn=turn,
            parent=parent,
            input=message,
            options=TurnOptions(max_steps=dice.pick(3, 1, 2, 4), at_step_limit=dice.pick("answer", "ask")),
            untitled=dice.pick(True, False),
        )

    def events(self, rounds: int = 500) -> Iterator[TurnEvent]:
        yield self._take(self._started)
        if self._started.untitled:
            yield self._take(TitleSet(turn=self.turn, title="a title"))
        if self._started.input is not None and self.dice.pick(*([False] * 15), True):
            yield self._take(InputRefused(turn=self.turn, message=self._started.input.id, text="no", by="guard"))
        for _ in range(rounds):
            action = decide(self.state, PLUGINS)
            if isinstance(action, TurnDone):
                break
            for event in self._next(action):
                yield self._take(event)
                if self.dice.pick(False, False, False, False, False, True):
                    break  # the driver dies here, and another one decides anew
        assert self.state.phase.is_terminal, f"still {self.state.phase} after {rounds} rounds"
        for event in late(self.state, self.dice):
            yield self._take(event)

    def _next(self, action: TurnAction) -> Iterator[TurnEvent]:
        if self.state.ending is None and self.dice.pick(*([False] * 30), True):
            return cancelled(self.state, self.dice)
        if self.state.ending is None and self.state.limit is None and self.dice.pick(*([False] * 30), True):
            return iter([LimitReached(turn=self.turn, limit="calls", scope="turn", text="enough")])
        if may_steering_join(self.state, action) and self.dice.pick(*([False] * 5), True):
            return steered(self.state, self.dice)
        return carry_out(self.state, action, self.dice)

    def _take(self, event: TurnEvent) -> TurnEvent:
        self.state.apply(event)
        self.log.append(event)
        return event

    def to_end(self) -> "Play":
        for _ in self.events():
            pass
        return self


plays = dice.map(lambda dice: Play(dice).to_end())


def compacted(state: TurnState, started: CompactionStarted | None, dice: Dice) -> Iterator[TurnEvent]:
    """What a driver writes down when a summary was started."""
    turn, number = state.id, state.compaction_number
    if started is None or dice.pick(False, False, True):
        yield CompactionFailed(turn=turn, number=number, problem=Problem("summary", "empty"), usage=Usage(1, 1))
        return
    part = SummaryPart("so far", kept=started.kept, before=9, after=3, limit=10)
    name = f"{turn}.summary{len(state.messages)}"
    yield MessageAdded(turn=turn, message=Message(name, state.tip, "notice", (part,), turn=turn))
    yield CompactionFinished(turn=turn, number=number, usage=Usage(1, 1))


def carry_out(state: TurnState, action: TurnAction, dice: Dice) -> Iterator[TurnEvent]:  # noqa: C901 - a row per action
    """What a driver writes down while it does what `decide` said."""
    turn = state.id
    match action:
        case StartAnswer():
            if state.strikes < 2 and state.compactions < 2 and dice.pick(*([False] * 5), True):
                yield CompactionStarted(turn=turn, number=state.compaction_number + 1, used=9, limit=10)
                return
            news = f"{turn}.late"
            if state.step is None and news not in state.messages and dice.pick(False, False, True):
                yield MessageAdded(turn=turn, message=Message(news, state.tip, "notice", turn=turn))
            if state.step is None and dice.pick(False, False, True):
                yield AgentSwitched(turn=turn, agent="front", options=state.options)
            name = f"{turn}.answer{len(state.messages)}"
            yield AnswerStarted(turn=turn, message=Message(name, state.tip, "assistant", by="model", turn=turn))
        case RequestModel(step=step, closing=closing, again=again):
            if again:
                yield StepRestarted(turn=turn, step=step)
            else:
                yield StepStarted(turn=turn, step=step, closing=closing)
            if step == 2:
                for reached in ("started", "ready"):
                    yield FileUploadChanged(turn=turn, upload=f"{turn}.file", state=reached, blob="b", account="a")
            if step % 2 == 0:
                yield RequestRetried(turn=turn, step=step, attempt=2, attempts=3, problem=Problem("rate", "busy"))
            if not closing and dice.pick(False, False, False, False, True):
                yield OutputRejected(turn=turn, step=step, parts=(TextPart("no"),), problem="not JSON")
                yield StepFinished(turn=turn, step=step, parts=(), finish="stop", usage=Usage(1, 1))
            else:
                yield stream_end(turn, step, dice)
        case Compact(started=started):
            yield from compacted(state, started, dice)
        case FinishIncompleteCalls():
            for call in state.open_calls:
                yield settled(call, turn, "failed")
        case AskAtLimit(gate=gate) if gate:
            if dice.pick(*([False] * 7), True):
                yield from cancelled(state, dice)
            else:
                verdict = dice.pick(GateResolution(False, "no"), GateResolution(True))
                yield GateResolved(turn=turn, gate=gate, call="", resolution=verdict)
        case AskAtLimit(max_steps=limit):
            name, arguments = f"{turn}.limit{state.max_steps}", f'{{"max_steps":{limit}}}'
            gate = Gate(id=name, turn=turn, call="", tool="step_limit", arguments=arguments, hash="h", kind="limit")
            yield GateOpened(turn=turn, gate=gate)
        case AfterRequest(plugins=plugins):
            yield from after_request(state, plugins, dice)
        case WriteDeferred(appends=appends):
            for append in appends:
                message = replace(append.message, parent=state.tip)
                yield MessageAdded(turn=turn, message=message, request=append.request)
        case Finalize(outcome=outcome, problem=problem):
            if state.ending is None:
                yield TurnFinishing(turn=turn, outcome=outcome, problem=problem)
            yield from finish(state, dice)
        case WaitForInput():
            gates = [gate for gate in state.gates if state.is_gate_open(gate)]
            if dice.pick(*([False] * 7), True):
                yield from cancelled(state, dice)
            elif gates and dice.pick(False, False, False, True):
                yield claimed(state, dice.pick(*gates))
            elif (below := [call for call in state.open_calls if waits_below(call)]) and dice.pick(True, not gates):
                yield CallNotified(turn=turn, call=dice.pick(*below).id)
            elif state.waits and dice.pick(True, not gates):
                yield waited(state, dice.pick(*state.waits))
            elif gates:
                yield answered(state, dice.pick(*gates), dice)
            else:  # nobody was asked, so all that can still come is a cancel
                yield from cancelled(state, dice)
        case TurnDone():
            pass


def steered(state: TurnState, dice: Dice) -> Iterator[TurnEvent]:
    """What a person said meanwhile joins: one message, or two at once."""
    for _ in range(dice.pick(1, 2)):
        name = f"{state.id}.said{len(state.messages)}"
        message = Message(name, state.tip, "user", (TextPart("and then?"),), turn=state.id)
        is_refused = dice.pick(False, False, False, True)
        yield MessageAdded(turn=state.id, message=message, request=not is_refused, command=f"{name}.key")
        if is_refused:
            yield InputRefused(turn=state.id, message=name, text="no", by="guard")


def stream_end(turn: str, step: int, dice: Dice) -> TurnEvent:
    parts: list[StreamedPart] = [TextPart(f"step {step}"), *dice.pick([], [ReasoningPart("hm")])]
    for number in range(dice.pick(0, 1, 2, 0, 3)):
        parts.append(ToolPart(f"{turn}-{step}-{number}", "look", dice.pick("{}", '{"a":1}', '{"a')))
    whole = tuple(parts)
    match dice.pick("well", "well", "well", "well", "broken", "cancelled", "refused", "cut"):
        case "cut":
            fragment = (TextPart("cut in the mi"),)
            return StepFinished(
                turn=turn, step=step, parts=fragment, finish="length", usage=Usage(1, 1), continues=True
            )
        case "refused":
            return StepFinished(
                turn=turn, step=step, parts=(TextPart("no"),), finish="stop", usage=Usage(1, 1), refused="guard"
            )
        case "broken":
            return StepInterrupted(turn=turn, step=step, parts=whole, finish="error", problem=BROKEN)
        case "cancelled":
            return StepInterrupted(turn=turn, step=step, parts=whole, finish="cancelled")
        case _:
            return StepFinished(turn=turn, step=step, parts=whole, finish="stop", usage=Usage(1, 1))


def after_request(state: TurnState, plugins: tuple[str, ...], dice: Dice) -> Iterator[TurnEvent]:
    step, turn = state.step, state.id
    assert step is not None
    if dice.pick(*([False] * 8), True):
        yield filed(state, step.number)
    for call in step.calls:  # those included that are made meanwhile
        yield from move_call(state, call, dice) if state.limit is None else stop_call(state, call, dice)
    question = f"{turn}.ask{step.number}"
    for plugin in plugins:
        if plugin == TOOLS and any(not call.is_finished for call in step.calls):
            continue
        if plugin == NOTES:
            if question not in state.gates and dice.pick(False, False, False, True):
                yield GateOpened(turn=turn, gate=Gate(question, turn, "", "plugin:notes", "really?", "hash"))
            if question in state.gates and state.gates[question] is None:
                continue
            now = f"{turn}.now{step.number}"
            if now not in state.messages and dice.pick(False, False, True):
                message = Message(now, state.tip, "notice", (TextPart("note"),), by=plugin, turn=turn)
                yield MessageAdded(turn=turn, message=message, request=dice.pick(False, True))
        if plugin == IDLE and dice.pick(*([False] * 20), True):
            continue  # it waits for something that is not a gate
        if plugin == TOOLS and step.calls and state.phase is Phase.TOOL_CALL and dice.pick(False, False, False, True):
            yield AgentSwitched(turn=turn, agent="other", options=state.options, call=step.calls[0].id)
        appends = deferred(turn, step.number, plugin, dice)
        yield HookFinished(turn=turn, step=step.number, plugin=plugin, deferred=appends)
    left = [plugin for plugin in plugins if plugin not in step.done]
    if left and all(call.is_finished or call.open_gate is not None or waits(state, call) for call in step.calls):
        yield TurnSuspended(turn=turn, step=step.number)


def deferred(turn: str, step: int, plugin: str, dice: Dice) -> tuple[DeferredMessage, ...]:
    names = [f"{turn}.{plugin}.{step}.{at}" for at in range(dice.pick(0, 0, 1, 2))]
    messages = [Message(name, None, "notice", (TextPart(name),), by=plugin, turn=turn) for name in names]
    return tuple(DeferredMessage(message, dice.pick(0, 1, 2), dice.pick(False, True)) for message in messages)


def move_call(state: TurnState, call: CallRecord, dice: Dice) -> Iterator[TurnEvent]:
    """Move a call on by a few events, or leave it with a person."""
    turn = state.id
    if call.state == "pending" and call.resolution is None and call.decision is None and dice.pick(False, True):
        yield GateOpened(turn=turn, gate=Gate(f"{call.id}.gate", turn, call.id, "look", "{}", "hash"))
    if call.state == "asking" and call.gate is not None and dice.pick(False, False, True):
        yield GateResolved(
            turn=turn, gate=call.gate.id, call=call.id, resolution=GateResolution(dice.pick(True, False))
        )
    if call.state == "pending" and dice.pick(True, False):
        yield from start_call(call, turn)
    yield from reach(state, call, dice)
    if call.state == "running" and dice.pick(False, False, True):
        gate = Gate(f"{call.id}.review", turn, call.id, "look", "{}", "hash", kind="result", output=Output("it ran"))
        yield GateOpened(turn=turn, gate=gate)
    yield from end_call(call, turn, dice)


def reach(state: TurnState, call: CallRecord, dice: Dice) -> Iterator[TurnEvent]:  # noqa: C901 - a row per thing it may do
    """What a tool does to its turn while it runs: it calls, asks, has turns run, files, and is suspended meanwhile."""
    turn = state.id
    if call.state == "waiting" and not waits(state, call):
        yield CallResumed(turn=turn, call=call.id)
    if call.state != "running" or dice.pick(True, False):
        return
    nested, form = f"{call.id}.1", f"{call.id}.ask.1"
    if not call.parent and nested not in state.calls and dice.pick(False, True):
        yield NestedCallRequested(turn=turn, call=nested, parent=call.id, name="look", arguments="{}", identity="id")
    if form not in state.gates and dice.pick(False, True):
        gate = Gate(form, turn, call.id, "look", "{}", "hash", kind=dice.pick("form", "client"))
        yield GateOpened(turn=turn, gate=gate)
    if form in state.gates and state.gates[form] is None and dice.pick(False, False, True):
        yield claimed(state, form)
    if form in state.gates and state.gates[form] is None and dice.pick(False, False, True):
        yield answered(state, form, dice)
    yield from stepped(state, call, dice)
    if not call.children and dice.pick(False, True):
        yield SubagentStarted(turn=turn, call=call.id, session=f"s-{call.id}", child=f"{call.id}.below")
    if call.children and dice.pick(False, False, True):
        yield CallNotified(turn=turn, call=call.id)
    if dice.pick(False, False, False, True):
        assert state.step is not None
        yield filed(state, state.step.number, call.id)
    if dice.pick(False, True):
        yield paused(state, call, nested)
        if dice.pick(False, True):  # what it did at the same time is still written
            second = f"{call.id}.ask.2"
            if second not in state.gates:
                yield GateOpened(turn=turn, gate=Gate(second, turn, call.id, "look", "{}", "hash", kind="form"))
            if not call.children:
                yield SubagentStarted(turn=turn, call=call.id, session=f"s-{call.id}", child=f"{call.id}.below")
            yield from stepped(state, call, dice)
            yield paused(state, call, nested)


def stepped(state: TurnState, call: CallRecord, dice: Dice) -> Iterator[TurnEvent]:
    """A tool runs a step, and starts a wait that may finish at once."""
    turn, wait = state.id, f"{call.id}.wait.1"
    if not call.tool_steps and dice.pick(False, True):
        yield ToolStepStarted(turn=turn, call=call.id, name="step")
        if dice.pick(False, True):
            yield ToolStepFinished(turn=turn, call=call.id, name="step", value="1")
    if not call.waits and dice.pick(False, True):
        yield WaitStarted(turn=turn, call=call.id, wait=wait, kind=dice.pick("timer", "external"), until=60.0)
    if wait in state.waits and dice.pick(False, False, True):
        yield waited(state, wait)


def waited(state: TurnState, wait: str) -> WaitFinished:
    """A wait of a tool is over."""
    return WaitFinished(turn=state.id, call=state.waits[wait].call, wait=wait, value="1")


def paused(state: TurnState, call: CallRecord, nested: str) -> CallSuspended:
    """A tool is suspended until everything has come that has not come yet."""
    own = (f"{call.id}.ask.{number}" for number in (1, 2))
    gates = tuple(name for name in own if name in state.gates and state.gates[name] is None)
    calls = (nested,) if nested in state.calls and not state.calls[nested].is_finished else ()
    return CallSuspended(
        turn=state.id,
        call=call.id,
        saved_state="so far",
        gates=gates,
        calls=calls,
        child=next((turn for _, turn in call.children.values()), ""),
        waits=tuple(name for name in call.waits if name in state.waits),
    )


def waits(state: TurnState, call: CallRecord) -> bool:
    """Whether a call was suspended and something it waits for has not come."""
    if call.state != "waiting" or call.suspended is None:
        return False
    return (
        any(state.gates[gate] is None for gate in call.suspended.gates)
        or any(not state.calls[name].is_finished for name in call.suspended.calls)
        or any(name in state.waits for name in call.suspended.waits)
        or waits_below(call)
    )


def waits_below(call: CallRecord) -> bool:
    """Whether a call was suspended until a sub-agent run is over, and it is not."""
    is_below = call.state == "waiting" and call.suspended is not None and bool(call.suspended.child)
    return is_below and not call.is_notified


def claimed(state: TurnState, gate: str) -> CallClaimed:
    return CallClaimed(turn=state.id, gate=gate, claim=CallClaim("page", 60.0))


def filed(state: TurnState, step: int, call: str = "") -> FilesChanged:
    before = state.trees.get("", "")
    return FilesChanged(turn=state.id, step=step, before=before, after=f"{before}x", call=call)


def start_call(call: CallRecord, turn: str) -> Iterator[TurnEvent]:
    """What was decided about it, and what follows from that; one that died in between leaves the second to another."""
    is_allowed = call.resolution is None or call.resolution.allowed
    if call.decision is None:
        yield judged(call, turn, is_allowed)
    if call.decision is not None and call.decision.allowed and call.decision.hash != "hash":
        yield settled(call, turn, "failed")  # it was allowed for other arguments
    elif is_allowed and call.decision is not None and call.decision.allowed:
        yield CallStarted(turn=turn, call=call.id, tool="look", arguments="{}", hash="hash", key=call.id)
    else:
        yield settled(call, turn, "denied")


def end_call(call: CallRecord, turn: str, dice: Dice) -> Iterator[TurnEvent]:
    """Give a call its result, once a person has read it where one is to."""
    if call.review is not None and call.open_gate is not None and dice.pick(False, True):
        yield GateResolved(
            turn=turn, gate=call.review.id, call=call.id, resolution=GateResolution(dice.pick(True, False))
        )
    if call.state == "reviewing" and call.reviewed is not None:
        yield settled(call, turn, "completed" if call.reviewed.allowed else "withheld")
    elif call.state in ("pending", "running"):
        yield settled(call, turn, dice.pick("completed", "failed", "outcome_unknown", "cancelled"))


def stop_call(state: TurnState, call: CallRecord, dice: Dice) -> Iterator[TurnEvent]:
    """A limit is reached: what did not begin does not begin, and what did comes to its end."""
    if call.state in ("pending", "asking"):
        yield settled(call, state.id, "failed")
        return
    if call.state == "waiting":
        yield settled(call, state.id, "cancelled") if waits(state, call) else CallResumed(turn=state.id, call=call.id)
    yield from end_call(call, state.id, dice)


def answered(state: TurnState, gate: str, dice: Dice) -> GateResolved:
    resolution = dice.pick(GateResolution(True), GateResolution(False, "no"), GateResolution(True, arguments='{"b":2}'))
    return GateResolved(turn=state.id, gate=gate, call=state.gate_details[gate].call, resolution=resolution)


def cancelled(state: TurnState, dice: Dice) -> Iterator[TurnEvent]:
    """Somebody cancels, in any phase."""
    step, parts = state.step, (TextPart("so f"),)
    if step is not None and step.is_open and dice.pick(True, False):
        yield StepInterrupted(turn=state.id, step=step.number, parts=parts, finish="cancelled")
    yield TurnFinishing(turn=state.id, outcome="cancelled", hard=dice.pick(False, True))
    yield from finish(state, dice)


def finish(state: TurnState, dice: Dice) -> Iterator[TurnEvent]:
    assert state.ending is not None
    for call in state.open_calls:
        yield settled(call, state.id, "cancelled")
    if state.step is not None and dice.pick(*([False] * 5), True):
        yield filed(state, state.step.number)
    yield from late(state, dice)
    if dice.pick(True, False):  # where logs of the first version have it
        yield TitleSet(turn=state.id, title="a title")
    match state.ending.outcome:
        case "completed":
            yield TurnCompleted(turn=state.id, usage=state.usage)
        case "error":
            yield TurnFailed(turn=state.id, problem=state.ending.problem or BROKEN)
        case "cancelled":
            yield TurnCancelled(turn=state.id)


def late(state: TurnState, dice: Dice) -> Iterator[TurnEvent]:
    """Tools that outlived their calls hand in what they have."""
    for call in state.calls.values():
        if LateResultReceived in CALL_TRANSITIONS[call.state] and not call.is_late and dice.pick(False, True):
            yield LateResultReceived(turn=state.id, call=call.id, output=Output("late"))


def judged(call: CallRecord, turn: str, is_allowed: bool) -> PermissionDecided:
    why = "so say the rules"
    return PermissionDecided(
        turn=turn, call=call.id, tool="look", identity="id", hash="hash", allowed=is_allowed, why=why
    )


def settled(call: CallRecord, turn: str, state: CallState) -> CallFinished:
    return CallFinished(turn=turn, call=call.id, state=state, output=Output(f"it {state}"))
