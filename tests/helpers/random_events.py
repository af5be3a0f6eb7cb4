"""Events that somebody made up: of every type, with names that are sometimes known and sometimes nobody's."""

from collections.abc import Callable

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
from everturn.core.gates import CallClaim, Gate, GateKind, GateResolution
from everturn.core.messages import Message
from everturn.core.parts import Output, StreamedPart, TextPart, ToolPart
from everturn.core.state import TurnState
from tests.helpers.simulated_driver import BROKEN, PLUGINS, Dice

Make = Callable[[TurnState, Dice, str], TurnEvent]


def _message(state: TurnState, dice: Dice) -> Message:
    name = dice.pick(f"wild{len(state.messages)}", *state.messages)
    return Message(name, dice.pick(state.tip, None, *state.messages), dice.pick("assistant", "notice", "user"))


def _number(state: TurnState, dice: Dice) -> int:
    return (state.step.number if state.step is not None else 0) + dice.pick(0, 1, 2, -1)


def _call(state: TurnState, dice: Dice) -> str:
    return dice.pick(*state.calls, "nobody")


def _parts(state: TurnState, dice: Dice) -> tuple[StreamedPart, ...]:
    names = (f"wild{len(state.calls)}", f"wild{len(state.calls)}b", *state.calls)
    tool_parts = [ToolPart(dice.pick(*names), "look", "{}") for _ in range(dice.pick(0, 1, 2))]
    return (TextPart("wild"), *tool_parts)


def _gate(state: TurnState, dice: Dice) -> Gate:
    name = dice.pick(f"wild{len(state.gates)}", *state.gates)
    kinds: tuple[GateKind, ...] = ("call", "result", "loop", "form", "client")
    called = dice.pick(*state.calls, "nobody", "")
    output = dice.pick(Output("wild"), None)
    return Gate(name, state.id, called, "look", "{}", "hash", kind=dice.pick(*kinds), output=output)


