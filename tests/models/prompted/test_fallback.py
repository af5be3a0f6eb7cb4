"""A model that turns out to have no native tool calls is prompted to call tools: the turn goes on as with any other."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from everturn import Chat, get_model, tool
from everturn.errors import TurnError
from everturn.testing.provider import Provider, Say, Status

REFUSAL = Status(400, '{"error": {"message": "registry.ollama.ai/library/gemma3:4b does not support tools"}}')
CALL = Say('{"tool_calls": [{"name": "weather", "arguments": {"city": "Lisbon"}}]}')


@tool(read_only=True)
def weather(city: str) -> str:
    """The weather of today."""
    return f"{city}: rain"


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider() as provider:
        yield provider


async def test_a_model_whose_server_refuses_tools_calls_them_all_the_same(provider: Provider) -> None:
    provider.script("m", [[REFUSAL], [CALL], [Say("It rains.")], [Say("Still.")]], sequence=True)
    async with Chat(get_model("compatible:m", base_url=f"{provider.url}/v1"), tools=[weather]) as chat:
        first = await (await chat.send("How is the weather in Lisbon?"))
        second = await (await chat.send("And now?"))
    assert (first.text, second.text) == ("It rains.", "Still.")
    assert ["tools" in seen.body for seen in provider.seen] == [True, False, False, False]
    assert "Lisbon: rain" in str(provider.seen[2].body["messages"])


async def test_a_format_that_somebody_chose_is_kept(provider: Provider) -> None:
    provider.script("m", [[REFUSAL], [REFUSAL]], sequence=True)
    for name, params in (("compatible:m@native", {}), ("compatible:m", {"tool_format": "native"})):
        async with Chat(get_model(name, base_url=f"{provider.url}/v1"), tools=[weather]) as chat:
            with pytest.raises(TurnError, match="use prompted tool calling"):
                await (await chat.send("How is the weather?", params=params))
    assert len(provider.seen) == 2


async def test_any_other_refusal_is_an_error(provider: Provider) -> None:
    provider.script("m", [[Status(400, '{"error": {"message": "temperature must be at most 2"}}')]], sequence=True)
    async with Chat(get_model("compatible:m", base_url=f"{provider.url}/v1"), tools=[weather]) as chat:
        with pytest.raises(TurnError, match="temperature"):
            await (await chat.send("How is the weather?"))
    assert len(provider.seen) == 1
