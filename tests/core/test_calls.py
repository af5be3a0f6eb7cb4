"""The machine of one call: only what the table says, and a settled call stays as it is."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.simulate import Dice, Play

from everturn.core.calls import CALL_TRANSITIONS, SETTLED, Call
from everturn.core.events import CallSettled, CallStarted, Event, Gate, GateAnswered, GateOpened, LateArrived, Verdict
from everturn.core.parts import CallState, Output
from everturn.errors import InvalidEvent

CallEvent = GateOpened | GateAnswered | CallStarted | CallSettled | LateArrived

STATES = tuple(CALL_TRANSITIONS)
ASK = GateOpened(turn="t", gate=Gate("g", "t", "c", "look", "{}", "hash"))
ALLOW = GateAnswered(turn="t", gate="g", call="c", verdict=Verdict(True))
DENY = GateAnswered(turn="t", gate="g", call="c", verdict=Verdict(False))
START = CallStarted(turn="t", call="c", tool="look", arguments="{}", hash="hash", effects="once", key="c")
LATE = LateArrived(turn="t", call="c", output=Output("late"))


def settle(state: CallState) -> CallSettled:
    return CallSettled(turn="t", call="c", state=state, output=Output("done"))


EVENTS: tuple[CallEvent, ...] = (
    ASK,
    GateOpened(turn="t", gate=Gate("other", "t", "c", "look", "{}", "hash")),
    ALLOW,
    DENY,
    GateAnswered(turn="t", gate="other", call="c", verdict=Verdict(True)),
    START,
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
    assert sum(isinstance(event, GateAnswered) for event in taken) <= 1
    assert not (DENY in taken and START in taken)


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
    "started against a no": ((ASK, DENY), START, "was denied"),
    "started while it asks": ((ASK,), START, "is asking"),
    "settled as running": ((START,), settle("running"), "cannot be settled as running"),
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
