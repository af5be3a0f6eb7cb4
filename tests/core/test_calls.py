"""The machine of one call: only what the table says, and a settled call stays as it is."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.core.simulate import Dice, Play

from everturn.core.asking import Gate, Verdict
from everturn.core.calls import CALL_TRANSITIONS, SETTLED, Call
from everturn.core.events import CallJudged, CallSettled, CallStarted, Event, GateAnswered, GateOpened, LateArrived
from everturn.core.parts import CallState, Output
from everturn.errors import InvalidEvent

CallEvent = GateOpened | GateAnswered | CallJudged | CallStarted | CallSettled | LateArrived

STATES = tuple(CALL_TRANSITIONS)
ASK = GateOpened(turn="t", gate=Gate("g", "t", "c", "look", "{}", "hash"))
ALLOW = GateAnswered(turn="t", gate="g", call="c", verdict=Verdict(True))
DENY = GateAnswered(turn="t", gate="g", call="c", verdict=Verdict(False))
MAY = CallJudged(turn="t", call="c", tool="look", identity="id", hash="hash", allowed=True, why="it may")
MAY_NOT = replace(MAY, allowed=False)
START = CallStarted(turn="t", call="c", tool="look", arguments="{}", hash="hash", effects="once", key="c")
REVIEW = GateOpened(turn="t", gate=Gate("r", "t", "c", "look", "{}", "hash", kind="result", output=Output("it ran")))
SEND = GateAnswered(turn="t", gate="r", call="c", verdict=Verdict(True))
LATE = LateArrived(turn="t", call="c", output=Output("late"))


def settle(state: CallState) -> CallSettled:
    return CallSettled(turn="t", call="c", state=state, output=Output("done"))


EVENTS: tuple[CallEvent, ...] = (
    ASK,
    GateOpened(turn="t", gate=Gate("other", "t", "c", "look", "{}", "hash")),
    ALLOW,
    DENY,
    GateAnswered(turn="t", gate="other", call="c", verdict=Verdict(True)),
    MAY,
    MAY_NOT,
    START,
    REVIEW,
    SEND,
    *(settle(state) for state in STATES),
    LATE,
)


def new_call(*events: CallEvent) -> Call:
    call = Call("c", 1, 0, "look", "{}")
    for event in events:
        call.advance(event)
    return call


@given(st.lists(st.sampled_from(EVENTS), max_size=12))
def test_any_order_of_events_follows_the_table_or_is_refused_and_changes_nothing(events: list[CallEvent]):
    call = new_call()
    for event in events:
        state, before = call.state, msgspec.json.encode(call)
        allowed = CALL_TRANSITIONS[state].get(type(event))
        try:
            call.advance(event)
        except InvalidEvent:
            assert msgspec.json.encode(call) == before
        else:
            assert allowed is not None
            assert call.state in (allowed if isinstance(allowed, frozenset) else {allowed})


@given(st.lists(st.sampled_from(EVENTS), max_size=20))
def test_a_call_is_settled_once_and_keeps_its_state(events: list[CallEvent]):
    call, results = new_call(), list[CallState]()
    for event in events:
        try:
            call.advance(event)
        except InvalidEvent:
            continue
        results += [event.state] if isinstance(event, CallSettled) else []

    assert len(results) <= 1
    assert call.is_settled == bool(results)
    assert call.state in SETTLED or not results
    assert not results or call.state == results[0]


@given(st.lists(st.sampled_from(EVENTS), max_size=20))
def test_a_call_starts_at_most_once_and_never_against_a_no(events: list[CallEvent]):
    call, taken = new_call(), list[CallEvent]()
    for event in events:
        try:
            call.advance(event)
        except InvalidEvent:
            continue
        taken.append(event)

    assert sum(isinstance(event, CallStarted) for event in taken) <= 1
    assert sum(isinstance(event, CallJudged) for event in taken) <= 1
    assert sum(isinstance(event, GateAnswered) and event.gate != "r" for event in taken) <= 1
    assert not (DENY in taken and START in taken)
    assert START not in taken or MAY in taken
    assert REVIEW not in taken or START in taken


@given(st.sampled_from([(), (MAY, START)]), st.lists(st.sampled_from(EVENTS), max_size=20))
def test_a_call_that_runs_asks_about_its_result_and_no_other_does(first: list[CallEvent], events: list[CallEvent]):
    call = new_call(*first)
    for event in events:
        before = call.state
        try:
            call.advance(event)
        except InvalidEvent:
            continue
        if isinstance(event, GateOpened):
            assert (event.gate.kind == "result") == (before == "running")


@pytest.mark.parametrize("state", sorted(SETTLED))
def test_a_settled_call_takes_in_a_late_result_only_where_the_table_says(state: CallState):
    for event in EVENTS:
        call = new_call(settle(state))
        if type(event) in CALL_TRANSITIONS[state]:
            call.advance(event)
            assert call.is_late
        else:
            with pytest.raises(InvalidEvent):
                call.advance(event)


REFUSED: dict[str, tuple[tuple[CallEvent, ...], CallEvent, str]] = {
    "asked twice": ((ASK, ALLOW), ASK, "answered already"),
    "answered at another gate": ((ASK,), EVENTS[4], "does not wait at gate other"),
    "answered without being asked": ((), ALLOW, "is pending"),
    "started against a no": ((ASK, DENY, MAY), START, "was denied"),
    "started while it asks": ((ASK,), START, "is asking"),
    "started unjudged": ((), START, "was not allowed"),
    "started though judged otherwise": ((MAY_NOT,), START, "was not allowed"),
    "started with other bytes": ((replace(MAY, hash="other"),), START, "was not allowed"),
    "judged twice": ((MAY,), MAY, "judged already"),
    "its result shown before it ran": ((MAY,), REVIEW, "a gate about its result cannot open"),
    "asked while it runs": ((MAY, START), ASK, "a gate about its call cannot open"),
    "its result answered at another gate": ((MAY, START, REVIEW), ALLOW, "does not wait at gate g"),
    "its result answered twice": ((MAY, START, REVIEW, SEND), SEND, "does not wait at gate r"),
    "settled as running": ((MAY, START), settle("running"), "cannot be settled as running"),
    "late twice": ((settle("cancelled"), LATE), LATE, "late result already"),
    "settled twice": ((settle("completed"),), settle("completed"), "is completed"),
}


@pytest.mark.parametrize(("before", "event", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_happen_to_a_call_says_why(before: tuple[CallEvent, ...], event: CallEvent, text: str):
    with pytest.raises(InvalidEvent, match=text):
        new_call(*before).advance(event)


def test_the_simulated_turns_take_every_row_of_the_table():
    chance, rows = random.Random(1), set[tuple[CallState, type[Event]]]()
    before: dict[str, CallState] = {}
    for _ in range(200):
        play = Play(Dice(chance.randbytes(200)))
        for event in play.events():
            called = event.gate.call if isinstance(event, GateOpened) else getattr(event, "call", "")
            if called in before:
                rows.add((before[called], type(event)))
            before = {call.id: call.state for call in play.state.calls.values()}

    assert rows == {(state, event) for state, row in CALL_TRANSITIONS.items() for event in row}
