"""Model contract: the rules of the `Model` port, for any model, whatever is behind it.

    class TestMine(ModelContract):
        def make(self) -> Model:
            return MyModel()

A model that speaks one of the wire formats passes `ProviderModelContract` as well, which asks it over a hundred things
more against a provider that is strict about requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast, get_args

import pytest
from msgspec import json

from everturn.chat import Chat
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk, UsageChunk
from everturn.core.parts import Finish, TextPart, ToolPart, Usage
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestResult, ToolSpec
from everturn.testing.contracts.model.bench import ANYTHING, LONGEST, RecordingTool

LOOK = ToolSpec("look", "Look at something.", ANYTHING, read_only=True)
FINISHES = frozenset(get_args(Finish)) - {"cancelled", "error"}  # those two are Everturn's own


class ModelContract:
    """A model: a stream of batches that ends with one finish, no memory between requests, and no harm when it is
    closed early.
    """

    prompt = "Say hello."
    """A message that the model answers with some text."""
    call_prompt = ""
    """A message that it answers with a call of the tool `look`; "": it calls no tools, or not reliably."""

    def make(self) -> Model:
        """Return the model under test."""
        raise NotImplementedError

    def request(self, text: str, *before: RequestMessage, tools: Sequence[ToolSpec] = ()) -> ModelRequest:
        """A request with this message at its end."""
        message = RequestMessage("user", (TextPart(text),))
        return ModelRequest(self.make().name, "Be brief.", [*before, message], list(tools), {})

    async def _read(self, model: Model, request: ModelRequest) -> list[Chunk]:
        """Read a stream to its end, and check what holds for every stream."""
        chunks: list[Chunk] = []
        async with asyncio.timeout(LONGEST):
            async for batch in model.stream(request):
                is_batch = isinstance(cast("Any", batch), list | tuple)
                assert is_batch, f"stream yields lists of chunks, not {type(batch).__name__}"
                chunks += batch
        for chunk in chunks:
            assert isinstance(cast("Any", chunk), Chunk), f"{chunk!r} is not a chunk of everturn.core.chunks"
        finishes = [number for number, chunk in enumerate(chunks) if isinstance(chunk, FinishChunk)]
        assert len(finishes) == 1, f"a stream has one FinishChunk, this one has {len(finishes)}"
        after = [chunk for chunk in chunks[finishes[0] + 1 :] if not isinstance(chunk, UsageChunk)]
        assert not after, f"only usage may follow the FinishChunk, not {after}"
        return chunks

    def test_its_name_is_a_text(self) -> None:
        name = cast("Any", self.make().name)
        assert isinstance(name, str), "the name of a model is a str"
        assert name, "a model has a name: it is shown beside its answers"

    async def test_a_stream_is_batches_of_chunks_and_ends_with_one_finish(self) -> None:
        chunks = await self._read(self.make(), self.request(self.prompt))
        (finish,) = (chunk for chunk in chunks if isinstance(chunk, FinishChunk))
        assert finish.reason in FINISHES
        assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)), "`prompt` is answered with text"

    async def test_usage_is_counted_in_whole_tokens(self) -> None:
        for chunk in await self._read(self.make(), self.request(self.prompt)):
            if isinstance(chunk, UsageChunk):
                assert chunk.usage == chunk.usage.clamped()
                assert isinstance(cast("Any", chunk.usage), Usage)

    async def test_the_request_is_not_changed(self) -> None:
        request = self.request(self.prompt)
        before = json.encode((request.system, request.messages, request.tools, request.params))
        await self._read(self.make(), request)
        assert json.encode((request.system, request.messages, request.tools, request.params)) == before

    async def test_requests_at_once_do_not_disturb_each_other(self) -> None:
        model = self.make()
        answers = await asyncio.gather(*(self._read(model, self.request(self.prompt)) for _ in range(5)))
        assert all(any(isinstance(chunk, TextChunk) for chunk in chunks) for chunks in answers)

    async def test_a_history_with_a_call_and_its_result_is_accepted(self) -> None:
        history = (
            RequestMessage("user", (TextPart("Look."),)),
            RequestMessage("assistant", (TextPart("I look."), RequestCall("c1", "look", '{"path":"a"}'))),
            RequestMessage("tool", (RequestResult("c1", "look", "nothing there"),)),
            RequestMessage("assistant", (TextPart("There is nothing."),)),
        )
        await self._read(self.make(), self.request(self.prompt, *history, tools=[LOOK]))

    async def test_a_stream_that_is_closed_early_leaves_nothing_behind(self) -> None:
        model, tasks = self.make(), asyncio.all_tasks()
        stream = model.stream(self.request(self.prompt))
        async with asyncio.timeout(LONGEST):
            await anext(aiter(stream))
            await cast("Any", stream).aclose()
        await asyncio.sleep(0)
        assert not {task for task in asyncio.all_tasks() - tasks if not task.done()}, "a task of the stream still runs"
        await self._read(model, self.request(self.prompt))

    async def test_a_cancelled_request_ends_at_once(self) -> None:
        model = self.make()
        reading = asyncio.create_task(self._read(model, self.request(self.prompt)))
        await asyncio.sleep(0)
        if not reading.cancel():
            return  # it answered at once
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(LONGEST):
                await reading
        await self._read(model, self.request(self.prompt))

    async def test_a_turn_runs(self) -> None:
        async with asyncio.timeout(LONGEST), Chat(self.make()) as chat:
            turn = await (await chat.send(self.prompt))
        assert turn.text

    async def test_a_call_has_a_name_that_was_offered_and_arguments_that_are_json(self) -> None:
        if not self.call_prompt:
            pytest.skip("`call_prompt` is not set")
        chunks = await self._read(self.make(), self.request(self.call_prompt, tools=[LOOK]))
        slots: dict[int, list[CallChunk]] = {}
        for chunk in chunks:
            if isinstance(chunk, CallChunk):
                slots.setdefault(chunk.slot, []).append(chunk)
        assert slots, "`call_prompt` is answered with a call"
        for pieces in slots.values():
            assert pieces[0].name == "look", "the first chunk of a slot has the name"
            assert not any(piece.name for piece in pieces[1:]), "and the others have none"
            assert isinstance(json.decode("".join(piece.arguments for piece in pieces) or "{}"), dict)

    async def test_a_turn_with_a_call_runs_the_tool(self) -> None:
        if not self.call_prompt:
            pytest.skip("`call_prompt` is not set")
        tool = RecordingTool()
        async with asyncio.timeout(LONGEST), Chat(self.make(), tools=[tool]) as chat:
            message = (await (await chat.send(self.call_prompt, max_steps=3))).message
        assert tool.ran
        assert message is not None
        assert any(isinstance(part, ToolPart) and part.state == "completed" for part in message.parts)
