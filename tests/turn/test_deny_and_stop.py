"""Deny and stop: a denial that ends the turn without another model request."""

from __future__ import annotations

from typing import Any

import pytest

from everturn import Chat, ToolContext, tool
from everturn.core.events import CallFinished, LimitReached, StepStarted
from everturn.core.tool import Question
from everturn.errors import AnswerUnfit
from everturn.events import GateOpened, Phase, TurnCompleted
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="always")
async def pay(amount: int) -> str:
    return f"paid {amount}"


@tool(read_only=True)
async def look() -> str:
    return "seen"


@tool(idempotent=True)
async def fill(ctx: ToolContext) -> str:
    answer = await ctx.ask(Question("How much?"))
    return f"filled {answer.allowed}"


async def stopped(*script: Any, tools: Any = (pay, look), gates: int = 1, **reply: Any) -> tuple[Any, list[Any], Any]:
    """Answer the gate number `gates` of a turn, and return its result, its log and the model."""
    model = ScriptedModel(*script)
    async with Chat(model, tools=list(tools)) as chat:
        turn = await chat.send("go")
        opened = 0
        async for item in turn:
            if isinstance(item, GateOpened):
                opened += 1
                if opened == gates:
                    await turn.answer(item.gate, **reply)
        result = await turn
        log = [entry.event for entry in await chat.app.store.events(chat.session)]
    return result, log, model


def of(log: list[Any], kind: type[Any]) -> list[Any]:
    return [event for event in log if isinstance(event, kind)]


async def test_a_denial_with_stop_ends_the_turn_without_another_request() -> None:
    result, log, model = await stopped(
        calls(call("pay", amount=3)), say("never said"), deny="too much", stop=True, by="ada"
    )
    assert result.phase is Phase.COMPLETED
    assert len(model.requests) == len(of(log, StepStarted)) == 1
    [finished] = of(log, CallFinished)
    assert finished.state == "denied"
    assert "too much" in finished.output.text
    [limit] = of(log, LimitReached)
    assert (limit.limit, limit.scope) == ("denied", "turn")
    assert limit.text == "ada denied pay and stopped the turn: too much"
    assert of(log, TurnCompleted)


async def test_a_denial_without_stop_asks_the_model_again() -> None:
    result, log, model = await stopped(calls(call("pay", amount=3)), say("Then not."), deny="too much")
    assert result.text == "Then not."
    assert len(model.requests) == 2
    assert not of(log, LimitReached)


async def test_the_other_calls_that_ask_are_denied_too_and_what_ran_keeps_its_result() -> None:
    tool_calls = calls(call("pay", amount=1), call("pay", amount=2), call("look"))
    _, log, model = await stopped(tool_calls, say("never said"), gates=2, deny=True, stop=True)
    assert len(model.requests) == 1
    finished = of(log, CallFinished)
    assert sorted(event.state for event in finished) == ["completed", "denied", "denied"]
    assert any("before this call ran" in event.output.text for event in finished)


async def test_a_form_that_is_denied_with_stop_ends_the_turn_after_its_tool() -> None:
    _, log, model = await stopped(calls(call("fill")), say("never said"), tools=(fill,), deny="no", stop=True)
    assert len(model.requests) == 1
    assert [event.call for event in of(log, CallFinished)]
    assert of(log, TurnCompleted)


async def test_the_next_turn_reads_what_was_denied() -> None:
    model = ScriptedModel(calls(call("pay", amount=3)), say("Hello again."))
    async with Chat(model, tools=[pay]) as chat:
        turn = await chat.send("go")
        async for item in turn:
            if isinstance(item, GateOpened):
                await turn.answer(item.gate, deny="too much", stop=True)
        assert (await (await chat.send("and now?"))).text == "Hello again."
    results = [message for message in model.requests[-1].messages if "too much" in str(message)]
    assert results


async def test_only_a_denial_can_stop() -> None:
    async with Chat(ScriptedModel(calls(call("pay", amount=3)), say("ok")), tools=[pay]) as chat:
        turn = await chat.send("go")
        async for item in turn:
            if isinstance(item, GateOpened):
                with pytest.raises(AnswerUnfit, match="only a denial can stop the turn"):
                    await turn.answer(item.gate, allow="once", stop=True)
                await turn.answer(item.gate, deny=True, stop=True)