MAKE: dict[type[TurnEvent], Make] = {
    TurnStarted: lambda s, d, turn: TurnStarted(
        turn=turn, parent=d.pick(None, "p"), input=d.pick(None, _message(s, d))
    ),
    AgentSwitched: lambda s, d, turn: AgentSwitched(
        turn=turn, agent="wild", options=s.options, call=d.pick("", _call(s, d))
    ),
    OutputRejected: lambda s, d, turn: OutputRejected(
        turn=turn, step=_number(s, d), parts=(TextPart("wild"),), problem="wild"
    ),
    CompactionStarted: lambda s, d, turn: CompactionStarted(turn=turn, number=s.compaction_number + d.pick(0, 1, 2)),
    CompactionFinished: lambda s, d, turn: CompactionFinished(turn=turn, number=s.compaction_number + d.pick(0, 1)),
    CompactionFailed: lambda s, d, turn: CompactionFailed(
        turn=turn, number=s.compaction_number + d.pick(0, 1), problem=BROKEN
    ),
    AnswerStarted: lambda s, d, turn: AnswerStarted(turn=turn, message=_message(s, d)),
    MessageAdded: lambda s, d, turn: MessageAdded(turn=turn, message=_message(s, d), request=d.pick(False, True)),
    InputRefused: lambda s, d, turn: InputRefused(
        turn=turn, message=d.pick(s.tip or "nobody", "nobody", *s.messages), text="no", by="guard"
    ),
    StepStarted: lambda s, d, turn: StepStarted(turn=turn, step=_number(s, d), closing=d.pick(False, True)),
    StepRestarted: lambda s, d, turn: StepRestarted(turn=turn, step=_number(s, d)),
    RequestRetried: lambda s, d, turn: RequestRetried(
        turn=turn, step=_number(s, d), attempt=2, attempts=3, problem=BROKEN, model=d.pick("", "other")
    ),
    StepFinished: lambda s, d, turn: StepFinished(turn=turn, step=_number(s, d), parts=_parts(s, d), finish="stop"),
    StepInterrupted: lambda s, d, turn: StepInterrupted(
        turn=turn, step=_number(s, d), parts=_parts(s, d), finish=d.pick("cancelled", "error"), problem=BROKEN
    ),
    GateOpened: lambda s, d, turn: GateOpened(turn=turn, gate=_gate(s, d)),
    GateResolved: lambda s, d, turn: GateResolved(
        turn=turn,
        gate=d.pick(*s.gates, "none"),
        call=d.pick(_call(s, d), ""),
        resolution=GateResolution(d.pick(True, False), stop=d.pick(False, False, True)),
    ),
    PermissionDecided: lambda s, d, turn: PermissionDecided(
        turn=turn,
        call=_call(s, d),
        tool="look",
        identity="id",
        hash=d.pick("hash", "other"),
        allowed=d.pick(True, False),
        why="wild",
    ),
    LimitReached: lambda s, d, turn: LimitReached(turn=turn, limit="calls", scope="turn", text="wild"),
    CallStarted: lambda s, d, turn: CallStarted(
        turn=turn, call=_call(s, d), tool="look", arguments="{}", hash="hash", key="key"
    ),
    CallClaimed: lambda s, d, turn: CallClaimed(
        turn=turn, gate=d.pick(*s.gates, "none"), claim=CallClaim("page", d.pick(0.0, 60.0))
    ),
    NestedCallRequested: lambda s, d, turn: NestedCallRequested(
        turn=turn,
        call=d.pick(f"wild{len(s.calls)}", *s.calls),
        parent=_call(s, d),
        name="look",
        arguments="{}",
        identity="id",
    ),
    SubagentStarted: lambda s, d, turn: SubagentStarted(turn=turn, call=_call(s, d), session="s-wild", child="wild"),
    ToolStepStarted: lambda s, d, turn: ToolStepStarted(turn=turn, call=_call(s, d), name=d.pick("a", "b")),
    ToolStepFinished: lambda s, d, turn: ToolStepFinished(
        turn=turn, call=_call(s, d), name=d.pick("a", "b"), value="1", failed=d.pick(False, True)
    ),
    WaitStarted: lambda s, d, turn: WaitStarted(
        turn=turn,
        call=_call(s, d),
        wait=d.pick("w", *s.waits),
        kind=d.pick("timer", "external"),
        until=d.pick(0.0, 60.0),
    ),
    WaitFinished: lambda s, d, turn: WaitFinished(
        turn=turn, call=_call(s, d), wait=d.pick("w", *s.waits), value="1", timed_out=d.pick(False, True)
    ),
    CallSuspended: lambda s, d, turn: CallSuspended(
        turn=turn,
        call=_call(s, d),
        saved_state="wild",
        gates=d.pick((), ("none",), tuple(s.gates)),
        calls=d.pick((), ("nobody",), tuple(s.calls)),
        child=d.pick("", "wild"),
        waits=d.pick((), ("none",), tuple(s.waits)),
    ),
    CallNotified: lambda s, d, turn: CallNotified(turn=turn, call=_call(s, d)),
    CallResumed: lambda s, d, turn: CallResumed(turn=turn, call=_call(s, d)),
    FilesChanged: lambda s, d, turn: FilesChanged(
        turn=turn, step=_number(s, d), before=d.pick("", "a"), after=d.pick("a", "b"), call=d.pick("", _call(s, d))
    ),
    FileUploadChanged: lambda s, d, turn: FileUploadChanged(
        turn=turn, upload=d.pick("u", "v"), state=d.pick("started", "ready", "refused", "gone"), blob="b", account="a"
    ),
    CallFinished: lambda s, d, turn: CallFinished(
        turn=turn, call=_call(s, d), state=d.pick("completed", "failed", "pending", "running"), output=Output("wild")
    ),
    LateResultReceived: lambda s, d, turn: LateResultReceived(turn=turn, call=_call(s, d), output=Output("late")),
    HookFinished: lambda s, d, turn: HookFinished(
        turn=turn, step=_number(s, d), plugin=d.pick(*PLUGINS), deferred=d.pick((), (DeferredMessage(_message(s, d)),))
    ),
    TurnSuspended: lambda s, d, turn: TurnSuspended(turn=turn, step=_number(s, d)),
    TurnFinishing: lambda s, d, turn: TurnFinishing(turn=turn, outcome=d.pick("completed", "error", "cancelled")),
    TurnCompleted: lambda s, d, turn: TurnCompleted(turn=turn),
    TurnFailed: lambda s, d, turn: TurnFailed(turn=turn, problem=BROKEN),
    TurnCancelled: lambda s, d, turn: TurnCancelled(turn=turn),
    TitleSet: lambda s, d, turn: TitleSet(turn=turn, title="wild"),
}


def wild(state: TurnState, dice: Dice) -> TurnEvent:
    """Any event at all, mostly of this turn."""
    make = dice.pick(*MAKE.values())
    return make(state, dice, dice.pick(*([state.id] * 12), "another turn"))
