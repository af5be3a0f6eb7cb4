"""A real model behind a real server: llama.cpp with SmolLM2-135M. It knows little, so the form is checked, not the words."""

from __future__ import annotations

import json

import pytest

from everturn import Chat, TurnError, get_model
from everturn.events import Phase, StepFinished, TextDelta

pytestmark = [pytest.mark.live, pytest.mark.timeout(600), pytest.mark.xdist_group("local-model")]


async def test_a_real_model_is_talked_to(model_url: str) -> None:
    model = get_model("llamacpp:smollm2", base_url=model_url)
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
