"""The guides on tools, waiting and testing: what they claim beside their examples."""

from typing import Any

import pytest
from docs_src.guides import test_pay as guide
from docs_src.guides.test_engine import TestMyEngine as TestMyEngine
from docs_src.guides.test_pay import test_a_tool_that_hangs_is_given_up as test_a_tool_that_hangs_is_given_up
from docs_src.guides.test_pay import test_stopped_anywhere_it_pays_once as test_stopped_anywhere_it_pays_once
from docs_src.guides.test_pay import test_the_model_reads_what_the_tool_says as test_the_model_reads_what_the_tool_says
from pydantic import BaseModel

from everturn import PENDING, Chat, Output, Phase, ToolContext, tool
from everturn.core.events import TurnParked
from everturn.core.hooks import Pending, StepContext
from everturn.core.parts import ToolPart
from everturn.core.ports import Tool
from everturn.core.requests import RequestResult
from everturn.errors import ConfigError
from everturn.testing import MemoryStore, MortalStore, ScriptedModel, call, calls, say


async def what_is_read(*tools: Tool, **arguments: Any) -> RequestResult:
    """Call one tool, and return what the model reads."""
    model = ScriptedModel(calls(call(tools[0].spec.name, **arguments)), say("Done."))
    async with Chat(model, tools=tools) as chat:
        await (await chat.send("Go"))
    (result,) = model.requests[-1].messages[-1].parts
    assert isinstance(result, RequestResult)
    return result


# Tools -------------------------------------------------------------------------------------------------------------


async def test_what_a_tool_returns_is_read_as_text_or_json() -> None:
    class Point(BaseModel):
        x: int

    def gives(value: object) -> Tool:
        @tool
        async def give() -> object:
            return value

        return give

    values = [("plain", "plain"), (None, "done"), ([1, 2], "[1,2]"), ({"a": 1}, '{"a":1}'), (Point(x=3), '{"x":3}')]
    for value, text in [*values, (Output("short", title="for people"), "short")]:
        assert (await what_is_read(gives(value))).text == text


async def test_what_cannot_be_written_as_json_fails_the_call_and_says_so() -> None:
    @tool
    async def give() -> object:
        return object()

    result = await what_is_read(give)
    assert result.is_error
    assert "cannot be written as JSON" in result.text


async def test_a_parameter_without_an_annotation_is_text() -> None:
    def shout(word):  # type: ignore[no-untyped-def]
        return word.upper()

    made: Any = tool(shout)
    assert made.spec.schema["properties"]["word"]["type"] == "string"
    assert (await what_is_read(made, word="hi")).text == "HI"


async def test_a_tool_is_still_the_function_it_was() -> None:
    @tool
    async def double(number: int) -> int:
        return 2 * number

    assert await double(4) == 8


def test_two_tools_of_one_name_are_refused() -> None:
    @tool
    async def look() -> None: ...

    with pytest.raises(ConfigError):
        Chat(ScriptedModel(), tools=[look, look])


async def test_the_defaults_are_those_in_the_table() -> None:
    @tool
    async def look() -> None: ...

    assert (look.spec.effects, look.spec.execute, look.spec.timeout) == ("once", "auto", 60)


# Waiting -----------------------------------------------------------------------------------------------------------


class Asks:
    """Asks two questions, one after the other."""

    name = "asks"

    def __init__(self) -> None:
        self.called = 0

    async def on_after_request(self, ctx: StepContext) -> Pending | None:
        self.called += 1
        for question in ("Really?", "Really really?"):
            if await ctx.ask(question) is None:
                return PENDING
        return None


class Counts:
    """Is done at once."""

    name = "counts"

    def __init__(self) -> None:
        self.called = 0

    def on_after_request(self, ctx: StepContext) -> None:
        self.called += 1


