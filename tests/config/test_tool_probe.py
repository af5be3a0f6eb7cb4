"""The tool probe of the first run: a local model without native tool calls is configured with prompted ones."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from everturn.config.tool_probe import has_native_tools, with_prompted_tools
from everturn.testing.provider import Call, Provider, Say, Status

REFUSAL = Status(400, '{"error": {"message": "tiny does not support tools"}}')


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Call("report_status", '{"status": "ready"}'), True),
        (Say("The status is ready."), False),  # the server dropped the tools
        (Say("I am a small model, and I like to explain at length what I could do. " * 5), False),
        (REFUSAL, False),
        (Status(503), None),
    ],
)
async def test_a_model_has_native_tools_if_it_calls_one(reply: Any, expected: bool | None) -> None:
    async with Provider() as provider:
        provider.script("m", [[reply]], sequence=True)
        toml = (
            f'[models.local]\nmodel = "compatible:m"\nbase_url = "{provider.url}/v1"\n\n[agents.a]\nmodel = "local"\n'
        )
        assert await has_native_tools(toml, {}) is expected
        assert [tool["function"]["name"] for tool in provider.seen[0].body["tools"]] == ["report_status"]
        assert len(provider.seen) == 1


async def test_a_server_that_does_not_answer_says_nothing_about_its_model() -> None:
    toml = '[models.local]\nmodel = "compatible:m"\nbase_url = "http://127.0.0.1:9/v1"\n'
    assert await has_native_tools(toml, {}) is None


def test_prompted_tools_are_written_where_the_model_is_named() -> None:
    table = with_prompted_tools(
        '[models.local]\nmodel = "ollama:odd\\"name"\nbase_url = "http://x"\n\n[agents.a]\nmodel = "local"\n'
    )
    assert tomllib.loads(table)["models"]["local"] == {
        "model": 'ollama:odd"name',
        "tool_format": "json",
        "base_url": "http://x",
    }
    agent = with_prompted_tools('[agents.a]\nmodel = "ollama:odd\\"name"\n')
    assert tomllib.loads(agent) == {"agents": {"a": {"model": 'ollama:odd"name@json'}}}
