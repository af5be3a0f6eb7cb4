"""A real model behind a real server: llama.cpp with SmolLM2-135M. It knows little, so the form is checked, not the words."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from everturn import Chat, Phase, StepFinished, TextDelta, TurnError, named
from everturn.core.ports import Model

HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everturn-local-model"
pytestmark = [pytest.mark.live, pytest.mark.timeout(180), pytest.mark.xdist_group("local-model")]


@pytest.fixture
async def model() -> AsyncGenerator[Model]:
    python = HOME / "bin/python"
    assert python.exists(), "there is no local model: run scripts/local-model"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = await asyncio.create_subprocess_exec(
        python, Path(__file__).with_name("serve_model.py"), str(port), stdout=-1, stderr=-3
    )
    try:
        assert server.stdout is not None
        assert b"ready" in await server.stdout.readline()
        yield named("llamacpp:smollm2", base_url=f"http://127.0.0.1:{port}/v1")
    finally:
        server.kill()
        await server.wait()


async def test_a_real_model_is_talked_to(model: Model) -> None:
    params = {"max_tokens": 24, "temperature": 0}
    async with Chat(model, system="You are brief.") as chat:
        # It answers 503 until it is loaded, and is asked again.
        first = await (await chat.send("Say hello.", params=params))
        assert first.text
        assert first.usage.input > 0
        assert 0 < first.usage.output <= 24

        # It writes what it is told to.
        schema = {
            "type": "object",
            "properties": {"fruit": {"enum": ["apple", "pear"]}},
            "required": ["fruit"],
            "additionalProperties": False,
        }
        shaped = await (await chat.send("Name a fruit.", params={**params, "output_schema": schema}))
        assert json.loads(shaped.text)["fruit"] in ("apple", "pear")

        # A second turn reads what the server kept of the first.
        assert shaped.usage.cached > 0

        # It cannot help going on for long, whatever it would like to say.
        numbers = {"type": "array", "items": {"type": "integer"}, "minItems": 200}
        long = {"output_schema": {"type": "object", "properties": {"n": numbers}, "required": ["n"]}, "temperature": 0}

        # A cancel ends it at once, and what it said stays.
        turn = await chat.send("Count.", params=long)
        async for event in turn:
            if isinstance(event, TextDelta):
                await turn.cancel()
        assert (await turn).phase is Phase.CANCELLED

        # A limit is told from an end.
        turn = await chat.send("Count.", params={**long, "max_tokens": 5})
        ends = [event.finish async for event in turn if isinstance(event, StepFinished)]
        assert ends == ["length"]

        # A question that is too long is the writer's to mend.
        with pytest.raises(TurnError) as caught:
            await (await chat.send("word " * 3000))
        assert caught.value.kind == "context"
