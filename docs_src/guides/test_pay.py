# --8<-- [start:head]
import asyncio
from typing import Any

import pytest

from everturn import App, Chat, RunResult, ToolContext, tool
from everturn.models import RequestResult
from everturn.testing import (
    CountingIds,
    FakeClock,
    MemoryStore,
    MortalStore,
    ScriptedModel,
    call,
    calls,
    say,
)
from everturn.tools import Tool


class Bank:
    """An external service: it outlives every process, and pays once per key."""

    def __init__(self) -> None:
        self.payments: dict[str, int] = {}
        self.attempts = 0

    def tools(self) -> list[Tool]:
        @tool(idempotent=True)
        async def pay(to: str, amount: int, ctx: ToolContext) -> str:
            """Pay a person."""
            self.attempts += 1
            self.payments.setdefault(ctx.key, amount)
            return f"paid {amount} to {to}"

        return [pay]


def script() -> ScriptedModel:
    return ScriptedModel(calls(call("pay", to="Ada", amount=5)), say("Paid."))


# --8<-- [end:head]
# --8<-- [start:reads]
async def test_the_model_reads_what_the_tool_says() -> None:
    model = script()
    async with Chat(model, tools=Bank().tools()) as chat:
        turn = await chat.send("Pay Ada")
        assert (await turn).text == "Paid."
    (result,) = model.requests[-1].messages[-1].parts
    assert isinstance(result, RequestResult)
    assert result.text == "paid 5 to Ada"


# --8<-- [end:reads]
# --8<-- [start:clock]
async def test_a_tool_that_hangs_is_given_up() -> None:
    clock, hangs = FakeClock(), asyncio.Event()

    @tool(read_only=True, timeout=10)
    async def ask_the_bank() -> str:
        """Wait for the bank."""
        hangs.set()
        return await asyncio.get_running_loop().create_future()

    model = ScriptedModel(calls(call("ask_the_bank")), say("The bank is closed."))
    app = App(model, tools=[ask_the_bank], clock=clock, ids=CountingIds())
    async with Chat(model, app=app) as chat:
        turn = await chat.send("Ask")
        assert turn.id == "turn_3"  # ids are predictable: session_1, cmd_2, turn_3
        await hangs.wait()
        clock.advance(10)  # time passes only here
        assert (await turn).text == "The bank is closed."
    (result,) = model.requests[-1].messages[-1].parts
    assert isinstance(result, RequestResult)
    assert "did not answer within 10 s" in result.text


# --8<-- [end:clock]
# --8<-- [start:crash]
async def live(store: Any, bank: Bank) -> RunResult:
    """Run one process. The key lets the second process find the first one's turn."""
    async with Chat(script(), tools=bank.tools(), store=store, session="s") as chat:
        return await (await chat.send("Pay Ada", key="pay"))


async def live_and_die(store: MortalStore, bank: Bank) -> None:
    process = asyncio.ensure_future(live(store, bank))
    await store.died.wait()
    process.cancel()
    await asyncio.wait({process})


async def count_events() -> int:
    store = MemoryStore()
    await live(store, Bank())
    return await store.head("s")


@pytest.mark.parametrize("before_next", [False, True])
async def test_stopped_anywhere_it_pays_once(before_next: bool) -> None:
    for lives in range(await count_events()):
        store, bank = MemoryStore(), Bank()
        await live_and_die(MortalStore(store, lives, before_next=before_next), bank)
        result = await live(store, bank)  # the process that recovers the turn
        assert result.text == "Paid."
        assert list(bank.payments.values()) == [5], f"died at {lives}"
        assert bank.attempts <= 2  # a retry uses the same key


# --8<-- [end:crash]
