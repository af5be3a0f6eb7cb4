"""The turn's machine: what may happen, what happens next, and that both are all there is."""

import random
import typing
from itertools import pairwise

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.helpers.random_events import MAKE, wild
from tests.helpers.simulated_driver import BROKEN, PLUGINS, TERMINAL, Dice, Play, carry_out, dice, plays

from everturn.core.calls import FINAL_CALL_STATES
from everturn.core.decide import (
    RequestModel,
    StartAnswer,
    TurnDone,
    WaitForInput,
    WriteDeferred,
    decide,
    may_steering_join,
)
from everturn.core.events import (
    AnswerStarted,
    CallFinished,
    CallStarted,
    CallSuspended,
    CompactionFailed,
    CompactionFinished,
    DeferredMessage,
    GateOpened,
    GateResolved,
    HookFinished,
    LateResultReceived,
    LimitReached,
    LogEvent,
    MessageAdded,
    PermissionDecided,
    Problem,
    StepFinished,
    StepInterrupted,
    StepStarted,
    TurnEvent,
    TurnFailed,
    TurnFinishing,
    TurnStarted,
)
from everturn.core.gates import Gate, GateResolution
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.parts import Output, ToolPart
from everturn.core.phases import TRANSITIONS, Phase
from everturn.core.state import TurnState, fold
from everturn.errors import InvalidEvent


def as_bytes(state: TurnState) -> bytes:
    return msgspec.json.encode(state)


def apply_or_refuse(state: TurnState, event: TurnEvent) -> bool:
    """Give the state an event, and check that it either moved by the table or did not move at all."""
    before, phase = as_bytes(state), state.phase
    try:
        state.apply(event)
    except InvalidEvent:
        assert as_bytes(state) == before
        return False
    assert state.phase is TRANSITIONS[phase][type(event)]
    return True


def test_the_made_up_events_are_of_every_type_a_turn_has():
    assert set(MAKE) == {event for event in typing.get_args(LogEvent) if issubclass(event, TurnEvent)}


def test_the_simulated_turns_take_every_row_of_the_table():
    chance, rows = random.Random(5), set[tuple[Phase, type[TurnEvent]]]()
    for _ in range(1200):
        play = Play(Dice(chance.randbytes(200)))
        phase = play.state.phase
        for event in play.events():
            rows.add((phase, type(event)))
            phase = play.state.phase

    assert rows == {(phase, event) for phase, row in TRANSITIONS.items() for event in row}


def check_shape(state: TurnState, log: list[TurnEvent]) -> None:
    """What holds of every turn, whoever wrote its events and in whatever order."""
    names = list(state.messages)
    assert [message.parent for message in state.messages.values()] == [state.parent, *names][: len(names)], "a chain"
    assert state.tip == (names[-1] if names else state.parent)
    assert {event.turn for event in log} <= {state.id}
    steps = [event.step for event in log if isinstance(event, StepStarted)]
    assert steps == list(range(1, len(steps) + 1))
    for unique in (
        [event.step for event in log if isinstance(event, StepFinished | StepInterrupted)],
        [event.call for event in log if isinstance(event, CallFinished)],
        [event.call for event in log if isinstance(event, CallStarted)],
        [event.call for event in log if isinstance(event, PermissionDecided)],
        ["the limit" for event in log if isinstance(event, LimitReached)],
        [event.gate for event in log if isinstance(event, GateResolved)],
        [event.gate.id for event in log if isinstance(event, GateOpened)],
        [(event.step, event.plugin) for event in log if isinstance(event, HookFinished)],
        ["the end" for event in log if isinstance(event, TERMINAL)],
    ):
        assert len(unique) == len(set(unique))
    parts = [part for message in state.messages.values() for part in message.parts if isinstance(part, ToolPart)]
    assert {part.call: part.state for part in parts} == {call.id: call.state for call in state.calls.values()}
    assert len(parts) == len(state.calls)
    allowed = {event.call for event in log if isinstance(event, PermissionDecided) and event.allowed}
    assert {event.call for event in log if isinstance(event, CallStarted)} <= allowed
    if state.phase.is_terminal:
        assert state.ending is not None
        assert state.ending.outcome == state.phase
        assert all(part.state in FINAL_CALL_STATES and part.output is not None for part in parts)


@given(dice)
def test_any_event_advances_by_the_table_or_is_refused_and_changes_nothing(dice: Dice):
    state, log = TurnState("t"), list[TurnEvent]()
    for _ in range(80):
        action = decide(state, PLUGINS)
        is_wild = state.phase is Phase.IDLE or isinstance(action, WaitForInput | TurnDone) or dice.pick(True, False)
        made_up = wild(state, dice)
        event = made_up if is_wild else next(carry_out(state, action, dice), made_up)
        if apply_or_refuse(state, event):
            log.append(event)
            check_shape(state, log)


