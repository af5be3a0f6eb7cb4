"""Models of litellm keep the contract of a model, as far as litellm lets them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from tests.models.test_conformance import TestChat as Chat
from tests.models.test_conformance import TestMessages as Messages

from everturn.core.deltas import TextDelta
from everturn.core.parts import Finish, TextPart
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest, RequestMessage
from everturn.errors import TurnError
from everturn.models.bridges.litellm import LiteLLMModel
from everturn.models.prices import Price
from everturn.models.retry import RetryModel, RetryPolicy
from everturn.testing.contracts import ProviderModelContract
from everturn.testing.contracts.model.bench import ModelTestBench, answer_of, send_expecting_error
from everturn.testing.contracts.model.failures import DEFAULT, IN_BAND
from everturn.testing.contracts.model.history import BUDGET
from everturn.testing.contracts.model.output import TEXTS
from everturn.testing.contracts.model.wire import WireRequest
from everturn.testing.provider import Hang, Say

pytest.importorskip("litellm", reason="it is not installed here: run scripts/bridges")
# Its own, of pydantic and of tasks that it starts and does not wait for; it filters them itself, where pytest does not.
pytestmark = [pytest.mark.filterwarnings("ignore")]


UNSEEN: Mapping[str, Finish] = {**ProviderModelContract.finishes, "refusal": "stop"}
FILTERED: Mapping[str, Finish] = {**ProviderModelContract.finishes, "refusal": "content_filter"}


class Bridged(ProviderModelContract):
    # What was no stream is hidden: a page is an answer that was cut off before its first word.
    test_what_is_no_stream_is_shown_and_not_tried_again: Any = None
    # It reads a line of any length.
    test_an_answer_without_end_is_ended: Any = None
    # It follows redirects.
    test_a_redirect_is_not_followed: Any = None
    # It closes the connection on the last event, where the server has not ended the answer by then.
    test_a_connection_is_used_again_even_where_an_answer_ends_a_moment_after_its_last_word: Any = None

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
    # The words of a refusal are hidden, and so is that it was one.
    finishes = UNSEEN
    test_the_words_of_a_refusal_are_its_text: Any = None
    uncounted = Chat.uncounted

    def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
        bridge = LiteLLMModel(f"openai/{model}", api_base=f"{url}/v1", api_key=key, price=price)
        return RetryModel(bridge, retry)

    def read_request(self, body: dict[str, Any]) -> WireRequest:
        """With the content of a message that has none, which litellm leaves out."""
        return super().read_request(
            {**body, "messages": [{"content": None, **message} for message in body["messages"]]}
        )


class TestAnthropic(Bridged):
    format = "messages"
    counts = frozenset({"cached", "written"})
    # That it was a refusal is hidden.
    finishes = FILTERED
    thinking = BUDGET
    uncounted = Messages.uncounted
    # It has another way to make such a model write JSON: a tool.
    test_the_schema_of_an_answer_is_said_in_the_words_of_the_format: Any = None
    # It has no word for a result that is a failure; what the tool said is there.
    test_a_tool_that_fails_tells_the_model: Any = None
    # It takes U+2028 for the end of a line and loses the event: an answer with one in it is cut off.
    test_nested_arguments_arrive_as_they_were_meant: Any = None

    def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
        # `thinking` is refused of a model whose name litellm does not know, unless it is said that it may be sent.
        allowed = ["thinking"]
        bridge = LiteLLMModel(
            f"anthropic/{model}", api_base=url, api_key=key, price=price, allowed_openai_params=allowed
        )
        return RetryModel(bridge, retry)

    @pytest.mark.parametrize("text", [text for name, text in TEXTS.items() if name != "line separators"])
    async def test_every_character_arrives_in_both_directions(self, bench: ModelTestBench, text: str) -> None:
        await super().test_every_character_arrives_in_both_directions(bench, text)

    async def test_an_answer_with_a_line_separator_is_cut_off_rather_than_shortened(
        self, bench: ModelTestBench
    ) -> None:
        chat = bench.chat([Say("one"), Say("two\u2028three")])

        assert (await send_expecting_error(chat)).kind in ("truncated", "response")
        assert (await answer_of(chat)).text == "one"

    @pytest.mark.parametrize("kind", ["server", "context"])  # of an error in the stream only its words are kept
    async def test_an_error_in_the_stream_ends_the_turn_with_its_kind(self, bench: ModelTestBench, kind: str) -> None:
        assert kind in IN_BAND
        await super().test_an_error_in_the_stream_ends_the_turn_with_its_kind(bench, kind)
