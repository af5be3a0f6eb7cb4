"""Models of pydantic-ai keep the contract of a model, as far as pydantic-ai lets them."""

# pyright: reportMissingImports=false
from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from tests.models.test_conformance import NO_FILTER
from tests.models.test_conformance import TestChat as Chat
from tests.models.test_conformance import TestMessages as Messages

from everturn.core.deltas import TextDelta
from everturn.core.parts import TextPart
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest, RequestMessage
from everturn.errors import TurnError
from everturn.models.bridges.pydantic_ai import PydanticAIModel
from everturn.models.prices import Price
from everturn.models.retry import RetryModel, RetryPolicy
from everturn.testing.contracts import ProviderModelContract
from everturn.testing.contracts.model.bench import ModelTestBench, RecordingTool, open_bench, send_and_wait
from everturn.testing.contracts.model.failures import DEFAULT
from everturn.testing.contracts.model.history import BUDGET
from everturn.testing.provider import Hang, Say

pytest.importorskip("pydantic_ai", reason="it is not installed here: run scripts/bridges")


# With the names that the SDK reads beside an event, and a count of nothing, without which pydantic-ai stumbles.
UNCOUNTED = re.sub(
    rb'(data: {"type": "(\w+)")',
    rb"event: \2\n\1",
    Messages.uncounted.replace(b'"end_turn"}', b'"end_turn"}, "usage": {"output_tokens": 0}').replace(
        b'"message": {}', b'"message": {"usage": {"input_tokens": 0, "output_tokens": 0}}'
    ),
)


class Bridged(ProviderModelContract):
    """A model of pydantic-ai. The client belongs to whoever made it, and is closed by them."""

    client: Any

    def make(self, url: str, model: str, key: str) -> Any:
        raise NotImplementedError

    def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
        sdk_model = self.make(url, model, key or "k")  # the SDKs insist on a key
        return RetryModel(PydanticAIModel(sdk_model, price=price), retry)

    @pytest_asyncio.fixture
    async def bench(self) -> AsyncIterator[ModelTestBench]:
        async with httpx2.AsyncClient(timeout=60) as self.client, open_bench(self) as bench:
            yield bench

    # The SDK hides what was no stream: a page, and an answer without a byte, are both an answer without a word.
    test_what_is_no_stream_is_shown_and_not_tried_again: Any = None
    # The SDK reads a line of any length.
    test_an_answer_without_end_is_ended: Any = None
    # The SDK closes the connection on the last event, where the server has not ended the answer by then.
    test_a_connection_is_used_again_even_where_an_answer_ends_a_moment_after_its_last_word: Any = None
    # pydantic-ai rewrites a schema for the vendor: titles go, and what was optional may be required.
    test_the_schema_of_an_answer_is_said_in_the_words_of_the_format: Any = None
    # A tool that must be called is shown alone, and some tool is required: see below.
    test_a_tool_of_an_odd_name_can_be_chosen: Any = None

    @pytest.mark.parametrize("choice", ["auto", "none", "required"])
    async def test_the_choice_of_a_tool_is_said_in_the_words_of_the_format(
        self, bench: ModelTestBench, choice: str
    ) -> None:
        await send_and_wait(bench.chat([Say("Fine.")], tools=[RecordingTool()]), params={"tool_choice": choice})

        assert bench.wire_request().choice == choice

    async def test_a_tool_that_must_be_called_is_the_only_one_that_can(self, bench: ModelTestBench) -> None:
        tools = [RecordingTool(), RecordingTool("files.read")]

        await send_and_wait(bench.chat([Say("Fine.")], tools=tools), params={"tool_choice": "files.read"})

        sent = bench.wire_request()
        assert sent.choice == "files_read" or (sent.choice, sent.tools) == ("required", ["files_read"])

    async def test_the_schema_of_an_answer_is_said(self, bench: ModelTestBench) -> None:
        schema = {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False}

        await send_and_wait(bench.chat([Say('{"city": "Ulm"}')]), params={"output_schema": schema})

        assert (bench.wire_request().schema or {})["properties"] == schema["properties"]

    async def test_closing_a_stream_closes_its_socket(self, bench: ModelTestBench) -> None:
        model = bench.model([Say("As far as here"), Hang()])
        batches: Any = model.stream(ModelRequest("model", "", [RequestMessage("user", (TextPart("Hi."),))], [], {}))
        await anext(batches)

        await batches.aclose()

        async with asyncio.timeout(5):
            await bench.provider.wait_idle()
        assert bench.seen[0].is_closed_early

    @pytest.mark.long
    async def test_wherever_an_answer_is_cut_off_no_call_runs_and_the_next_turn_is_accepted(
        self, bench: ModelTestBench
    ) -> None:
        await super().test_wherever_an_answer_is_cut_off_no_call_runs_and_the_next_turn_is_accepted(bench)

    async def test_a_model_that_falls_silent_is_given_up(self, bench: ModelTestBench) -> None:
        """As in the contract, but that it waits for all words: here every one of them is a batch."""
        chat, clock = bench.open_with_clock(bench.model([Say("As far as here"), Hang()]))
        turn = await chat.send("Hi.")
        text = ""
        async for event in turn:
            text += event.text if isinstance(event, TextDelta) else ""
            if text == "As far as here":
                break

        clock.advance(DEFAULT.idle_timeout + 1)

        with pytest.raises(TurnError) as caught:
            await turn
        assert caught.value.kind == "stalled"
        await bench.provider.wait_idle()
        assert bench.seen[0].is_closed_early


class TestOpenAI(Bridged):
    format = "chat"
    has_seals = False
    uncounted = Chat.uncounted

    def make(self, url: str, model: str, key: str) -> Any:
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        provider = OpenAIProvider(base_url=f"{url}/v1", api_key=key, http_client=self.client)
        return OpenAIChatModel(model, provider=provider)


class TestAnthropic(Bridged):
    format = "messages"
    counts = frozenset({"cached", "written"})
    finishes = NO_FILTER
    thinking: Mapping[str, Any] = MappingProxyType({"anthropic_thinking": BUDGET["thinking"]})
    uncounted = UNCOUNTED

    def make(self, url: str, model: str, key: str) -> Any:
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        profile = AnthropicProvider.model_profile("claude-sonnet-4-5")  # of a name it does not know it expects little
        provider = AnthropicProvider(base_url=url, api_key=key, http_client=self.client)
        return AnthropicModel(model, provider=provider, profile=profile)