@given(dice, dice)
def test_at_any_moment_of_a_real_turn_a_made_up_event_advances_or_changes_nothing(dice: Dice, other: Dice):
    play = Play(dice)
    for _ in play.events():
        copy = fold(play.log)
        for make in MAKE.values():
            event = make(copy, other, "t")
            if apply_or_refuse(copy, event):
                check_shape(copy, [*play.log, event])
                copy = fold(play.log)


@given(plays)
def test_the_log_folds_to_the_same_state_as_the_turn_that_wrote_it(play: Play):
    assert fold(play.log) == play.state


@given(plays)
def test_a_turn_has_one_terminal_event_and_only_late_results_follow_it(play: Play):
    ends = [at for at, event in enumerate(play.log) if isinstance(event, TERMINAL)]

    assert len(ends) == 1
    assert all(isinstance(event, LateResultReceived) for event in play.log[ends[0] + 1 :])


@given(plays, dice)
def test_nothing_but_a_late_result_happens_in_a_terminal_phase(play: Play, dice: Dice):
    phase = play.state.phase
    assert phase.is_terminal
    for _ in range(40):
        event = wild(play.state, dice)
        assert not apply_or_refuse(play.state, event) or isinstance(event, LateResultReceived)
        assert play.state.phase is phase


@given(plays)
def test_when_a_turn_is_over_every_call_has_exactly_one_result(play: Play):
    results = [event.call for event in play.log if isinstance(event, CallFinished)]
    parts = [part for message in play.state.messages.values() for part in message.parts if isinstance(part, ToolPart)]

    assert sorted(results) == sorted(play.state.calls) == sorted(part.call for part in parts)
    assert all(part.state in FINAL_CALL_STATES and part.output is not None for part in parts)


@given(dice)
def test_decide_gives_the_same_answer_twice_and_changes_nothing(dice: Dice):
    play = Play(dice)
    for _ in play.events():
        before = as_bytes(play.state)
        assert decide(play.state, PLUGINS) == decide(play.state, PLUGINS) == decide(fold(play.log), PLUGINS)
        assert as_bytes(play.state) == before


@given(dice)
def test_whatever_decide_names_can_be_done_and_the_turn_ends(dice: Dice):
    play = Play(dice).to_end()  # raises what is refused, and gives up on what does not end

    assert isinstance(decide(play.state, PLUGINS), TurnDone)


@given(plays)
def test_no_step_goes_beyond_the_limit_but_a_last_one_that_closes(play: Play):
    most, is_limited = play.state.max_steps, False  # what a person has raised it to
    steps = [event for event in play.log if isinstance(event, StepStarted)]

    assert [event.step for event in steps] == list(range(1, len(steps) + 1))
    assert len(steps) <= most + 1
    assert all(not event.closing for event in steps[:-1])
    for event in play.log:
        if isinstance(event, StepStarted):
            assert event.closing == (event.step == most + 1 or is_limited)
        is_limited = is_limited or isinstance(event, LimitReached)


@given(plays)
def test_the_usage_of_a_turn_is_that_of_its_finished_steps_and_summaries(play: Play):
    used = StepFinished | CompactionFinished | CompactionFailed
    assert play.state.usage.input == sum(isinstance(event, used) for event in play.log)


@given(st.lists(st.tuples(st.sampled_from(PLUGINS), st.integers(-2, 2)), max_size=8))
def test_deferred_messages_join_by_priority_then_registration(deferrals: list[tuple[str, int]]):
    turn = finished_step()
    for plugin in reversed(PLUGINS):  # the order in which plugins finish does not count
        mine = [(at, priority) for at, (name, priority) in enumerate(deferrals) if name == plugin]
        appends = tuple(DeferredMessage(Message(f"{plugin}.{at}", None, "notice"), priority) for at, priority in mine)
        turn.apply(HookFinished(turn="t", step=1, plugin=plugin, deferred=appends))

    action = decide(turn, PLUGINS)

    written = action.appends if isinstance(action, WriteDeferred) else ()
    places = [(-append.priority, *place_of(append)) for append in written]
    assert len(written) == len(deferrals)
    assert all(first < second for first, second in pairwise(places))


# What the fold lets in, the turn must be able to leave again ------------------------------------------------------


# Dice that failed once, and are thrown every time since: a call that waited for a gate nobody had opened.
UNKNOWN_GATE = (
    "0000d70000005b00009d000000770000bd000000f1ad0000001700007100000000007400000000000000a900000057a600f4"
    "00009100000088000000f700000069fa00be0000a600fe00000000000000c1000000b9360000000000000000004d00000000"
    "000000dc00df0000004c000000000000930000001900c1000895e00025000000e9000000f90000a12300c700b1002f003300"
    "000000007f00000d0000e6"
)