async def test_a_question_is_a_gate_like_any_other_and_the_hook_runs_again_from_its_top() -> None:
    asks, counts = Asks(), Counts()
    async with Chat(ScriptedModel(say("Hm.")), plugins=[asks, counts]) as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, TurnParked):
                (gate,) = await chat.gates()
                assert (gate.tool, gate.call) == ("plugin:asks", "")
                assert gate.arguments == ["Really?", "Really really?"][asks.called - 1]
                await chat.answer(gate, allow="once")
        assert (await turn).phase is Phase.COMPLETED
    assert (asks.called, counts.called) == (3, 1)


async def test_pending_without_a_question_waits_until_the_turn_is_cancelled() -> None:
    class Waits:
        def on_after_request(self, ctx: StepContext) -> Pending:
            return PENDING

    async with Chat(ScriptedModel(say("Hm.")), plugins=[Waits()]) as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, TurnParked):
                assert await chat.gates() == []
                await turn.cancel()
        assert (await turn).phase is Phase.CANCELLED


async def test_a_plan_that_is_not_approved_goes_back_to_the_model_with_the_reason() -> None:
    from docs_src.guides.plan_first import PlanFirst

    model = ScriptedModel(say("Soup."), say("Bread, then."))
    async with Chat(model, plugins=[PlanFirst()]) as chat:
        turn = await chat.send("Make dinner")
        async for event in turn:
            if isinstance(event, TurnParked):
                (gate,) = await chat.gates()
                await chat.answer(gate, deny="no soup")
        assert (await turn).text == "Bread, then."
    assert "no soup" in model.requests[-1].messages[-1].text


# Testing -----------------------------------------------------------------------------------------------------------


class Careless(guide.Bank):
    """A bank whose tool ignores its key."""

    def tools(self) -> list[Tool]:
        @tool(effects="write")
        async def pay(to: str, amount: int) -> str:
            self.payments[f"{len(self.payments)}"] = amount
            return f"paid {amount} to {to}"

        return [pay]


class Careful(guide.Bank):
    """A bank whose tool says that it must not be repeated."""

    def tools(self) -> list[Tool]:
        @tool(effects="once")
        async def pay(to: str, amount: int, ctx: ToolContext) -> str:
            self.attempts += 1
            self.payments.setdefault(ctx.key, amount)
            return f"paid {amount} to {to}"

        return [pay]


@pytest.mark.parametrize("bank", [Careless, Careful])
async def test_the_crash_test_of_the_guide_notices_a_tool_that_ignores_its_key(bank: type[guide.Bank]) -> None:
    payments: set[int] = set()
    states: set[str] = set()
    for lives in range(await guide.count_events()):
        store, world = MemoryStore(), bank()
        await guide.live_and_die(MortalStore(store, lives, before_next=True), world)
        result = await guide.live(store, world)
        payments.add(len(world.payments))
        states |= {part.state for message in result.messages for part in message.parts if isinstance(part, ToolPart)}
        assert world.attempts <= 1
    if bank is Careless:
        assert 2 in payments
    else:
        assert states == {"completed", "outcome_unknown"}
        assert payments == {1}


async def test_a_scripts_place_counts_the_answers_in_the_history() -> None:
    @tool
    async def look() -> None: ...

    model = ScriptedModel(calls(call("look")), say("Two."), say("Three."))
    async with Chat(model, tools=[look]) as chat:
        await (await chat.send("one"))
        assert (await (await chat.send("two"))).text == "Three."
    folded = ScriptedModel([*say("One. "), *calls(call("look"))], say("Two."), say("Three."))
    async with Chat(folded, tools=[look]) as chat:
        await (await chat.send("one"))
        assert (await (await chat.send("two", history="digest"))).text == "Two."


async def test_an_entry_of_a_script_may_be_a_function() -> None:
    model = ScriptedModel(lambda request: say(f"You said {request.messages[-1].text}."))
    async with Chat(model) as chat:
        assert (await (await chat.send("hello"))).text == "You said hello."
