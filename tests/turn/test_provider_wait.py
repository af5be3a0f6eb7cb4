"""A turn whose request waits for a provider's rate limit: what is shown, cancelled, checked again, and sent once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from everturn import App, Chat, TurnSettings
from everturn.core.deltas import CallProgress
from everturn.core.events import LimitReached, StepFinished, TurnCancelled, TurnCompleted
from everturn.core.options import Budget
from everturn.core.rate_limits import RateLimit
from everturn.errors import ModelError
from everturn.models import FallbackModel
from everturn.models.limited import Deployment, LimitedModel
from everturn.models.retry import RetryModel, RetryPolicy
from everturn.testing import FakeClock, ScriptedFailure, ScriptedModel, say

SLOW = RateLimit(requests_per_minute=6, burst_seconds=0)  # one at once, the next after 12 seconds


def limited(*answers: Any, limit: RateLimit | None = SLOW, name: str = "house", bucket: str = "k") -> Any:
    model = ScriptedModel(list(answers), name=name)
    return model, LimitedModel(Deployment(model, bucket, limit))


async def pass_time(clock: FakeClock, is_over: Callable[[], bool], most: float = 100.0) -> float:
    """Let time pass until something is so, and return how much passed."""
    began = clock.now()
    while not is_over():
        assert clock.now() - began < most, "it did not happen"
        for _ in range(30):
            await asyncio.sleep(0)
        if not is_over():
            clock.advance(0.05)
    return clock.now() - began


async def test_the_wait_is_shown_counts_in_no_timeout_and_ends() -> None:
    clock = FakeClock()
    inner, model = limited(say("one"), say("two"))
    settings = TurnSettings(first_chunk_timeout=5.0, idle_timeout=5.0, step_timeout=5.0)
    async with App(model, clock=clock, settings=settings) as app:
        await (await app.chat().send("first"))
        turn = await app.chat().send("second")
        items: list[Any] = []

        async def read() -> None:
            async for item in turn:
                items.append(item)

        reading = asyncio.create_task(read())
        assert 9 < await pass_time(clock, reading.done) < 14  # longer than any timeout
        await reading
    waits = [item.text for item in items if isinstance(item, CallProgress)]
    assert waits[0].startswith("waiting for the provider's rate limit, about 1")
    assert len(waits) > 3
    assert waits[-1] == ""
    assert isinstance(items[-1], TurnCompleted)
    assert len(inner.requests) == 2


async def test_a_cancelled_wait_ends_at_once_and_sends_nothing() -> None:
    clock = FakeClock()
    inner, model = limited(say("one"), say("two"), say("three"))
    async with App(model, clock=clock) as app:
        await (await app.chat().send("first"))
        turn = await app.chat().send("second")
        await pass_time(clock, lambda: clock.now() > 1_700_000_002)
        cancelled_at = clock.now()
        await turn.cancel()
        assert isinstance(await ended(turn), TurnCancelled)
        assert clock.now() == cancelled_at
        assert len(inner.requests) == 1
        # Nothing of the limit is lost: the next one waits no longer than it would have.
        third = asyncio.create_task(_completed(app, "third"))
        assert await pass_time(clock, third.done) < 12
        assert len(inner.requests) == 2


async def ended(turn: Any) -> Any:
    """Follow a turn to its last event."""
    last = None
    async for item in turn:
        last = item
    return last


async def _completed(app: App, text: str, **how: Any) -> Any:
    turn = await app.chat(**how).send(text)
    return await ended(turn)


async def test_people_are_answered_before_background_turns() -> None:
    clock = FakeClock()
    inner, model = limited(*(say(str(at)) for at in range(4)))
    async with App(model, clock=clock) as app:
        await (await app.chat().send("first"))
        turns = [
            await app.chat().send("background", priority="background"),
            await app.chat().send("person"),
        ]
        done = asyncio.gather(*(ended(turn) for turn in turns))
        await pass_time(clock, done.done)
        await done
    assert [request.messages[-1].text for request in inner.requests] == ["first", "person", "background"]


async def test_budgets_are_checked_again_after_the_wait() -> None:
    clock = FakeClock()
    inner, model = limited(say("one"), say("two"), say("three"))
    async with App(model, clock=clock, settings=TurnSettings(tenant_budget=Budget(steps=2))) as app:
        turns = [await app.chat().send(text) for text in ("first", "second", "third")]
        done = asyncio.gather(*(ended(turn) for turn in turns))
        await pass_time(clock, done.done)
        await done
        assert len(inner.requests) == 2  # all three had been within the budget when they began to wait
        events = [entry.event for turn in turns for entry in await app.store.events(turn.session)]
    (limit,) = [event for event in events if isinstance(event, LimitReached)]
    assert (limit.limit, limit.scope) == ("steps", "tenant")
    finished = [event for event in events if isinstance(event, StepFinished)]
    assert sum("limit of 2 steps" in str(event.parts) for event in finished) == 1
    assert sum(isinstance(event, TurnCompleted) for event in events) == 3


async def test_a_wait_that_is_too_long_fails_with_the_setting_or_falls_back() -> None:
    clock = FakeClock()
    hurried = RateLimit(requests_per_minute=6, burst_seconds=0, max_wait=5.0, fallback_after=5.0)
    _, model = limited(say("one"), say("two"), limit=hurried)
    async with App(model, clock=clock) as app:
        await (await app.chat().send("first"))
        turn = await app.chat().send("second")
        done = asyncio.create_task(ended(turn))
        await pass_time(clock, done.done, 5.0)
        problem = (await done).problem
    assert problem is not None
    assert "max_wait is 5 s" in problem.text
    other = ScriptedModel([say("from the other")], name="other")
    _, model = limited(say("one"), limit=hurried)
    async with App(FallbackModel(model, other), clock=clock) as app:
        await (await app.chat().send("first"))
        turn = asyncio.create_task(_completed(app, "second"))
        await pass_time(clock, turn.done, 5.0)
        assert len(other.requests) == 1


async def test_requests_go_to_the_deployment_with_most_room() -> None:
    clock = FakeClock()
    first, second = ScriptedModel([say("a")] * 5, name="house"), ScriptedModel([say("b")] * 5, name="house")
    model = LimitedModel(Deployment(first, "a", SLOW), Deployment(second, "b", SLOW))
    async with App(model, clock=clock) as app:
        for text in ("one", "two"):
            done = asyncio.create_task(_completed(app, text))
            assert await pass_time(clock, done.done) < 1  # neither waits
    assert (len(first.requests), len(second.requests)) == (1, 1)


async def test_a_failing_deployment_is_left_alone_after_some_failures() -> None:
    clock = FakeClock()
    down = ModelError("down", kind="server", retryable=True)
    bad = ScriptedModel(lambda _: [ScriptedFailure(down)], name="house")
    good = ScriptedModel(lambda _: say("fine"), name="house")
    # The first one has most room, and would be asked each time.
    places = (
        Deployment(bad, "bad", RateLimit(requests_per_minute=60_000)),
        Deployment(good, "good", RateLimit(requests_per_minute=600)),
    )
    model = RetryModel(LimitedModel(*places), RetryPolicy(attempts=9, initial_delay=0.0))
    async with App(model, clock=clock) as app:
        for at in range(12):
            done = asyncio.create_task(_completed(app, str(at)))
            await pass_time(clock, done.done, 5.0)
    assert len(bad.requests) == 5
    assert len(good.requests) == 12


@pytest.mark.parametrize("text", ["", "waiting for the provider's rate limit, about 3 s"])
async def test_the_terminal_shows_it(text: str) -> None:
    from everturn.api import StreamItem
    from everturn.terminal.tui.state import SessionState

    state = SessionState()
    state.apply(StreamItem(progress=CallProgress("t", "", text)))
    assert state.waits["t"] == text
    assert not state.progress


async def test_without_a_limit_nothing_is_asked() -> None:
    inner, model = limited(say("one"), limit=None)
    async with Chat(model) as chat:
        await (await chat.send("go"))
        bucket = chat.app.limiter.bucket("k", "house")
        assert not bucket.is_limited
        assert bucket._task is None
    assert len(inner.requests) == 1
