"""Limits of a turn, a conversation and an account: they hold in parallel, below and after a restart, and end in words."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from everturn.calls.output import OutputLimits
from everturn.core.commands import Send
from everturn.core.events import CallStarted, LimitReached, StepStarted, TurnCompleted
from everturn.core.options import Budget
from everturn.core.parts import TextPart
from everturn.core.store_ports import Store
from everturn.running.drive_setup import TurnSettings
from everturn.testing import ScriptedHang, ScriptedModel, call, calls, say
from tests.helpers.conversations import Talk, costs, notice_of
from tests.helpers.waiting import wait_until
from tests.trust.endless_model import Endless, ask, mortal, settings_of, work


async def limit_of(talk: Talk, session: str = "") -> LimitReached:
    """The one limit of a session's log."""
    [found] = await talk.events(LimitReached, session=session)
    return found


# One turn -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "named", "starts"),
    [
        (Budget(steps=3), "3 steps", 3),
        (Budget(calls=4), "4 calls", 4),
        (Budget(tokens=250), "250 tokens", 3),
        (Budget(cost=0.05), "0.05 US dollars", 5),
        (Budget(steps=9, calls=2, cost=9.0), "2 calls", 2),
    ],
)
async def test_a_turn_ends_with_a_written_answer_that_names_the_limit(budget: Budget, named: str, starts: int) -> None:
    talk, model = Talk(work, budget=budget), Endless(usd=0.01, tokens=100)
    result = await talk.tell(model=model)
    limit = await limit_of(talk)
    assert limit.text == f"the limit of {named} for this turn is reached"
    assert limit.text in result.text
    assert len(await talk.started()) == starts
    assert [bool(request.tools) for request in model.requests] == [True] * (len(model.requests) - 1) + [False]
    assert [event.closing for event in await talk.events(StepStarted)][-1]
    assert isinstance((await talk.events())[-1], TurnCompleted)
    await talk.check()


