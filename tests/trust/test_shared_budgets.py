"""One budget for all that comes of a turn: in parallel, one after the other, and far below."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from everturn import ToolContext, tool
from everturn.calls.output import OutputLimits
from everturn.core.chunks import Chunk
from everturn.core.events import LimitReached
from everturn.core.options import Budget
from everturn.core.ports import SubagentRequest, Tool
from everturn.core.requests import ModelRequest
from everturn.core.store_ports import Store
from everturn.stores.sql.store import SqlStore
from everturn.testing import call, calls, say
from tests.helpers.conversations import Scenes, Talk, costs, end, notice_of
from tests.trust.endless_model import Endless, delegate, mortal, settings_of, work


class Crowd(Endless):
    """The same, for a turn that gives many tasks at once."""

    many = 50

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        is_top = any(spec.name == "delegate" for spec in request.tools)
        if not is_top:
            async for batch in super().stream(request):
                yield batch
            return
        self.requests.append(request)
        for batch in calls(*(call("delegate", number=number) for number in range(self.many))):
            yield batch


@pytest.mark.parametrize(
    ("cap", "usd"), [(1.0, 0.01), (0.25, 0.01), (2.0, 0.05)], ids=["a hundred", "half of them", "forty"]
)
@pytest.mark.parametrize("where", ["turn", "session", "tenant"])
async def test_fifty_sub_turns_at_once_pay_no_more_than_the_cap_and_what_is_in_flight(
    cap: float, usd: float, where: str, store: Store
) -> None:
    budget = Budget(cost=cap)
    settings = settings_of(where, budget)
    talk = Talk(work, delegate, store=store, settings=settings, limits=OutputLimits(parallel=64))
    talk.options["budget"] = budget if where == "turn" else Budget()
    model = Crowd(usd=usd)
    result = await talk.tell(model=model)
    in_flight, over = under_way(store, model) * usd, model.paid - cap
    assert f"{cap:g} US dollars" in result.text
    assert model.most > 2, "they did not run at once"
    assert model.ordinary * usd <= cap + in_flight + 1e-9
    # And one more, with which the turn itself ends in words.
    summary = (
        f"{model.paid:.2f} of {cap}: {model.most} at once, {model.ordinary} requests and {model.closing} closing ones"
    )
    assert over <= in_flight + usd + 1e-9, summary
    assert len(await talk.sessions()) == 51
    await talk.check()


def under_way(store: Store, model: Crowd) -> int:
    """How many may be asked for and not be written down yet: those that stream at once or, where a write takes its time,
    one for each sub-agent run.
    """
    return model.many if isinstance(store, SqlStore) else model.most


@pytest.mark.parametrize("where", ["turn", "session"])
async def test_a_limit_of_calls_holds_for_all_that_comes_of_a_turn(where: str, store: Store) -> None:
    budget = Budget(calls=60)
    talk = Talk(work, delegate, store=store, limits=OutputLimits(parallel=64))
    talk.settings = settings_of(where, budget)
    talk.options["budget"] = budget if where == "turn" else Budget()
    model = Crowd()
    await talk.tell(model=model)
    assert len(await talk.started()) <= 60 + under_way(store, model)


class Few(Crowd):
    many = 3


@pytest.mark.parametrize("before_next", [False, True])
async def test_what_is_shared_is_counted_through_a_death_after_any_event(before_next: bool) -> None:
    cap = 8
    for lives in itertools.count(1):
        talk = Talk(work, delegate, budget=Budget(calls=cap))
        is_dead = await mortal(talk, lives, before_next, Few())
        async with talk.process(model=Few()) as chat:
            result = await (await chat.send("go", key="go"))
            assert "8 calls" in result.text
        # Each sub-agent run may be about to start one when the last is taken.
        assert cap <= len(await talk.started()) <= cap + Few.many
        assert len(await talk.sessions()) == 1 + Few.many  # no task was given twice
        await talk.check()
        if not is_dead:
            assert lives > 15, "it never died"
            return


def nested(depth: int) -> list[Tool]:
    """Tools that delegate to one another."""

    def make(level: int) -> Tool:
        @tool(idempotent=True, name=f"level{level}", repeatable=True)
        async def run(number: int, ctx: ToolContext) -> str:
            return (await ctx.run_subagent(SubagentRequest(f"at{level}", max_steps=100))).text

        return run

    return [make(level) for level in range(1, depth + 1)]


@pytest.mark.parametrize(("budget", "named"), [(Budget(steps=12), "12 steps"), (Budget(cost=0.12), "0.12 US dollars")])
async def test_sub_turns_of_sub_turns_share_what_the_top_may_use(budget: Budget, named: str, store: Store) -> None:
    talk = Talk(work, *nested(3), store=store, budget=budget)
    endless = [[costs(0.01), calls(call("work", number=at))] for at in range(40)]

    def close(request: ModelRequest) -> Any:
        return [costs(0.01), say(notice_of(request) or "Done."), end()]

    def unless_closing(step: Any) -> Any:
        return lambda request: step if request.tools else close(request)

    scenes = Scenes(
        go=[*map(unless_closing, [[costs(0.01), calls(call("level1", number=1))]] * 4), close],
        at1=[*map(unless_closing, [[costs(0.01), calls(call("level2", number=1))]] * 4), close],
        at2=[*map(unless_closing, [[costs(0.01), calls(call("level3", number=1))]] * 4), close],
        at3=[*map(unless_closing, endless), close],
    )
    result = await talk.tell(model=scenes)
    ordinary = [request for request in scenes.requests if request.tools]
    assert named in result.text
    assert len(ordinary) == 12  # nothing is in flight beside another here


async def test_one_sub_turn_after_the_other_may_use_all_that_is_left(store: Store) -> None:
    """Ten steps: one to delegate, four below; one to delegate, four below; and that is the limit."""
    talk = Talk(work, delegate, store=store, budget=Budget(steps=10))

    def below(count: int) -> list[Any]:
        return [*(calls(call("work", number=at)) for at in range(count - 1)), say("Below.")]

    scenes = Scenes(
        go=[
            calls(call("delegate", number=1)),
            calls(call("delegate", number=2)),
            lambda request: say(notice_of(request)),
        ],
        **{"task 1": below(4), "task 2": below(4)},
    )
    result = await talk.tell(model=scenes)
    assert [event.output.text for event in await talk.settled()] == ["Below.", "Below."]
    assert "10 steps" in result.text


async def test_the_own_budget_of_a_sub_turn_ends_it_and_not_the_turn_above() -> None:
    @tool(idempotent=True)
    async def small(number: int, ctx: ToolContext) -> str:
        return (await ctx.run_subagent(SubagentRequest("small", budget=Budget(calls=2)))).text

    talk = Talk(work, small)
    scenes = Scenes(
        go=[calls(call("small", number=1)), say("Done.")],
        small=[
            calls(*(call("work", number=at) for at in range(5))),
            lambda request: say(f"{len(request.tools)} tools. {notice_of(request)}"),
        ],
    )
    result = await talk.tell(model=scenes)
    assert result.text == "Done."
    [came] = await talk.settled()
    assert came.output.text.startswith("0 tools. Stop here: the limit of 2 calls for this turn is reached")
    assert await talk.events(LimitReached) == []
