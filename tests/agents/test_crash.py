"""A process that runs agents is stopped after every event and before it; the next one comes to the same end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel

from everturn import Agent, App, RunResult, ToolContext, TurnInfo, handoff, tool
from everturn.core.store_ports import Store
from everturn.models.scripted import ScriptedModel, call, calls, say
from everturn.testing import MemoryStore, MortalStore


class Bill(BaseModel):
    cents: int


class Notes(BaseModel):
    facts: list[str]


def app_of(store: Store, seen: Counter[str]) -> App:
    """A front desk that pays once, asks a sub-agent, and hands over to an agent whose first answer is wrong."""

    async def deps(turn: TurnInfo) -> AsyncIterator[str]:
        seen["opened"] += 1
        yield turn.metadata["customer"]
        seen["closed"] += 1

    @tool
    async def pay(ctx: ToolContext[str]) -> str:
        """Pay; it must not happen twice."""
        seen["paid"] += 1
        return f"paid by {ctx.deps}"

    def instructions() -> str:
        seen["rendered"] += 1
        return "You bill."

    researcher = Agent(
        ScriptedModel(say("I know nothing."), say('{"facts": ["one"]}')), name="researcher", output_type=Notes
    )
    billing = Agent(
        ScriptedModel([], [], [], say("9 euros"), say('{"cents": 900}')),
        name="billing",
        instructions=instructions,
        output_type=Bill,
        output_retries=1,
    )
    front = Agent(
        ScriptedModel(calls(call("pay")), calls(call("researcher", task="facts")), calls(call("transfer_to_billing"))),
        name="front",
        deps=deps,
        tools=[pay, researcher.as_tool(), handoff(billing)],
    )
    return App(agents=[front], store=store)


async def play(lives: int | None, before_next: bool) -> tuple[RunResult[Any], Counter[str], int, list[str]]:
    store, seen = MemoryStore(), Counter[str]()
    mortal = MortalStore(store, lives, before_next=before_next)
    first = app_of(mortal, seen)
    turn = await first.chat("s", agent="front").send("What does it cost?", key="k", metadata={"customer": "ada"})
    over = asyncio.ensure_future(turn.result())
    died = asyncio.ensure_future(mortal.died.wait())
    await asyncio.wait({over, died}, return_when="FIRST_COMPLETED")
    mortal.kill()
    for task in (over, died):
        task.cancel()
    await asyncio.gather(over, died, return_exceptions=True)
    await first.aclose()
    async with app_of(store, seen) as second:
        chat = second.chat("s", agent="front")
        again = await chat.send("What does it cost?", key="k", metadata={"customer": "ada"})
        result = await again.result()
        texts = [message.text for message in await chat.messages()]
    return result, seen, len(await store.events("s")), texts


@pytest.mark.parametrize("before_next", [False, True], ids=["after", "before the next"])
async def test_a_run_with_a_sub_agent_a_handoff_and_a_wrong_answer_ends_the_same_wherever_it_was_stopped(
    before_next: bool,
) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    whole, seen, count, texts = await play(None, before_next)
    assert whole.output == Bill(cents=900)
    assert (seen["paid"], seen["rendered"]) == (1, 1)
    unknown = 0
    for lives in range(1, count):
        result, seen, _, replayed = await play(lives, before_next)
        assert result.output == Bill(cents=900), f"stopped at {lives}"
        assert replayed == texts, f"stopped at {lives}"
        assert seen["paid"] <= 1, f"stopped at {lives}"
        unknown += not any("paid by ada" in str(part) for message in result.messages for part in message.parts)
    assert unknown <= 4  # only where the process died while the tool was running