@given(dice)
@example(Dice(bytes.fromhex(UNKNOWN_GATE)))
def test_whatever_the_fold_lets_in_decide_names_something_that_can_be_done(dice: Dice):
    state = TurnState("t")
    for _ in range(40):
        action = decide(state, PLUGINS)
        if state.phase is Phase.IDLE or isinstance(action, WaitForInput | TurnDone) or dice.pick(True, False, False):
            apply_or_refuse(state, wild(state, dice))
        else:
            for event in carry_out(state, action, dice):
                state.apply(event)


def suspended(**waits_for: typing.Any) -> CallSuspended:
    return CallSuspended(turn="t", call="c", saved_state="", **waits_for)


@pytest.mark.parametrize("waits_for", [{"gates": ("none",)}, {"calls": ("nobody",)}, {"child": "nowhere"}])
def test_a_call_cannot_wait_for_a_gate_a_call_or_a_sub_turn_that_is_not_there(waits_for: dict[str, typing.Any]):
    turn = finished_step(ToolPart("c", "look", "{}"))
    for event in start_of("c"):
        turn.apply(event)

    assert not apply_or_refuse(turn, suspended(**waits_for))
    assert apply_or_refuse(turn, suspended())


def test_a_call_cannot_wait_for_a_gate_or_a_call_of_another():
    turn = finished_step(ToolPart("c", "look", "{}"), ToolPart("d", "look", "{}"))
    for event in (*start_of("c"), *start_of("d")):
        turn.apply(event)
    turn.apply(GateOpened(turn="t", gate=Gate("g", "t", "d", "look", "{}", "hash", kind="form")))

    assert not apply_or_refuse(turn, suspended(gates=("g",)))
    assert not apply_or_refuse(turn, suspended(calls=("d",)))


def test_a_plugin_cannot_ask_before_the_step_has_finished():
    turn = fold([TurnStarted(turn="t"), AnswerStarted(turn="t", message=Message("a", None, "assistant"))])
    question = GateOpened(turn="t", gate=Gate("g", "t", "", "plugin:notes", "really?", "hash", kind="question"))
    turn.apply(StepStarted(turn="t", step=1))

    assert not apply_or_refuse(turn, question)

    turn.apply(StepFinished(turn="t", step=1, parts=(), finish="stop"))
    assert apply_or_refuse(turn, question)


def ended_by(kind: str, *events: TurnEvent) -> TurnState:
    problem = Problem(kind, "no")
    begun = [TurnStarted(turn="t"), *events]
    return fold(
        [*begun, TurnFinishing(turn="t", outcome="error", problem=problem), TurnFailed(turn="t", problem=problem)]
    )


def test_a_turn_is_blocked_only_if_a_hook_ended_it_before_the_model_was_asked():
    opened = AnswerStarted(turn="t", message=Message("a", None, "assistant"))
    began, done = StepStarted(turn="t", step=1), StepFinished(turn="t", step=1, parts=(), finish="stop")

    assert ended_by("hook").is_blocked
    assert ended_by("hook", opened, began).is_blocked
    assert not ended_by("hook", opened, began, done).is_blocked
    assert not ended_by("model").is_blocked
    assert not fold([TurnStarted(turn="t")]).is_blocked


def test_nobody_is_asked_about_a_call_that_was_not_allowed():
    turn = finished_step(ToolPart("c", "look", "{}"))
    judged, _ = start_of("c")
    turn.apply(replace(judged, allowed=False))

    assert not apply_or_refuse(turn, GateOpened(turn="t", gate=Gate("g", "t", "c", "look", "{}", "hash")))


def test_a_gate_about_a_result_shows_one():
    turn = finished_step(ToolPart("c", "look", "{}"))
    for event in start_of("c"):
        turn.apply(event)
    gate = Gate("g", "t", "c", "look", "{}", "hash", kind="result")

    assert not apply_or_refuse(turn, GateOpened(turn="t", gate=gate))
    assert apply_or_refuse(turn, GateOpened(turn="t", gate=replace(gate, output=Output("it ran"))))


def test_a_message_between_the_first_answer_and_its_step_needs_another_answer():
    question, answer = Message("u", None, "user"), Message("a", "u", "assistant")
    turn = fold([TurnStarted(turn="t", input=question), AnswerStarted(turn="t", message=answer)])
    turn.apply(MessageAdded(turn="t", message=Message("n", "a", "notice")))

    for event in carry_out(turn, decide(turn, PLUGINS), Dice(b"")):
        turn.apply(event)


