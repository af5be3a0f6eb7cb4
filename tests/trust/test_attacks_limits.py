"""Ways that were found to use more than was meant, or to have it not counted; each of them is closed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everturn import ToolContext, tool
from everturn.core.events import CallStarted, LimitReached, PermissionDecided
from everturn.core.options import Budget
from everturn.core.ports import SubagentRequest
from everturn.core.state import fold
from everturn.core.store_ports import Store
from everturn.errors import InvalidEvent
from everturn.testing import call, calls, say
from everturn.tools.subagent import SubagentTool
from tests.helpers.conversations import Scenes, Talk, costs
from tests.trust.test_attacks_subagents import DONE, helper, over


async def test_nothing_starts_when_the_time_is_over_while_it_is_looked_at() -> None:
    ran: list[str] = []

    async def slowly(ctx: Any) -> None:
        talk.clock.advance(31.0)
        await talk.until(LimitReached)

    @tool(before=slowly)
    async def work(text: str) -> str:
        ran.append(text)
        return "done"

    talk = Talk(work, budget=Budget(seconds=30))
    result = await talk.tell(calls(call("work", text="a")), say("That was all."))
    assert (result.text, ran, await talk.events(CallStarted)) == ("That was all.", [], [])
    [came] = await talk.settled()
    assert came.output.code == "seconds_limit_reached"
    log = await talk.events()
    state = fold(log[: log.index(came)])
    of: dict[str, Any] = {"turn": came.turn, "at": came.at, "call": came.call, "tool": "work"}
    state.apply(PermissionDecided(**of, identity="", hash="h", allowed=True, why=""))
    with pytest.raises(InvalidEvent, match="has reached a limit"):  # nor would a log with it be believed
        state.apply(CallStarted(**of, arguments="{}", hash="h", key=""))


async def test_the_time_runs_out_behind_another_limit_as_well(store: Store) -> None:
    @tool(idempotent=True, timeout=1000)
    async def slow(number: int) -> str:
        await asyncio.Event().wait()
        return "never"

    talk = Talk(slow, store=store, budget=Budget(calls=1, seconds=30))
    async with talk.process(calls(call("slow", number=1), call("slow", number=2)), say("That was all.")) as chat:
        turn = await chat.send("go")
        await talk.until(LimitReached)
        await asyncio.sleep(0.01)
        talk.clock.advance(31.0)
        assert (await turn).text == "That was all."
    assert [event.limit for event in await talk.events(LimitReached)] == ["calls", "seconds"]


# Sub-agent runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompts", [("one", "two"), ("one", "one")])
async def test_one_call_may_ask_for_two_sub_turns_and_each_is_counted_once(prompts: tuple[str, str]) -> None:
    @tool(idempotent=True)
    async def both(ctx: ToolContext) -> str:
        return " ".join([(await ctx.run_subagent(SubagentRequest(prompt))).text for prompt in prompts])

    talk = Talk(both)
    async with talk.process(model=Scenes(go=[calls(call("both")), DONE], one=[say("1")], two=[say("2")])) as chat:
        turn = await chat.send("go")
        await over(turn)
        state, spent = await turn.state(), await talk.store.spent(top=turn.id)
    [came] = await talk.settled()
    assert (came.state, came.output.text) == ("completed", "1 2" if "two" in prompts else "1 1")
    assert (state.child_spend.steps, spent.steps) == (2, 2)


async def test_what_sub_turns_call_over_and_over_is_a_loop() -> None:
    ran: list[int] = []

    @tool(read_only=True)
    async def look() -> str:
        ran.append(1)
        return "nothing new"

    talk, tasks = Talk(look, helper()), [f"task{at}" for at in range(4)]
    scripts = {task: [calls(call("look")), say("Below.")] for task in tasks}
    await talk.tell(model=Scenes(go=[*(calls(call("helper", task=task)) for task in tasks), DONE], **scripts))
    assert ([gate.kind for gate in talk.asked][:1], len(ran)) == (["loop"], 2)


async def test_the_budget_of_an_agent_binds_what_is_below_it() -> None:
    ran: list[int] = []

    @tool(idempotent=True)
    async def work(number: int) -> str:
        ran.append(number)
        return "done"

    deeper: Any = SubagentTool("deeper", "Do it.", max_steps=60)
    talk = Talk(work, helper(budget=Budget(calls=3, steps=30)), deeper)
    scenes = Scenes(
        go=[calls(call("helper", task="task")), DONE],
        task=[calls(call("deeper", task="work")), say("Below.")],
        work=[*(calls(call("work", number=at)) for at in range(20)), say("Deep below.")],
    )
    await talk.tell(model=scenes)
    assert 1 <= len(ran) <= 3


async def test_a_sub_turn_that_fails_has_used_what_it_has_used() -> None:
    talk, tasks = Talk(helper(), budget=Budget(tokens=2500)), [f"task{at}" for at in range(8)]
    scripts = {task: [[costs(tokens=1000), calls(call("nothing"))]] for task in tasks}  # and then it knows no more
    scenes = Scenes(go=[*(calls(call("helper", task=task)) for task in tasks), DONE], **scripts)
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go")
        await over(turn)
        state = await turn.state()
    assert [event.state for event in await talk.settled()][:2] == ["failed", "failed"]
    assert [event.limit for event in await talk.events(LimitReached)] == ["tokens"]
    assert 3000 <= state.child_spend.usage.input < 4000
