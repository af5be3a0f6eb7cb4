"""Events that somebody made up: of every type, with names that are sometimes known and sometimes nobody's."""

from collections.abc import Callable

from tests.core.simulate import BROKEN, PLUGINS, Dice

from everturn.core.asking import Claimed, Gate, GateKind, Verdict
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
    FilesChanged,
    GateAnswered,
    GateClaimed,
    GateOpened,
    HookFinished,
    LateArrived,
    LimitReached,
    MessageAdded,
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
from everturn.core.messages import Message
from everturn.core.parts import Output, StreamedPart, TextPart, ToolPart
from everturn.core.state import TurnState

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
    made = [ToolPart(dice.pick(*names), "look", "{}") for _ in range(dice.pick(0, 1, 2))]
    return (TextPart("wild"), *made)


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
    AnswerOpened: lambda s, d, turn: AnswerOpened(turn=turn, message=_message(s, d)),
    MessageAdded: lambda s, d, turn: MessageAdded(turn=turn, message=_message(s, d), request=d.pick(False, True)),
    StepStarted: lambda s, d, turn: StepStarted(turn=turn, step=_number(s, d), closing=d.pick(False, True)),
    StepRestarted: lambda s, d, turn: StepRestarted(turn=turn, step=_number(s, d)),
    StepFinished: lambda s, d, turn: StepFinished(turn=turn, step=_number(s, d), parts=_parts(s, d), finish="stop"),
    StepInterrupted: lambda s, d, turn: StepInterrupted(
        turn=turn, step=_number(s, d), parts=_parts(s, d), finish=d.pick("cancelled", "error"), problem=BROKEN
    ),
    GateOpened: lambda s, d, turn: GateOpened(turn=turn, gate=_gate(s, d)),
    GateAnswered: lambda s, d, turn: GateAnswered(
        turn=turn, gate=d.pick(*s.gates, "none"), call=d.pick(_call(s, d), ""), verdict=Verdict(d.pick(True, False))
    ),
    CallJudged: lambda s, d, turn: CallJudged(
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
        turn=turn, call=_call(s, d), tool="look", arguments="{}", hash="hash", effects="once", key="key"
    ),
    GateClaimed: lambda s, d, turn: GateClaimed(
        turn=turn, gate=d.pick(*s.gates, "none"), claim=Claimed("page", d.pick(0.0, 60.0))
    ),
    CallMade: lambda s, d, turn: CallMade(
        turn=turn,
        call=d.pick(f"wild{len(s.calls)}", *s.calls),
        parent=_call(s, d),
        name="look",
        arguments="{}",
        identity="id",
    ),
    CallBelow: lambda s, d, turn: CallBelow(turn=turn, call=_call(s, d), session="s-wild", below="wild"),
    CallPaused: lambda s, d, turn: CallPaused(
        turn=turn,
        call=_call(s, d),
        kept="wild",
        gates=d.pick((), ("none",), tuple(s.gates)),
        calls=d.pick((), ("nobody",), tuple(s.calls)),
        below=d.pick("", "wild"),
    ),
    CallStirred: lambda s, d, turn: CallStirred(turn=turn, call=_call(s, d)),
    CallResumed: lambda s, d, turn: CallResumed(turn=turn, call=_call(s, d)),
    FilesChanged: lambda s, d, turn: FilesChanged(
        turn=turn, step=_number(s, d), before=d.pick("", "a"), after=d.pick("a", "b"), call=d.pick("", _call(s, d))
    ),
    CallSettled: lambda s, d, turn: CallSettled(
        turn=turn, call=_call(s, d), state=d.pick("completed", "failed", "pending", "running"), output=Output("wild")
    ),
    LateArrived: lambda s, d, turn: LateArrived(turn=turn, call=_call(s, d), output=Output("late")),
    HookFinished: lambda s, d, turn: HookFinished(
        turn=turn, step=_number(s, d), plugin=d.pick(*PLUGINS), deferred=d.pick((), (Append(_message(s, d)),))
    ),
    TurnParked: lambda s, d, turn: TurnParked(turn=turn, step=_number(s, d)),
    TurnEnding: lambda s, d, turn: TurnEnding(turn=turn, outcome=d.pick("completed", "error", "cancelled")),
    TurnCompleted: lambda s, d, turn: TurnCompleted(turn=turn),
    TurnFailed: lambda s, d, turn: TurnFailed(turn=turn, problem=BROKEN),
    TurnCancelled: lambda s, d, turn: TurnCancelled(turn=turn),
    TitleSet: lambda s, d, turn: TitleSet(turn=turn, title="wild"),
}


def wild(state: TurnState, dice: Dice) -> TurnEvent:
    """Any event at all, mostly of this turn."""
    make = dice.pick(*MAKE.values())
    return make(state, dice, dice.pick(*([state.id] * 12), "another turn"))
