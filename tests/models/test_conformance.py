"""The adapters of the three wire formats keep the contract of a model, and so do servers that speak one with an accent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from everturn.core.chunks import CallChunk, Chunk, FinishChunk, OpaqueChunk, TextChunk, UsageChunk
from everturn.core.parts import Finish, Opaque, ReasoningPart
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest, RequestMessage, RequestPart, RequestResult
from everturn.errors import ModelError, TurnError
from everturn.models.named import named
from everturn.models.prices import Price
from everturn.models.retrying import Patience
from everturn.testing.contracts import ModelContract
from everturn.testing.contracts.model.bench import Bench, ask, fail, working
from everturn.testing.contracts.model.calling import CallingContract
from everturn.testing.contracts.model.remembering import BUDGET, RememberingContract
from everturn.testing.provider import InBandError, Say


def events(*bodies: object) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(body).encode() for body in bodies)


class TestChat(ModelContract):
    format = "chat"
    has_seals = has_pdf = False
    uncounted = (
        events(
            {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
            {"choices": [{"index": 0, "delta": {"content": "Hello."}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        )
        + b"data: [DONE]\n\n"
    )

    def connect(self, url: str, model: str, key: str, price: Price | None, patience: Patience) -> Model:
        return named(f"compatible:{model}", base_url=f"{url}/v1", key=key, price=price, patience=patience)


NO_FILTER: Mapping[str, Finish] = {**ModelContract.finishes, "content_filter": "refusal"}


class TestMessages(ModelContract):
    format = "messages"
    counts = frozenset({"cached", "written"})
    finishes = NO_FILTER
    thinking = BUDGET
    uncounted = events(
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )

    def connect(self, url: str, model: str, key: str, price: Price | None, patience: Patience) -> Model:
        return named(f"anthropic:{model}", base_url=f"{url}/v1", key=key, price=price, patience=patience)

    async def test_an_error_of_the_api_is_the_servers(self, bench: Bench) -> None:
        chat = bench.chat([Say("As far as here"), InBandError("Something went wrong.", kind="api_error")])

        assert (await fail(chat)).kind == "server"


class TestResponses(ModelContract):
    format = "responses"
    uncounted = events(
        {"type": "response.created", "response": {}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Hello."},
        {"type": "response.completed", "response": {"usage": None}},
    )

    def connect(self, url: str, model: str, key: str, price: Price | None, patience: Patience) -> Model:
        return named(f"openai:{model}", base_url=f"{url}/v1", key=key, price=price, patience=patience)

    async def test_an_error_event_is_an_error_too(self, bench: Bench) -> None:
        error = InBandError(kind="error")
        chat = bench.chat([error], [Say("Now.")], [Say("As far as here"), error])

        assert (await ask(chat)).text == "Now."
        assert (await fail(chat)).kind == "server"


# Accents ----------------------------------------------------------------------------------------------------------


class Accent(CallingContract, RememberingContract):
    """The chat format as some vendors insist on it. What they say is read like any other, so only asking is tested."""

    format = "chat"
    has_seals = has_pdf = False
    uncounted = TestChat.uncounted
    vendor = ""

    def connect(self, url: str, model: str, key: str, price: Price | None, patience: Patience) -> Model:
        return named(f"{self.vendor}:{model}", base_url=f"{url}/v1", key=key, price=price, patience=patience)

    test_a_connection_is_used_again_even_where_an_answer_ends_a_moment_after_its_last_word: Any = None


class TestMistral(Accent):
    vendor, prefix = "mistral", "mistral-"


class TestDeepSeek(Accent):
    vendor, prefix = "deepseek", "deepseek-"
    has_images = False


class TestKimi(Accent):
    vendor, prefix = "kimi", "kimi-"


class TestReasoningModel(Accent):
    vendor, prefix = "openai-chat", "gpt-5-"
    has_temperature = False
    has_pdf = True


class TestTemplate(Accent):
    vendor, prefix = "llamacpp", "alternate-"


# What the contract notices ------------------------------------------------------------------------------------------


class Broken:
    """A model that keeps the contract, with something wrong in front of it."""

    def __init__(self, model: Model, key: str) -> None:
        self.model, self.key, self.name = model, key, model.name

    def ask(self, request: ModelRequest) -> ModelRequest:
        return request

    def hear(self, chunk: Chunk) -> Sequence[Chunk]:
        return (chunk,)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        async for batch in self.model.stream(self.ask(request)):
            yield [heard for chunk in batch for heard in self.hear(chunk)]


class Mumbles(Broken):
    def hear(self, chunk: Chunk) -> Sequence[Chunk]:
        return (TextChunk(chunk.text.replace("\u2028", " ")),) if isinstance(chunk, TextChunk) else (chunk,)


class ForgetsSeals(Broken):
    def hear(self, chunk: Chunk) -> Sequence[Chunk]:
        return () if isinstance(chunk, OpaqueChunk) else (chunk,)


class TakesAnySeal(Broken):
    def ask(self, request: ModelRequest) -> ModelRequest:
        def mine(part: RequestPart) -> RequestPart:
            if not isinstance(part, ReasoningPart) or part.opaque is None:
                return part
            return replace(part, opaque=Opaque(self.name, part.opaque.data))

        messages = [replace(message, parts=tuple(map(mine, message.parts))) for message in request.messages]
        return replace(request, messages=messages)


class RunsWhatWasCutShort(Broken):
    def hear(self, chunk: Chunk) -> Sequence[Chunk]:
        is_short = isinstance(chunk, FinishChunk) and chunk.reason == "length"
        return (FinishChunk("tool_calls"),) if is_short else (chunk,)


class CountsTwice(Broken):
    def hear(self, chunk: Chunk) -> Sequence[Chunk]:
        return (UsageChunk(chunk.usage + chunk.usage),) if isinstance(chunk, UsageChunk) else (chunk,)


class ForgetsOurNames(Broken):
    def hear(self, chunk: Chunk) -> Sequence[Chunk]:
        return (replace(chunk, name=chunk.name.replace(".", "_")),) if isinstance(chunk, CallChunk) else (chunk,)


class SwapsResults(Broken):
    def ask(self, request: ModelRequest) -> ModelRequest:
        return replace(request, messages=[self.swapped(message) for message in request.messages])

    def swapped(self, message: RequestMessage) -> RequestMessage:
        results = [part for part in message.parts if isinstance(part, RequestResult)]
        swapped = (replace(one, text=other.text) for one, other in zip(results, reversed(results), strict=True))
        return replace(message, parts=tuple(swapped)) if results else message


class TakesAnyEnd(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        try:
            async for batch in self.model.stream(request):
                yield batch
        except ModelError:
            yield [FinishChunk("stop")]


class AsksTwice(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        try:
            async for batch in self.model.stream(request):
                yield batch
        except ModelError:
            async for batch in self.model.stream(request):
                yield batch


class HidesTheError(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        try:
            async for batch in self.model.stream(request):
                yield batch
        except ModelError as error:
            raise ModelError(str(error)) from error


class NeverLetsGo(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        batches: asyncio.Queue[Sequence[Chunk]] = asyncio.Queue()

        async def read() -> None:
            with suppress(ModelError):
                async for batch in self.model.stream(request):
                    batches.put_nowait(batch)

        self.reading = asyncio.ensure_future(read())
        while True:
            yield await batches.get()


class TellsTheKey(Broken):
    def __repr__(self) -> str:
        return f"<TellsTheKey {self.key}>"


BROKEN: dict[type[Broken], str] = {
    Mumbles: "test_every_character_arrives_in_both_directions",
    ForgetsSeals: "test_sealed_reasoning_goes_back_in_the_next_step_and_in_the_next_turn",
    TakesAnySeal: "test_sealed_reasoning_goes_to_no_other_model_and_back_to_its_own",
    RunsWhatWasCutShort: "test_a_call_of_an_answer_that_was_cut_short_never_runs",
    CountsTwice: "test_the_tokens_of_all_steps_are_added_up",
    ForgetsOurNames: "test_a_tool_is_called_back_by_our_name",
    SwapsResults: "test_parallel_calls_keep_their_arguments_and_their_results",
    TakesAnyEnd: "test_an_answer_that_is_cut_off_is_kept_as_far_as_it_came_and_not_asked_for_again",
    AsksTwice: "test_an_error_in_the_stream_ends_the_turn_with_its_kind",
    HidesTheError: "test_a_status_that_will_not_pass_is_told_at_once",
    NeverLetsGo: "test_a_cancel_in_the_middle_of_an_answer_closes_its_socket",
    TellsTheKey: "test_a_key_reaches_the_provider_and_nobody_else",
}
GIVEN: dict[str, dict[str, Any]] = {
    "test_every_character_arrives_in_both_directions": {"text": "one\u2028two"},
    "test_a_call_of_an_answer_that_was_cut_short_never_runs": {"reason": "length"},
    "test_a_tool_is_called_back_by_our_name": {"name": "files.read"},
    "test_an_error_in_the_stream_ends_the_turn_with_its_kind": {"kind": "server"},
    "test_a_status_that_will_not_pass_is_told_at_once": {"status": 401, "kind": "key"},
}


@pytest.mark.parametrize(("broken", "test"), BROKEN.items(), ids=lambda case: getattr(case, "__name__", ""))
async def test_a_model_that_is_broken_is_caught(
    broken: type[Broken], test: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Suite(TestMessages):
        def connect(self, url: str, model: str, key: str, price: Price | None, patience: Patience) -> Model:
            return broken(super().connect(url, model, key, price, patience), key)

    given = GIVEN.get(test, {}) | ({"caplog": caplog} if broken is TellsTheKey else {})
    with pytest.raises((AssertionError, TimeoutError, TurnError, pytest.fail.Exception)):
        async with working(Suite()) as bench:
            await getattr(Suite(), test)(bench=bench, **given)


@pytest.mark.parametrize("test", BROKEN.values())
async def test_a_model_that_is_not_broken_is_not(test: str, caplog: pytest.LogCaptureFixture) -> None:
    class Suite(TestMessages):
        def connect(self, url: str, model: str, key: str, price: Price | None, patience: Patience) -> Model:
            return Broken(super().connect(url, model, key, price, patience), key)

    given = GIVEN.get(test, {}) | ({"caplog": caplog} if test == BROKEN[TellsTheKey] else {})
    async with working(Suite()) as bench:
        await getattr(Suite(), test)(bench=bench, **given)