@pytest.mark.parametrize("each", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("parallel", [1, 4, 64])
@pytest.mark.parametrize("cap", [1, 2, 5, 6])
async def test_as_many_calls_start_as_may_and_the_others_are_settled(cap: int, parallel: int, each: int) -> None:
    talk = Talk(work, budget=Budget(calls=cap), limits=OutputLimits(parallel=parallel))
    result = await talk.tell(model=Endless(each=each))
    assert len(await talk.started()) == cap
    states = [event.state for event in await talk.settled()]
    assert states.count("completed") == cap
    unrun = [event for event in await talk.settled() if event.state != "completed"]
    assert {event.output.text for event in unrun} <= {'{"status":"incomplete","reason":"calls_limit_reached"}'}
    assert len(states) == -(-cap // each) * each
    assert f"{cap} calls" in result.text


async def test_what_is_asked_when_the_limit_is_reached_is_not_asked_any_more() -> None:
    talk = Talk(work, ask, budget=Budget(calls=1))
    script = [calls(call("ask", number=1), call("work", number=2), call("work", number=3)), say("Closed.")]
    result = await talk.tell(*script, reply=lambda gate: None)
    assert result.text == "Closed."
    assert sorted(event.state for event in await talk.settled()) == ["completed", "failed", "failed"]


async def test_steps_that_are_few_close_as_well() -> None:
    """`max_steps` is no budget, and ends in the same way."""
    talk, model = Talk(work, max_steps=2), Endless()
    result = await talk.tell(model=model)
    assert "limit of steps" in result.text
    assert len(await talk.started()) == 1


# Conversations and accounts -------------------------------------------------------------------------------------------

SCOPES = {"session": "this conversation", "tenant": "this account"}


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(
    ("budget", "named"),
    [
        (Budget(steps=3), "3 steps"),
        (Budget(calls=3), "3 calls"),
        (Budget(tokens=300), "300 tokens"),
        (Budget(cost=0.03), "0.03 US dollars"),
    ],
)
async def test_a_conversation_or_an_account_that_has_used_its_own_is_told_so_at_once(
    scope: str, budget: Budget, named: str, store: Store
) -> None:
    settings = settings_of(scope, budget)
    talk, model = Talk(work, store=store, settings=settings), Endless(usd=0.01, tokens=100)
    first = await talk.tell(model=model)
    reached = f"The limit of {named} for {SCOPES[scope]} is reached"
    assert (
        first.text == f"{reached}; this is as far as it got."
    )  # in our words: a model is not asked with what is used up
    assert len(await talk.started()) == 3
    assert all(request.tools for request in model.requests)
    request_count = len(model.requests)
    second = await talk.tell(model=model, text="and now?")
    assert second.text == f"{reached}; nothing was done."
    assert len(model.requests) == request_count
    talk.session = "another"
    third = await talk.tell(model=model, text="and here?")
    if scope == "session":
        assert (reached in third.text, len(await talk.started())) == (True, 6)
    else:
        assert (third.text, len(model.requests)) == (second.text, request_count)
    await talk.check()


async def test_an_account_has_its_own_for_each_period_and_others_are_not_affected(store: Store) -> None:
    settings = TurnSettings(tenant_budget=Budget(calls=2), tenant_period=3600.0)
    talk, model = Talk(work, store=store, settings=settings), Endless()
    await talk.tell(model=model)
    assert len(await talk.started()) == 2
    async with talk.process(model=model) as chat:
        parts = (TextPart("go"),)
        other = Send(key="k", session="theirs", tenant="other", turn="t_other", message="m", parts=parts, at_leaf=True)
        await chat.app.command(other)
        await talk.until(TurnCompleted, session="theirs")
    assert len(await talk.started()) == 4
    talk.clock.advance(1800.0)
    assert "nothing was done" in (await talk.tell(model=model, text="again")).text
    talk.clock.advance(1801.0 + 1800.0)
    assert "nothing was done" not in (await talk.tell(model=model, text="later")).text
    assert len(await talk.started()) == 6


@pytest.mark.parametrize("scope", SCOPES)
async def test_many_calls_in_one_step_do_not_pass_the_limit_of_a_conversation(scope: str, store: Store) -> None:
    settings = settings_of(scope, Budget(calls=5))
    talk = Talk(work, store=store, settings=settings, limits=OutputLimits(parallel=4))
    await talk.tell(model=Endless(each=20))
    assert len(await talk.started()) <= 5 + 4  # what was under way when it was reached


# Restarts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before_next", [False, True])
@pytest.mark.parametrize("where", ["turn", "session", "tenant"])
async def test_counters_survive_a_death_after_any_event(where: str, before_next: bool) -> None:
    cap, prompts = 3, ("one", "two")
    for lives in itertools.count(1):
        settings = settings_of(where, Budget(calls=cap))
        talk = Talk(work, settings=settings, budget=Budget(calls=cap if where == "turn" else 0))
        is_dead = await mortal(talk, lives, before_next, Endless(), prompts)
        async with talk.process(model=Endless()) as chat:
            for prompt in prompts:
                await (await chat.send(prompt, key=prompt))
        starts = await talk.events(CallStarted)
        per_turn = {turn: sum(event.turn == turn for event in starts) for turn in {event.turn for event in starts}}
        if where == "turn":
            assert list(per_turn.values()) == [cap, cap]
        else:
            assert len(starts) == cap
        await talk.check()
        if not is_dead:
            assert lives > 20, "it never died"
            return


async def test_what_was_paid_before_a_restart_is_counted_after_it(store: Store) -> None:
    talk = Talk(work, store=store, budget=Budget(cost=0.05))
    script: list[Any] = [[costs(0.02), calls(call("work", number=at))] for at in range(9)]
    first = ScriptedModel(script[0], script[1], [ScriptedHang()])
    async with talk.process(model=first) as chat:
        turn = await chat.send("go")
        await wait_until(lambda: len(first.requests) == 3)
    second = ScriptedModel(*script[:3], lambda request: [say(notice_of(request))])
    async with talk.process(model=second) as chat:
        result = await chat.turn(turn.id)
    assert "0.05 US dollars" in result.text
    assert (len(second.requests), len(await talk.started())) == (2, 3)
