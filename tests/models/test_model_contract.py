"""`ModelContract` holds models of every kind to the port, and each of its tests has caught a model that breaks it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest
from docs_src.guides.echo_model import Echo

from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk, UsageChunk
from everturn.core.parts import TextPart, Usage
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest, RequestMessage
from everturn.models.retry import RetryModel
from everturn.testing.contracts import ModelContract


class TestEcho(ModelContract):
    def make(self) -> Model:
        return Echo()


class TestWrapper(ModelContract):
    def make(self) -> Model:
        return RetryModel(Echo())


class Looker:
    """Calls the tool once, in three pieces, and answers after its result."""

    name = "looker"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        if request.tools and request.messages[-1].role == "user":
            yield [CallChunk(0, name="look"), CallChunk(0, '{"path"')]
            yield [CallChunk(0, ':"a"}'), FinishChunk("tool_calls"), UsageChunk(Usage(3, 4))]
            return
        yield [TextChunk("Nothing there."), FinishChunk("stop")]


class TestLooker(ModelContract):
    call_prompt = "Look."

    def make(self) -> Model:
        return Looker()


# Models that break the port, and the test that catches each --------------------------------------------------------------


class Broken:
    """A model whose stream is what a subclass says."""

    name = "broken"
    _left: Any = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        raise NotImplementedError
        yield []


class Nameless(Broken):
    name = ""


class NoFinish(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [TextChunk("hello")]


class TwoFinishes(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [TextChunk("hello"), FinishChunk("stop"), FinishChunk("stop")]


class TextAfterFinish(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [FinishChunk("stop"), TextChunk("hello")]


class SingleChunks(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield cast("Any", TextChunk("hello"))


class Strings(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield cast("Any", ["hello", FinishChunk("stop")])


class OwnReason(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [TextChunk("hello"), FinishChunk(cast("Any", "end_turn"))]


class NegativeUsage(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [TextChunk("hello"), UsageChunk(Usage(-5, 1)), FinishChunk("stop")]


class ChangesRequest(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        request.messages.append(RequestMessage("user", (TextPart("and be quick"),)))
        yield [TextChunk("hello"), FinishChunk("stop")]


class OneAtATime(Broken):
    _busy = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        if type(self)._busy:
            yield [FinishChunk("stop")]
            return
        type(self)._busy = True
        await asyncio.sleep(0.001)
        yield [TextChunk("hello"), FinishChunk("stop")]
        type(self)._busy = False


class TextOnly(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        spoken = "".join(cast("Any", part).text for message in request.messages for part in message.parts)
        yield [TextChunk(spoken), FinishChunk("stop")]


class LeavesATask(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        self._left = asyncio.create_task(asyncio.sleep(3600))
        yield [TextChunk("hello")]
        self._left.cancel()
        yield [FinishChunk("stop")]


class SwallowsCancel(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            pass
        yield [TextChunk("hello"), FinishChunk("stop")]


class Silent(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [FinishChunk("stop")]


class LateName(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [CallChunk(0, "{"), CallChunk(0, "}", name="look"), FinishChunk("tool_calls")]


class NotJson(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [CallChunk(0, "path=a", name="look"), FinishChunk("tool_calls")]


class OnlySaysSo(Broken):
    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [TextChunk("I called look."), FinishChunk("stop")]


STREAM = "a_stream_is_batches_of_chunks_and_ends_with_one_finish"
CALL = "a_call_has_a_name_that_was_offered_and_arguments_that_are_json"
CAUGHT: list[tuple[type[Broken], str]] = [
    (Nameless, "its_name_is_a_text"),
    (NoFinish, STREAM),
    (TwoFinishes, STREAM),
    (TextAfterFinish, STREAM),
    (SingleChunks, STREAM),
    (Strings, STREAM),
    (OwnReason, STREAM),
    (Silent, STREAM),
    (NegativeUsage, "usage_is_counted_in_whole_tokens"),
    (ChangesRequest, "the_request_is_not_changed"),
    (OneAtATime, "requests_at_once_do_not_disturb_each_other"),
    (TextOnly, "a_history_with_a_call_and_its_result_is_accepted"),
    (LeavesATask, "a_stream_that_is_closed_early_leaves_nothing_behind"),
    (SwallowsCancel, "a_cancelled_request_ends_at_once"),
    (NoFinish, "a_turn_runs"),
    (LateName, CALL),
    (NotJson, CALL),
    (OnlySaysSo, "a_turn_with_a_call_runs_the_tool"),
]


@pytest.mark.parametrize(("model", "test"), CAUGHT, ids=lambda value: getattr(value, "__name__", value))
async def test_a_model_that_breaks_the_port_is_caught(model: type[Broken], test: str) -> None:
    suite = ModelContract()
    suite.make = model
    suite.call_prompt = "Look."

    async def run() -> None:
        done = getattr(suite, f"test_{test}")()
        if done is not None:
            await done

    with pytest.raises((Exception, pytest.fail.Exception)) as caught:
        await run()
    assert not isinstance(caught.value, NotImplementedError)


def test_every_test_of_the_contract_has_caught_a_model() -> None:
    tests = {name.removeprefix("test_") for name in dir(ModelContract) if name.startswith("test_")}
    assert tests == {test for _, test in CAUGHT}
