"""Statistics of a turn: what was done how often, and what the time was spent on; waiting for people is not work."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace
from tests.helpers.simulated_driver import Play, plays

from everturn import App, Chat, tool
from everturn.core.chunks import FinishChunk, RetryChunk
from everturn.core.events import Event, LateResultReceived, TurnEvent
from everturn.core.parts import Output
from everturn.core.projections.stats import TurnStats, stats_of
from everturn.core.requests import ModelRequest
from everturn.events import GateOpened
from everturn.testing import FakeClock, ScriptedModel, call, calls, say

DAY = 86_400.0


class SlowModel:
    """Takes 2 s to its first chunk and 3 s in all; a request is retried once, after 10 s, if it is told to."""

    name = "slow"

    def __init__(self, clock: FakeClock, *script: Any, retries: bool = False) -> None:
        self.clock, self.inner, self.retries = clock, ScriptedModel(*script), retries

    async def stream(self, request: ModelRequest) -> Any:
        if self.retries:
            yield [RetryChunk(2, 3, 10.0, "rate", "busy")]
            self.clock.advance(10.0)
        self.clock.advance(2.0)
        async for batch in self.inner.stream(request):
            yield batch
            if any(isinstance(chunk, FinishChunk) for chunk in batch):
                self.clock.advance(1.0)


async def played(clock: FakeClock, model: Any, *tools: Any) -> tuple[list[Event], TurnStats]:
    app = App(model, tools=list(tools), clock=clock)
    async with Chat(model, app=app) as chat:
        turn = await chat.send("go")
        async for item in turn:
            if isinstance(item, GateOpened):
                clock.advance(DAY)
                await turn.answer(item.gate, allow="once")
        entries = await chat.app.store.events(chat.session, turn=turn.id)
    return [entry.event for entry in entries], stats_of(entries)


async def test_a_day_at_a_gate_is_waiting_and_not_work() -> None:
    clock = FakeClock()

    @tool(approval="always")
    async def pay() -> str:
        clock.advance(5.0)
        return "paid"

    model = SlowModel(clock, calls(call("pay")), say("done"), retries=True)
    _, stats = await played(clock, model, pay)
    assert (stats.steps, stats.calls, stats.retries, stats.restarts) == (2, 1, 2, 0)
    assert stats.waiting_seconds == DAY
    assert (stats.model_seconds, stats.tool_seconds, stats.retry_seconds) == (6.0, 5.0, 20.0)
    assert stats.active_seconds == 31.0
    assert stats.first_token_seconds == 12.0


async def test_a_tool_that_works_beside_an_open_gate_is_work() -> None:
    clock = FakeClock()

    @tool(approval="always")
    async def pay() -> str:
        return "paid"

    @tool(read_only=True)
    async def look() -> str:
        clock.advance(7.0)
        return "seen"

    model = SlowModel(clock, calls(call("look"), call("pay")), say("done"))
    _, stats = await played(clock, model, look, pay)
    assert stats.calls == 2
    assert stats.tool_seconds + stats.waiting_seconds == DAY + 7.0
    assert stats.seconds == stats.tool_seconds + stats.waiting_seconds + stats.model_seconds


async def test_what_comes_after_the_end_does_not_count() -> None:
    clock = FakeClock()
    events, stats = await played(clock, SlowModel(clock, say("done")))
    [turn] = {event.turn for event in events if isinstance(event, TurnEvent)}
    late = LateResultReceived(turn=turn, at=clock.now() + DAY, call="c", output=Output("late"))
    assert stats_of([*events, late], clock.now() + DAY) == stats
    assert stats.seconds == 3.0


async def test_a_turn_that_still_runs_is_counted_up_to_now() -> None:
    clock = FakeClock()
    events, _ = await played(clock, SlowModel(clock, say("done")))
    started = next(at for at, event in enumerate(events, 1) if type(event).__name__ == "StepStarted")
    stats = stats_of(events[:started], events[started - 1].at + 4.0)
    assert (stats.model_seconds, stats.seconds, stats.first_token_seconds) == (4.0, 4.0, None)
    assert stats_of([]) == TurnStats()


async def test_a_log_without_first_chunks_has_no_first_token_time() -> None:
    clock = FakeClock()
    events, _ = await played(clock, SlowModel(clock, say("done")))
    old = [replace(event, first_chunk_at=0.0) if hasattr(event, "first_chunk_at") else event for event in events]
    assert stats_of(old).first_token_seconds is None


@given(plays)
def test_whatever_a_turn_does_its_parts_are_at_most_the_whole(play: Play) -> None:
    events = [replace(event, at=float(at)) for at, event in enumerate(play.log)]
    stats = stats_of(events)
    parts = stats.waiting_seconds + stats.model_seconds + stats.tool_seconds + stats.retry_seconds
    assert 0.0 <= parts <= stats.seconds <= len(events)
    assert stats.seconds == pytest.approx(stats.active_seconds + stats.waiting_seconds)
