"""A stream of one turn: what another turn of the session says is not in it."""

from __future__ import annotations

from everturn.core.deltas import CallProgress, TurnReader
from everturn.core.events import Entry, StepStarted
from everturn.server.streams.sse import Subscriber


def test_what_a_tool_of_another_turn_says_of_itself_is_not_shown() -> None:
    sight = Subscriber(TurnReader("mine"), "mine")

    assert sight.encode(CallProgress("theirs", "call", "half way")) == b""
    assert b"half way" in sight.encode(CallProgress("mine", "call", "half way"))


def test_an_event_of_another_turn_is_not_shown() -> None:
    sight = Subscriber(TurnReader("mine"), "mine")

    assert sight.encode(Entry(1, StepStarted(turn="theirs", step=1))) == b""
    assert b"StepStarted" in sight.encode(Entry(2, StepStarted(turn="mine", step=1)))
