"""The machine of one call: only what the table says, and a settled call stays as it is."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.helpers.simulated_driver import Dice, Play

from everturn.core.calls import CALL_TRANSITIONS, FINAL_CALL_STATES, CallRecord
from everturn.core.calls import CallTransitionEvent as CallEvent
from everturn.core.events import (
    AgentSwitched,
    CallFinished,
    CallNotified,
    CallResumed,
    CallStarted,
    CallSuspended,
    Event,
    FilesChanged,
    GateOpened,
    GateResolved,
    LateResultReceived,
    NestedCallRequested,
    PermissionDecided,
    SubagentStarted,
)
from everturn.core.gates import Gate, GateResolution
from everturn.core.parts import CallState, Output
from everturn.errors import InvalidEvent

STATES = tuple(CALL_TRANSITIONS)
ASK = GateOpened(turn="t", gate=Gate("g", "t", "c", "look", "{}", "hash"))
ALLOW = GateResolved(turn="t", gate="g", call="c", resolution=GateResolution(True))
DENY = GateResolved(turn="t", gate="g", call="c", resolution=GateResolution(False))
MAY = PermissionDecided(turn="t", call="c", tool="look", identity="id", hash="hash", allowed=True, why="it may")
MAY_NOT = replace(MAY, allowed=False)
START = CallStarted(turn="t", call="c", tool="look", arguments="{}", hash="hash", key="c")
REVIEW = GateOpened(turn="t", gate=Gate("r", "t", "c", "look", "{}", "hash", kind="result", output=Output("it ran")))
SEND = GateResolved(turn="t", gate="r", call="c", resolution=GateResolution(True))
LATE = LateResultReceived(turn="t", call="c", output=Output("late"))
FORM = GateOpened(turn="t", gate=Gate("f", "t", "c", "look", "{}", "hash", kind="form"))
TOLD = GateResolved(turn="t", gate="f", call="c", resolution=GateResolution(True))
ASIDE = CallSuspended(turn="t", call="c", gates=("f",))
DOWN = SubagentStarted(turn="t", call="c", session="s-c", child="b")
AGAIN = CallResumed(turn="t", call="c")


def settle(state: CallState) -> CallFinished:
    return CallFinished(turn="t", call="c", state=state, output=Output("done"))


EVENTS: tuple[CallEvent, ...] = (
    ASK,
    GateOpened(turn="t", gate=Gate("other", "t", "c", "look", "{}", "hash")),
    ALLOW,
    DENY,
    GateResolved(turn="t", gate="other", call="c", resolution=GateResolution(True)),
    MAY,
    MAY_NOT,
    START,
    REVIEW,
    SEND,
    *(settle(state) for state in STATES),
    LATE,
    FORM,
    ASIDE,
    AGAIN,
    DOWN,
    CallNotified(turn="t", call="c"),
)


def new_call(*events: CallEvent) -> CallRecord:
    call = CallRecord("c", 1, 0, "look", "{}")
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
        results += [event.state] if isinstance(event, CallFinished) else []

    assert len(results) <= 1
    assert call.is_finished == bool(results)
    assert call.state in FINAL_CALL_STATES or not results
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
    assert sum(isinstance(event, PermissionDecided) for event in taken) <= 1
    assert sum(isinstance(event, GateResolved) and event.gate != "r" for event in taken) <= 1
    assert not (DENY in taken and START in taken)
    assert START not in taken or MAY in taken
    assert REVIEW not in taken or START in taken


@given(st.sampled_from([(), (MAY, START)]), st.lists(st.sampled_from(EVENTS), max_size=20))
def test_a_call_that_runs_asks_about_its_result_or_what_its_tool_wants_to_know_and_no_other_does(
    first: list[CallEvent], events: list[CallEvent]
):
    call = new_call(*first)
    for event in events:
        before = call.state
        try:
            call.advance(event)
        except InvalidEvent:
            continue
        if isinstance(event, GateOpened):
            assert (before, event.gate.kind) in (
                ("pending", "call"),
                ("running", "result"),
                ("running", "form"),
                ("waiting", "form"),  # what it did at the same time is still written
            )


def test_a_call_that_was_suspended_runs_only_when_it_is_begun_again():
    call = new_call(MAY, START, FORM, ASIDE, TOLD)
    assert (call.state, call.suspended) == ("waiting", ASIDE)
    call.advance(AGAIN)
    assert (call.state, call.is_notified) == ("running", False)
    call.advance(replace(ASIDE, saved_state="more"))  # and may be suspended again
    assert call.state == "waiting"


@pytest.mark.parametrize("state", sorted(FINAL_CALL_STATES))
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
    "its tool asks before it runs": ((MAY,), FORM, "its tool cannot ask"),
    "suspended before it runs": ((MAY,), ASIDE, "is pending"),
    "resumed though it was not suspended": ((MAY, START), AGAIN, "is running"),
    "asked about while it is suspended": ((MAY, START, ASIDE), ASK, "a gate about its call cannot open"),
    "its result shown while it is suspended": ((MAY, START, ASIDE), REVIEW, "a gate about its result cannot open"),
    "the same sub-agent run asked for twice": ((MAY, START, DOWN), DOWN, "has asked for its sub-agent run"),
    "runs on though it was suspended": (
        (MAY, START, ASIDE),
        replace(settle("cancelled"), still_running=True),
        "no tool",
    ),
    "settled twice": ((settle("completed"),), settle("completed"), "is completed"),
}


@pytest.mark.parametrize(("before", "event", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_happen_to_a_call_says_why(before: tuple[CallEvent, ...], event: CallEvent, text: str):
    with pytest.raises(InvalidEvent, match=text):
        new_call(*before).advance(event)


def test_the_simulated_turns_take_every_row_of_the_table():
    chance, rows = random.Random(1), set[tuple[CallState, type[Event]]]()
    before: dict[str, CallState] = {}
    for _ in range(4000):
        play = Play(Dice(chance.randbytes(200)))
        for event in play.events():
            # Those that are left out move no call.
            called = event.gate.call if isinstance(event, GateOpened) else getattr(event, "call", "")
            if called in before and not isinstance(event, AgentSwitched | FilesChanged | NestedCallRequested):
                rows.add((before[called], type(event)))
            before = {call.id: call.state for call in play.state.calls.values()}

    assert rows == {(state, event) for state, row in CALL_TRANSITIONS.items() for event in row}
