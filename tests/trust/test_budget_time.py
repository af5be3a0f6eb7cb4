"""A budget of time: what runs is settled, what waits gets its answer, here and below, and after a restart."""

from __future__ import annotations

import asyncio

import pytest

from everturn import ToolContext, tool
from everturn.calls.pipeline import OUT_OF_TIME
from everturn.core.events import (
    CallFinished,
    CallStarted,
    GateOpened,
    LimitReached,
    StepFinished,
    SubagentStarted,
    TurnCancelled,
    TurnCompleted,
    TurnSuspended,
)
from everturn.core.options import Budget
from everturn.core.ports import SubagentRequest
from everturn.core.store_ports import Store
from everturn.events import LateResultReceived
from everturn.testing import call, calls, say
from tests.helpers.conversations import Scenes, Talk, notice_of, once
from tests.trust.endless_model import Endless, ask, work


async def limit_of(talk: Talk, session: str = "") -> LimitReached:
    """The one limit of a session's log."""
    [found] = await talk.events(LimitReached, session=session)
    return found


async def test_when_the_time_is_over_a_running_tool_is_settled_and_its_result_comes_later() -> None:
    release = asyncio.Event()

    @tool(timeout=1000)
    async def slow() -> str:
        await release.wait()
        return "slow and done"

    talk = Talk(slow, budget=Budget(seconds=120))
    async with talk.process(calls(call("slow")), lambda request: say(notice_of(request))) as chat:
        turn = await chat.send("go")
        await talk.until(CallStarted)
        talk.clock.advance(119.0)
        await asyncio.sleep(0.02)
        assert await talk.events(LimitReached) == []
        talk.clock.advance(2.0)
        result = await turn
        assert "120 seconds for this turn" in result.text
        [came] = await talk.settled()
        assert (came.state, came.still_running) == ("cancelled", True)
        assert await talk.events(LateResultReceived) == []
        release.set()
        late = await talk.until(LateResultReceived)
        assert late.output.text == "slow and done"
    await talk.check()


@pytest.mark.parametrize("restarted", ["no", "before", "after"])
async def test_a_parked_turn_whose_time_is_over_gets_its_answer_untouched(restarted: str, store: Store) -> None:
    talk = Talk(ask, work, store=store, budget=Budget(seconds=120))
    script = [calls(call("ask", number=1), call("work", number=2)), lambda request: say(notice_of(request))]
    async with talk.process(*script) as chat:
        turn = await chat.send("go")
        await talk.waiting(chat)
        if restarted == "no":
            talk.clock.advance(121.0)
            await talk.until(TurnCompleted)
    if restarted == "after":
        talk.clock.advance(121.0)
    async with talk.process(*script) as chat:
        if restarted == "before":
            await asyncio.sleep(0.02)
            assert await talk.events(TurnCompleted) == []
            talk.clock.advance(121.0)
        await talk.until(TurnCompleted)
        result = await chat.turn(turn.id)
        assert await chat.gates() == []
    assert "120 seconds" in result.text
    states = {event.output.code: event.state for event in await talk.settled()}
    assert states["seconds_limit_reached"] == "failed"
    assert len(await talk.started()) == 1


async def test_the_time_of_a_turn_is_that_of_what_it_gives_to_others() -> None:
    @tool(idempotent=True, timeout=1000)
    async def hand_on(ctx: ToolContext) -> str:
        return (await ctx.run_subagent(SubagentRequest("below"))).text

    talk = Talk(ask, hand_on, budget=Budget(seconds=30))
    scenes = Scenes(
        go=[calls(call("hand_on")), lambda request: say(notice_of(request))],
        below=[calls(call("ask", number=1)), lambda request: say(f"Below: {notice_of(request)}")],
    )
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        talk.clock.advance(31.0)
        result = await turn
        assert "30 seconds" in result.text
        below = await talk.until(TurnCompleted, session=gate.session)
        assert below is not None
        assert (await limit_of(talk, gate.session)).limit == "seconds"
    [came] = await talk.settled()
    assert (came.state, came.output.text) == ("cancelled", OUT_OF_TIME)
    assert await talk.events(CallStarted, session=gate.session) == []


async def test_a_sub_turn_whose_tool_has_had_its_time_is_cancelled() -> None:
    @tool(idempotent=True, timeout=10)
    async def hasty(ctx: ToolContext) -> str:
        return (await ctx.run_subagent(SubagentRequest("below"))).text

    @tool(timeout=1000)
    async def dawdle() -> str:
        await asyncio.Event().wait()
        return "never"

    talk = Talk(dawdle, hasty)
    scenes = Scenes(go=[calls(call("hasty")), say("Then not.")], below=[calls(call("dawdle")), say("Never.")])
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go")
        subagent = await talk.until(SubagentStarted)
        await talk.until(CallStarted, session=subagent.session)
        talk.clock.advance(11.0)
        await asyncio.sleep(0.01)
        talk.clock.advance(2.0)
        result = await turn
        await talk.until(TurnCancelled, session=subagent.session)
    assert result.text == "Then not."
    [came] = await talk.settled()
    assert (came.state, came.output.code) == ("failed", "timeout")


async def test_the_time_in_which_a_person_is_asked_below_is_not_the_tools() -> None:
    @tool(idempotent=True, timeout=10)
    async def hasty(ctx: ToolContext) -> str:
        return (await ctx.run_subagent(SubagentRequest("below"))).text

    talk = Talk(ask, hasty)
    scenes = Scenes(go=[calls(call("hasty")), say("So.")], below=[calls(call("ask", number=1)), say("Yes.")])
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        talk.clock.advance(86_400.0)
        await chat.answer(gate, allow="once")
        result = await turn
    assert result.text == "So."
    [came] = await talk.settled()
    assert (came.state, came.output.text) == ("completed", "Yes.")


async def test_a_turn_that_waits_for_a_person_uses_nothing_else() -> None:
    talk, model = Talk(ask, budget=Budget(calls=2)), Endless(name="ask")
    result = await talk.tell(model=model, reply=once)
    assert "2 calls" in result.text
    assert len(await talk.events(GateOpened)) == 2
    assert (len(await talk.events(StepFinished)), len(await talk.events(CallFinished))) == (3, 2)
