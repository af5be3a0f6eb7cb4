"""The adapters of the wire formats keep the contract of a model, and so do servers that speak one with an accent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from everturn.core.chunks import CallChunk, Chunk, FinishChunk, OpaqueChunk, TextChunk, UsageChunk
from everturn.core.deltas import CallDelta
from everturn.core.parts import Finish, Opaque, ReasoningPart
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest, RequestMessage, RequestPart, RequestResult
from everturn.errors import ModelError, TurnError
from everturn.models.prices import Price
from everturn.models.registry import get_model
from everturn.models.retry import RetryPolicy
from everturn.testing.contracts import ProviderModelContract
from everturn.testing.contracts.model.bench import (
    ModelTestBench,
    RecordingTool,
    answer_of,
    calls_of,
    finish_of,
    open_bench,
    send_and_wait,
    send_expecting_error,
    thoughts_of,
)
from everturn.testing.contracts.model.failures import IN_BAND, until
from everturn.testing.contracts.model.history import BUDGET, HistoryContract
from everturn.testing.contracts.model.tool_calls import PATH, ToolCallsContract, answer_gates
from everturn.testing.provider import Call, Cut, Hang, InBandError, Raw, Say, Think
from everturn.testing.provider import Finish as Ends


def events(*bodies: object) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(body).encode() for body in bodies)


class TestChat(ProviderModelContract):
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

    def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
        return get_model(f"compatible:{model}", base_url=f"{url}/v1", key=key, price=price, retry=retry)


NO_FILTER: Mapping[str, Finish] = {**ProviderModelContract.finishes, "content_filter": "refusal"}


class TestMessages(ProviderModelContract):
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

    def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
        return get_model(f"anthropic:{model}", base_url=f"{url}/v1", key=key, price=price, retry=retry)

    async def test_an_error_of_the_api_is_the_servers(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Say("As far as here"), InBandError("Something went wrong.", kind="api_error")])

        assert (await send_expecting_error(chat)).kind == "server"


class TestResponses(ProviderModelContract):
    format = "responses"
    counts = frozenset({"cached", "reasoning", "written"})
    uncounted = events(
        {"type": "response.created", "response": {}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Hello."},
        {"type": "response.completed", "response": {"usage": None}},
    )

    def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
        return get_model(f"openai:{model}", base_url=f"{url}/v1", key=key, price=price, retry=retry)

    async def test_an_error_event_is_an_error_too(self, bench: ModelTestBench) -> None:
        error = InBandError(kind="error")
        chat = bench.chat([error], [Say("Now.")], [Say("As far as here"), error])

        assert (await send_and_wait(chat)).text == "Now."
        assert (await send_expecting_error(chat)).kind == "server"


class WholeCalls(ProviderModelContract):
    """Formats in which a call comes whole or not at all, and never in pieces."""

    @pytest.mark.parametrize("arguments", [PATH, '{"path": "a'], ids=["all of it", "half of it"])
    async def test_a_call_that_is_cut_off_never_runs(self, bench: ModelTestBench, arguments: str) -> None:
        look = RecordingTool()
        chat = bench.chat([Say("I look."), Call("look", arguments), Cut()], [Say("Again?")], tools=[look])

        await send_expecting_error(chat)

        come = ["cancelled"] if arguments == PATH else []
        assert [part.state for part in calls_of(await answer_of(chat))] == come
        assert (await send_and_wait(chat, "What happened?")).text == "Again?"
        assert look.ran == []
        assert len(bench.wire_request().calls) == len(bench.wire_request().results) == len(come)

    async def test_a_cancel_in_the_middle_of_a_call_leaves_nothing_open(self, bench: ModelTestBench) -> None:
        look = RecordingTool()
        chat = bench.chat([Say("I look."), Call("look", PATH), Hang()], [Say("Fine.")], tools=[look])
        turn = await chat.send("Hi.")
        await until(turn, lambda event: isinstance(event, CallDelta) and bool(event.text))

        await self.cancel(bench, turn)

        assert (await send_and_wait(chat, "Never mind.")).text == "Fine."
        assert look.ran == []
        assert len(bench.wire_request().results) == 1


class TestGemini(WholeCalls):
    format = "gemini"
    prefix = "gemini-3-"  # which misses its signatures
    has_seals = False  # a seal is on a call or behind a text, and not on a thought; what becomes of it is told below
    finishes: Mapping[str, Finish] = {**ProviderModelContract.finishes, "refusal": "content_filter"}
    thinking: Mapping[str, Any] = {"thinkingConfig": {"includeThoughts": True}}
    uncounted = events(
        {"candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}}]},
        {"candidates": [{"content": {"parts": [{"text": "Hello."}], "role": "model"}}]},
        {"candidates": [{"finishReason": "STOP"}]},
    )

    def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
        return get_model(f"gemini:{model}", base_url=f"{url}/v1beta", key=key, price=price, retry=retry)

    async def test_parameters_pass_as_they_are(self, bench: ModelTestBench) -> None:
        await send_and_wait(bench.chat([Say("Fine.")]), params={"temperature": 0.25, "top_p": 0.5, "topK": 7})

        assert bench.seen[0].body["generationConfig"] == {"temperature": 0.25, "topP": 0.5, "topK": 7}

    async def test_an_answer_without_end_is_ended(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Raw(b"data: " + b"x" * 34_000_000)])  # a picture may be large, and comes in one line

        assert (await send_expecting_error(chat)).kind == "limit"

    async def test_an_error_that_is_no_event_is_an_error_too(self, bench: ModelTestBench) -> None:
        error = InBandError(kind="bare")
        chat = bench.chat([error], [Say("Now.")], [Say("As far as here"), error])

        assert (await send_and_wait(chat)).text == "Now."
        assert (await send_expecting_error(chat)).kind == "server"

    async def test_a_prompt_that_is_blocked_is_filtered(self, bench: ModelTestBench) -> None:
        result = await send_and_wait(bench.chat([Ends("content_filter")]))

        assert (result.text, finish_of(result.message)) == ("", "content_filter")

    async def test_signatures_go_back_in_the_next_step_and_in_the_next_turn(self, bench: ModelTestBench) -> None:
        steps = [Think("A file."), Call("look", PATH), Call("look", PATH)], [Think("Empty."), Say("It is empty.")]
        chat = bench.chat(*steps, [Say("Yes.")], tools=[RecordingTool()])

        await send_and_wait(chat, "Look.", params=self.thinking)
        await send_and_wait(chat, "Sure?", params=self.thinking)

        assert [len(bench.wire_request(at).seals) for at in range(3)] == [0, 1, 2]
        assert bench.wire_request(2).seals[:1] == bench.wire_request(1).seals

    async def test_signatures_go_to_no_other_model_and_back_to_their_own(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Call("look", PATH)], [Say("It is empty.")], tools=[RecordingTool()])
        other = bench.model([Call("look", PATH)], [Say("I am another.")], name="other")

        await send_and_wait(chat, "Look.")
        await send_and_wait(chat, "And you?", model=other)
        assert len(bench.wire_request().seals) == 1  # its own
        await send_and_wait(chat, "And you again?")
        assert len(bench.wire_request().seals) == 2

    async def test_a_signature_waits_with_its_turn_for_a_person(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Call("look", PATH)], [Say("Fine.")], tools=[RecordingTool(approval="always")])

        assert (await answer_gates(chat, "Look.", allow="once")).text == "Fine."
        assert len(bench.wire_request().seals) == 1


class TestOllama(WholeCalls):
    format = "ollama"
    has_seals = has_pdf = False
    counts: frozenset[str] = frozenset()
    finishes: Mapping[str, Finish] = {**ProviderModelContract.finishes, "content_filter": "stop", "refusal": "stop"}
    uncounted = b"".join(
        json.dumps({"message": {"role": "assistant", "content": text}, "done": not text}).encode() + b"\n"
        for text in ("Hello.", "")
    )

    def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
        return get_model(f"ollama:{model}", base_url=url, key=key, price=price, retry=retry)

    async def test_parameters_pass_as_they_are(self, bench: ModelTestBench) -> None:
        options = {"temperature": 0.25, "top_p": 0.5, "num_ctx": 8192}

        await send_and_wait(bench.chat([Say("Fine.")]), params={**options, "keep_alive": "5m"})

        assert bench.seen[0].body["options"] == options
        assert bench.seen[0].body["keep_alive"] == "5m"

    async def test_an_answer_without_end_is_ended(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Raw(b'{"message": "' + b"x" * 34_000_000)])  # calls and pictures come whole, in one line

        assert (await send_expecting_error(chat)).kind == "limit"

    async def test_a_parameter_that_is_unknown_is_refused_by_the_provider_and_not_by_us(
        self, bench: ModelTestBench
    ) -> None:
        assert (await send_and_wait(bench.chat([Say("Fine.")]), params={"no_such_option": 1})).text == "Fine."
        assert bench.seen[0].body["no_such_option"] == 1  # which it passes over
        chat = bench.chat([Say("Never.")])

        caught = await send_expecting_error(chat, params={"temperature": "warm"})

        assert caught.kind == "request"
        assert 'option "temperature" must be of type float32' in str(caught)
        bench.provider.reset()

    @pytest.mark.parametrize("choice", ["auto", "none", "required", "look"])
    async def test_the_choice_of_a_tool_is_said_in_the_words_of_the_format(
        self, bench: ModelTestBench, choice: str
    ) -> None:
        await send_and_wait(bench.chat([Say("Fine.")], tools=[RecordingTool()]), params={"tool_choice": choice})

        assert bench.wire_request().tools == ([] if choice == "none" else ["look"])  # it has no other word for a choice
        assert "tool_choice" not in bench.seen[0].body

    test_a_tool_of_an_odd_name_can_be_chosen: Any = None

    @pytest.mark.parametrize("kind", IN_BAND)
    async def test_an_error_in_the_stream_ends_the_turn_with_its_kind(self, bench: ModelTestBench, kind: str) -> None:
        chat = bench.chat([Say("As far as here"), IN_BAND[kind]], [Say("Again.")])

        assert (await send_expecting_error(chat)).kind == (
            "context" if kind == "context" else "server"
        )  # it has words, and no code
        assert (await answer_of(chat)).text == "As far as here"
        assert (await send_and_wait(chat)).text == "Again."

    async def test_an_answer_that_ends_without_saying_so_is_cut_off(self, bench: ModelTestBench) -> None:
        first_line, _, _ = self.uncounted.partition(b"\n")
        chat = bench.chat([Raw(b"\n")], [Say("Now.")], [Raw(first_line + b"\n")], [Say("And now.")])

        assert (await send_and_wait(chat)).text == "Now."  # it had said nothing yet
        assert (await send_expecting_error(chat)).kind == "truncated"
        assert (await answer_of(chat)).text == "Hello."
        assert (await send_and_wait(chat)).text == "And now."

    @pytest.mark.parametrize("arguments", ['{"path": ', '{"path": "a"}{"path": "b"}', '["a"]', "a.txt", "null"])
    async def test_arguments_that_are_no_object_never_run(self, bench: ModelTestBench, arguments: str) -> None:
        look = RecordingTool()
        chat = bench.chat([Think("Hm."), Call("look", arguments)], [Say("I try again.")], tools=[look])

        result = await send_and_wait(chat)

        assert look.ran == []
        assert result.text == "I try again."
        assert [part.state for part in calls_of(result.message)] == ["failed"]

    async def test_a_call_that_cannot_be_read_before_any_word_is_asked_for_again(self, bench: ModelTestBench) -> None:
        look = RecordingTool()
        chat = bench.chat([Call("look", "{oops")], [Say("I try again.")], tools=[look])

        assert (await send_and_wait(chat)).text == "I try again."
        assert ([seen.status for seen in bench.seen], look.ran) == ([500, 200], [])

    @pytest.mark.parametrize("reason", ["length"])
    async def test_a_call_of_an_answer_that_was_cut_short_never_runs(self, bench: ModelTestBench, reason: str) -> None:
        await super().test_a_call_of_an_answer_that_was_cut_short_never_runs(bench, reason)

    @pytest.mark.parametrize(
        ("family", "how", "capability"),  # without `@native`, a model that refuses tools is prompted
        [("notools-", {"tools": [RecordingTool()]}, "tools"), ("nothink-", {}, "thinking")],
        ids=["tools", "thinking"],
    )
    async def test_what_a_model_cannot_do_is_told_in_its_words(
        self, bench: ModelTestBench, family: str, how: dict[str, Any], capability: str
    ) -> None:
        bench.provider.script("model", [[Say("Never.")]])
        chat = bench.open(bench.connect(f"{family}model@native"), **how)

        caught = await send_expecting_error(chat, params={"think": True} if capability == "thinking" else {})

        assert caught.kind == "request"
        assert f'"{family}model" does not support {capability}' in str(caught)
        bench.provider.reset()

    async def test_thinking_can_be_turned_off(self, bench: ModelTestBench) -> None:
        result = await send_and_wait(bench.chat([Think("Hm."), Say("Four.")]), params={"think": False})

        assert (result.text, thoughts_of(result.message)) == ("Four.", [])


# Accents ----------------------------------------------------------------------------------------------------------


class Accent(ToolCallsContract, HistoryContract):
    """The chat format as some vendors insist on it. What they say is read like any other, so only asking is tested."""

    format = "chat"
    has_seals = has_pdf = False
    uncounted = TestChat.uncounted
    vendor = ""

    def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
        return get_model(f"{self.vendor}:{model}", base_url=f"{url}/v1", key=key, price=price, retry=retry)

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


class TestOlderGemini(ToolCallsContract, HistoryContract):
    """Without ids, so that a result is known by its place, and with signatures that nobody misses."""

    format, prefix = "gemini", "gemini-2.5-"
    has_seals = False
    thinking = TestGemini.thinking
    uncounted = TestGemini.uncounted
    connect = TestGemini.connect


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
            yield [altered for chunk in batch for altered in self.hear(chunk)]


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
        swapped = (replace(result, text=other.text) for result, other in zip(results, reversed(results), strict=True))
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
        def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
            return broken(super().connect(url, model, key, price, retry), key)

    arguments = GIVEN.get(test, {}) | ({"caplog": caplog} if broken is TellsTheKey else {})
    with pytest.raises((AssertionError, TimeoutError, TurnError, pytest.fail.Exception)):
        async with open_bench(Suite()) as bench:
            await getattr(Suite(), test)(bench=bench, **arguments)


@pytest.mark.parametrize("test", BROKEN.values())
async def test_a_model_that_is_not_broken_is_not(test: str, caplog: pytest.LogCaptureFixture) -> None:
    class Suite(TestMessages):
        def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
            return Broken(super().connect(url, model, key, price, retry), key)

    arguments = GIVEN.get(test, {}) | ({"caplog": caplog} if test == BROKEN[TellsTheKey] else {})
    async with open_bench(Suite()) as bench:
        await getattr(Suite(), test)(bench=bench, **arguments)