def test_a_call_that_every_plugin_left_alone_does_not_stop_the_turn():
    turn = finished_step(ToolPart("c", "look", "{}"))
    turn.apply(HookFinished(turn="t", step=1, plugin="notes"))

    for event in carry_out(turn, decide(turn, ["notes"]), Dice(b"")):
        turn.apply(event)


def test_an_answer_that_does_not_name_the_call_of_its_gate_is_refused():
    turn = finished_step(ToolPart("c", "look", "{}"))
    turn.apply(GateOpened(turn="t", gate=Gate("g", "t", "c", "look", "{}", "hash")))

    with pytest.raises(InvalidEvent):
        turn.apply(GateResolved(turn="t", gate="g", call="", resolution=GateResolution(True)))


def test_a_call_of_a_step_that_broke_off_cannot_start():
    turn = finished_step(ToolPart("c", "look", "{}"), broke_off=True)
    judged, start = start_of("c")
    turn.apply(judged)

    with pytest.raises(InvalidEvent, match="broke off"):
        turn.apply(start)


def test_a_call_that_was_not_allowed_cannot_start():
    judged, start = start_of("c")
    for before in ([], [replace(judged, allowed=False)], [replace(judged, hash="other")]):
        turn = finished_step(ToolPart("c", "look", "{}"), ToolPart("d", "look", "{}"))
        for event in (replace(judged, call="d"), *before):
            turn.apply(event)

        with pytest.raises(InvalidEvent, match="was not allowed"):
            turn.apply(start)


def message_added(after: str | None = "a", name: str = "m") -> MessageAdded:
    """What a person said while the turn was under way."""
    return MessageAdded(turn="t", message=Message(name, after, "user"), request=True, command="k")


def test_what_a_person_says_meanwhile_joins_between_two_steps_and_asks_for_another():
    turn = finished_step()
    turn.apply(message_added())
    turn.apply(message_added("m", "n"))

    assert decide(turn) == StartAnswer()
    turn.apply(AnswerStarted(turn="t", message=Message("b", "n", "assistant")))
    assert decide(turn) == RequestModel(2)
    with pytest.raises(InvalidEvent, match="between two steps"):  # the answer would stay empty
        turn.apply(message_added("b", "o"))


def test_what_a_person_says_meanwhile_joins_before_the_first_answer_is_opened():
    turn = fold([TurnStarted(turn="t", input=Message("u", None, "user"))])
    turn.apply(message_added("u"))

    assert decide(turn) == StartAnswer()


def test_nothing_a_person_says_joins_an_open_step_an_open_call_or_a_turn_at_its_limit():
    at_limit = finished_step()
    at_limit.apply(LimitReached(turn="t", limit="calls", scope="turn", text="enough"))
    last = finished_step()
    last.options = TurnOptions(max_steps=1)
    streaming = finished_step()
    streaming.apply(StepStarted(turn="t", step=2))
    closing = finished_step()
    closing.apply(StepStarted(turn="t", step=2, closing=True))
    closing.apply(StepFinished(turn="t", step=2, parts=(), finish="stop"))
    ending = finished_step()
    ending.apply(TurnFinishing(turn="t", outcome="completed"))
    calling, broken = finished_step(ToolPart("c", "look", "{}")), finished_step(broke_off=True)
    for turn in (at_limit, last, streaming, closing, ending, calling, broken):
        before = as_bytes(turn)
        assert not may_steering_join(turn, decide(turn))
        with pytest.raises(InvalidEvent):
            turn.apply(message_added())
        assert as_bytes(turn) == before


def place_of(append: DeferredMessage) -> tuple[int, int]:
    plugin, at = append.message.id.split(".")
    return PLUGINS.index(plugin), int(at)


def start_of(call: str) -> tuple[PermissionDecided, CallStarted]:
    return (
        PermissionDecided(turn="t", call=call, tool="look", identity="id", hash="hash", allowed=True, why="it may"),
        CallStarted(turn="t", call=call, tool="look", arguments="{}", hash="hash", key=call),
    )


def finished_step(*parts: ToolPart, broke_off: bool = False) -> TurnState:
    """A turn whose first step has ended."""
    turn = fold(
        [
            TurnStarted(turn="t", input=Message("u", None, "user")),
            AnswerStarted(turn="t", message=Message("a", "u", "assistant")),
            StepStarted(turn="t", step=1),
        ]
    )
    if broke_off:
        turn.apply(StepInterrupted(turn="t", step=1, parts=parts, finish="error", problem=BROKEN))
    else:
        turn.apply(StepFinished(turn="t", step=1, parts=parts, finish="stop"))
    return turn
