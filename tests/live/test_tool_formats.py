"""A real model that has never heard of tool calls makes one: told how in words, held to the form by its server."""

from __future__ import annotations

import pytest

from everturn import Chat, get_model, tool
from everturn.core.hooks import RequestContext
from everturn.core.parts import ToolPart
from everturn.events import CallDelta, Phase

pytestmark = [pytest.mark.live, pytest.mark.timeout(600), pytest.mark.xdist_group("local-model")]


@tool(read_only=True)
async def get_weather(city: str) -> str:
    """Get the weather in a city."""
    return f"It is 21 degrees and sunny in {city}."


class CallThenAnswer:
    """One call, then words: a model this small would do the one or the other for ever."""

    name = "call_then_answer"

    def on_params(self, ctx: RequestContext) -> None:
        ctx.params["tool_choice"] = "required" if ctx.step == 1 else "none"


async def test_a_call_is_made_executed_and_answered(model_url: str) -> None:
    model = get_model("llamacpp:smollm2", base_url=model_url, tool_format="json")
    params = {"temperature": 0, "max_tokens": 64, "parallel_tool_calls": False}
    async with Chat(model, tools=[get_weather], plugins=[CallThenAnswer()], system="You are brief.") as chat:
        turn = await chat.send("What is the weather in Paris?", params=params, max_steps=2)
        streamed = [event async for event in turn if isinstance(event, CallDelta)]
        result = await turn

    assert result.phase is Phase.COMPLETED
    assert result.message is not None
    [call] = [part for part in result.message.parts if isinstance(part, ToolPart)]
    assert (call.name, call.state) == ("get_weather", "completed")
    assert call.output is not None
    assert call.output.text == "It is 21 degrees and sunny in Paris."
    assert len(streamed) > 1
    assert result.text
