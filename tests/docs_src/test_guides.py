"""The guides on tools, waiting and testing: what they claim beside their examples."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from docs_src.guides import test_pay as guide
from docs_src.guides.test_agent import test_the_agent_looks_up_the_order as test_the_agent_looks_up_the_order
from docs_src.guides.test_engine import TestMyEngine as TestMyEngine
from docs_src.guides.test_pay import test_a_tool_that_hangs_is_given_up as test_a_tool_that_hangs_is_given_up
from docs_src.guides.test_pay import test_stopped_anywhere_it_pays_once as test_stopped_anywhere_it_pays_once
from docs_src.guides.test_pay import test_the_model_reads_what_the_tool_says as test_the_model_reads_what_the_tool_says
from pydantic import BaseModel

from everturn import (
    Chat,
    ModelError,
    Output,
    RunResult,
    TextPart,
    ToolContext,
    Turn,
    TurnError,
    tool,
)
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, OpaqueChunk, TextChunk, UsageChunk
from everturn.core.hooks import GateContext, StepContext, Suspend
from everturn.core.parts import Finish, Opaque, ToolPart, Usage
from everturn.core.ports import Tool
from everturn.core.requests import ModelRequest, RequestResult
from everturn.errors import ConfigError, GateClosed
from everturn.events import GateOpened, GateResolved, Phase, TextDelta, TurnSuspended
from everturn.plugins import SUSPEND
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

    shout_tool: Any = tool(shout)
    assert shout_tool.spec.schema["properties"]["word"]["type"] == "string"
    assert (await what_is_read(shout_tool, word="hi")).text == "HI"


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

    assert (look.spec.at_most_once, look.spec.approval, look.spec.timeout) == (True, "auto", 60)


@pytest.mark.parametrize("wrong", [{"read_only": "reed"}, {"approval": "maybe"}, {"timeout": 0}, {"timeout": "long"}])
def test_an_option_of_a_tool_that_makes_no_sense_is_refused_when_it_is_made(wrong: dict[str, Any]) -> None:
    async def look() -> None: ...

    with pytest.raises(ConfigError):
        tool(**wrong)(look)


async def test_a_turn_that_asks_is_awaited_until_somebody_answers() -> None:
    @tool(approval="always")
    async def look() -> str:
        return "seen"

    parked = asyncio.Event()
    async with Chat(ScriptedModel(calls(call("look")), say("Seen.")), tools=[look]) as chat:
        chat.subscribe(lambda turn: parked.set() if turn.phase is Phase.WAITING else None)
        collected = asyncio.ensure_future(_collect(await chat.send("Go")))
        await parked.wait()
        (gate,) = await chat.gates()
        assert not collected.done()
        await chat.answer(gate, allow="once")
        assert (await collected).text == "Seen."


async def _collect(turn: Turn) -> RunResult:
    return await turn


# Models ------------------------------------------------------------------------------------------------------------


class Streams:
    """A model that yields these batches, and may then raise."""

    name = "streams"

    def __init__(self, *batches: Sequence[Chunk], error: Exception | None = None, hangs: bool = False) -> None:
        self._batches, self._error, self._hangs = batches, error, hangs
        self.has_let_go = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        try:
            for batch in self._batches:
                yield batch
            if self._hangs:
                await asyncio.get_running_loop().create_future()
            if self._error is not None:
                raise self._error
        finally:
            self.has_let_go = True


async def test_a_stream_without_a_finish_was_cut_off() -> None:
    async with Chat(Streams([TextChunk("I was ")])) as chat:
        with pytest.raises(TurnError) as failed:
            await (await chat.send("Go"))
        assert failed.value.kind == "truncated"


async def test_what_a_model_raises_is_the_error_of_the_turn_and_what_had_arrived_stays() -> None:
    async with Chat(Streams([TextChunk("I was ")], error=ModelError("no line", kind="network"))) as chat:
        with pytest.raises(TurnError, match="no line") as failed:
            await (await chat.send("Go"))
        assert failed.value.kind == "network"
        assert (await chat.messages())[-1].text == "I was "


async def test_the_echo_of_the_guide_refuses_what_is_too_long() -> None:
    from docs_src.guides.echo_model import Echo

    async with Chat(Echo()) as chat:
        with pytest.raises(TurnError) as failed:
            await (await chat.send("x" * 2000))
        assert failed.value.kind == "too_long"


async def test_the_stream_of_a_cancelled_turn_is_closed() -> None:
    model = Streams([TextChunk("As far ")], hangs=True)
    async with Chat(model) as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, TextDelta):
                await turn.cancel()
        assert (await turn).phase is Phase.CANCELLED
        assert model.has_let_go


async def test_a_call_comes_in_pieces_and_the_last_usage_counts() -> None:
    @tool
    async def add(a: int, b: int) -> int:
        return a + b

    class Adds:
        name = "adds"

        async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
            if request.messages[-1].role == "user":
                yield [CallChunk(0, '{"a":', "add"), CallChunk(0, "1,")]
                yield [CallChunk(0, '"b":2}'), UsageChunk(Usage(input=1)), UsageChunk(Usage(input=5))]
                yield [FinishChunk("tool_calls")]
            else:
                (result,) = request.messages[-1].parts
                assert isinstance(result, RequestResult)
                yield [TextChunk(result.text), FinishChunk("stop")]

    async with Chat(Adds(), tools=[add]) as chat:
        result = await (await chat.send("Add"))
    assert (result.text, result.usage) == ("3", Usage(input=5))


async def test_a_sealed_payload_belongs_to_the_part_before_it() -> None:
    seal = Opaque("provider", "sealed")
    async with Chat(Streams([TextChunk("Hi."), OpaqueChunk(seal), FinishChunk("stop")])) as chat:
        await (await chat.send("Go"))
        assert (await chat.messages())[-1].parts[0] == TextPart("Hi.", seal)


def test_the_guide_has_a_row_for_every_chunk_and_names_every_reason_a_model_may_give() -> None:
    page = (Path(__file__).parent.parent.parent / "docs/guides/custom-models.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)\(", page, re.MULTILINE) == [kind.__name__ for kind in get_args(Chunk)]
    for reason in {*get_args(Finish)} - {"cancelled", "error"}:
        assert f"`{reason}`" in page


# Waiting -----------------------------------------------------------------------------------------------------------


class Asks:
    """Asks two questions, one after the other."""

    name = "asks"

    def __init__(self) -> None:
        self.called = 0

    async def on_after_request(self, ctx: StepContext) -> Suspend | None:
        self.called += 1
        for question in ("Really?", "Really really?"):
            if await ctx.ask(question) is None:
                return SUSPEND
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
            if isinstance(event, TurnSuspended):
                (gate,) = await chat.gates()
                assert (gate.tool, gate.call) == ("plugin:asks", "")
                assert gate.arguments == ["Really?", "Really really?"][asks.called - 1]
                await chat.answer(gate, allow="once")
        assert (await turn).phase is Phase.COMPLETED
    assert (asks.called, counts.called) == (3, 1)


async def test_pending_without_a_question_waits_until_the_turn_is_cancelled() -> None:
    class Waits:
        def on_after_request(self, ctx: StepContext) -> Suspend:
            return SUSPEND

    async with Chat(ScriptedModel(say("Hm.")), plugins=[Waits()]) as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                assert await chat.gates() == []
                await turn.cancel()
        assert (await turn).phase is Phase.CANCELLED


async def test_a_plan_that_is_not_approved_goes_back_to_the_model_with_the_reason() -> None:
    from docs_src.guides.plan_first import PlanFirst

    model = ScriptedModel(say("Soup."), say("Bread, then."))
    async with Chat(model, plugins=[PlanFirst()]) as chat:
        turn = await chat.send("Make dinner")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                (gate,) = await chat.gates()
                await chat.answer(gate, deny="no soup")
        assert (await turn).text == "Bread, then."
    assert "no soup" in model.requests[-1].messages[-1].text


async def test_a_gate_that_a_plugin_answered_is_shown_and_cannot_be_answered_again() -> None:
    class Denies:
        name = "cautious"

        def on_gate(self, ctx: GateContext) -> None:
            ctx.deny("it is late")

    @tool(approval="always")
    async def pay() -> None: ...

    model = ScriptedModel(calls(call("pay")), say("Oh."))
    async with Chat(model, tools=[pay], plugins=[Denies()]) as chat:
        turn = await chat.send("Go")
        shown = [event async for event in turn if isinstance(event, GateOpened | GateResolved | TurnSuspended)]
        assert [type(event) for event in shown] == [GateOpened, GateResolved]
        assert isinstance(shown[0], GateOpened)
        with pytest.raises(GateClosed):
            await turn.answer(shown[0].gate, allow="once")
    (result,) = model.requests[-1].messages[-1].parts
    assert isinstance(result, RequestResult)
    assert result.text == "The plugin cautious did not allow this call and said why: it is late."


# Testing -----------------------------------------------------------------------------------------------------------


class Careless(guide.Bank):
    """A bank whose tool ignores its key."""

    def tools(self) -> list[Tool]:
        @tool(idempotent=True)
        async def pay(to: str, amount: int) -> str:
            self.payments[f"{len(self.payments)}"] = amount
            return f"paid {amount} to {to}"

        return [pay]


class Careful(guide.Bank):
    """A bank whose tool says that it must not be repeated."""

    def tools(self) -> list[Tool]:
        @tool()
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
        assert (await (await chat.send("two", tool_history="digest"))).text == "Two."


async def test_an_entry_of_a_script_may_be_a_function() -> None:
    model = ScriptedModel(lambda request: say(f"You said {request.messages[-1].text}."))
    async with Chat(model) as chat:
        assert (await (await chat.send("hello"))).text == "You said hello."
