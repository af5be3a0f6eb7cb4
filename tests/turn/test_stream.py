"""The stream of a step: chunks become parts, and whatever breaks it ends the turn with what had arrived."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from everturn import Chat, ModelError, RunResult, Turn, TurnError, TurnSettings, tool
from everturn.app import App
from everturn.core.chunks import (
    CallChunk,
    Chunk,
    FileChunk,
    FinishChunk,
    OpaqueChunk,
    ReasoningChunk,
    TextChunk,
    UsageChunk,
)
from everturn.core.events import Problem, TurnFailed
from everturn.core.parts import FilePart, Opaque, ReasoningPart, StepPart, TextPart, ToolPart, Usage
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest, RequestCall
from everturn.events import CallDelta, StepFinished, StepInterrupted, TextDelta
from everturn.testing import FakeClock, MemoryStore, ScriptedFailure, ScriptedHang, ScriptedModel, call, calls, say
from everturn.wire import dump_log, load_log
from tests.helpers.waiting import wait_until

SOON = 2  # seconds after which something that should have happened is taken to hang
SETTINGS = TurnSettings(first_chunk_timeout=30, idle_timeout=10)


class Raw:
    """A model that streams these batches and nothing of its own accord."""

    name = "raw"

    def __init__(self, *batches: Sequence[Chunk], error: BaseException | None = None) -> None:
        self._batches, self._error = batches, error
        self.is_closed = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        try:
            for batch in self._batches:
                yield batch
            if self._error is not None:
                raise self._error
        finally:
            self.is_closed = True


async def parts_of(*chunks: Chunk) -> tuple[object, ...]:
    """The parts of a step these chunks become, each chunk in a batch of its own."""
    async with Chat(ScriptedModel([[chunk] for chunk in chunks], say("Done."))) as chat:
        turn = await chat.send("please")
        await turn
        finished = [entry.event for entry in await chat.app.store.events(chat.session, turn=turn.id)]
    return next(event.parts for event in finished if isinstance(event, StepFinished))


async def failed(model: Model, **ports: Any) -> tuple[Problem, Turn, list[object]]:
    """Let a turn fail; what it is said to have failed of, and the events of its log."""
    async with Chat(model, app=App(model, **ports)) as chat:
        turn = await chat.send("please")
        with pytest.raises(TurnError) as caught:
            async with asyncio.timeout(SOON):
                await turn
        entries = await chat.app.store.events(chat.session)
        assert load_log(dump_log(entries)) == entries
    events: list[object] = [entry.event for entry in entries]
    ended = events[-1]
    assert isinstance(ended, TurnFailed)
    assert caught.value.kind == ended.problem.kind
    return ended.problem, turn, events


def interrupted(events: Sequence[object]) -> list[tuple[object, ...]]:
    return [event.parts for event in events if isinstance(event, StepInterrupted)]


# Parts ------------------------------------------------------------------------------------------------------------


async def test_chunks_of_a_kind_are_one_part_and_empty_ones_are_none() -> None:
    parts = await parts_of(
        TextChunk(""),
        ReasoningChunk("let "),
        ReasoningChunk("me see"),
        TextChunk("It "),
        TextChunk(""),
        TextChunk("is."),
        ReasoningChunk("hm"),
        FinishChunk("stop"),
    )
    assert parts == (ReasoningPart("let me see"), TextPart("It is."), ReasoningPart("hm"))


async def test_an_answer_may_be_empty() -> None:
    assert await parts_of(FinishChunk("stop")) == ()


async def test_the_last_word_on_usage_counts() -> None:
    async with Chat(
        Raw([UsageChunk(Usage(10, 1))], [TextChunk("a"), UsageChunk(Usage(10, 7))], [FinishChunk("stop")])
    ) as chat:
        assert (await (await chat.send("please"))).usage == Usage(10, 7)


async def test_usage_of_all_steps_is_summed() -> None:
    batches = [[*calls(call("look"))[:-1], [UsageChunk(Usage(10, 1, cached=4)), FinishChunk("tool_calls")]]]
    model = ScriptedModel(*batches, [[TextChunk("a"), UsageChunk(Usage(20, 2, reasoning=1)), FinishChunk("stop")]])
    async with Chat(model, tools=[tool(name="look")(lambda: "seen")]) as chat:
        assert (await (await chat.send("please"))).usage == Usage(30, 3, cached=4, reasoning=1)


async def test_calls_whose_pieces_are_interleaved_are_distinguished_by_their_slots() -> None:
    parts = await parts_of(
        CallChunk(0, '{"a"', name="one", id="x"),
        CallChunk(1, '{"b"', name="two", id="y"),
        CallChunk(0, ":1}"),
        TextChunk("in between"),
        CallChunk(1, ":2}"),
        FinishChunk("tool_calls"),
    )
    tool_calls = [(part.name, part.arguments, part.provider_id) for part in parts if isinstance(part, ToolPart)]
    assert tool_calls == [("one", '{"a":1}', "x"), ("two", '{"b":2}', "y")]


async def test_the_name_of_a_call_may_come_after_its_arguments() -> None:
    parts = await parts_of(
        CallChunk(0, '{"a":'), CallChunk(0, "1}"), CallChunk(0, name="add"), FinishChunk("tool_calls")
    )
    assert [(part.name, part.arguments) for part in parts if isinstance(part, ToolPart)] == [("add", '{"a":1}')]


async def test_a_sealed_payload_stays_on_its_part() -> None:
    seal = Opaque("acme", "c2VhbGVk")
    model = ScriptedModel(
        [[OpaqueChunk(seal)], *calls(call("look"))[:-1], [OpaqueChunk(seal), FinishChunk("tool_calls")]],
        [[TextChunk("Done."), OpaqueChunk(seal)]],
        say("Again."),
    )
    async with Chat(model, tools=[tool(name="look")(lambda: "seen")]) as chat:
        await (await chat.send("please"))
        await (await chat.send("and again"))
    sealed = [getattr(part, "opaque", None) for message in model.requests[-1].messages for part in message.parts]
    assert sealed.count(seal) == 3  # empty reasoning, a call and a text: all of them go back to their issuer


async def test_two_sealed_thoughts_in_a_row_keep_a_seal_each() -> None:
    first, two = Opaque("acme", "one"), Opaque("acme", "two")
    parts = await parts_of(
        ReasoningChunk("a"), OpaqueChunk(first), ReasoningChunk("b"), OpaqueChunk(two), FinishChunk("stop")
    )
    assert parts == (ReasoningPart("a", first), ReasoningPart("b", two))


async def test_what_is_shown_live_is_what_is_written_down() -> None:
    broken: Any = [[TextChunk("a\ud800b")], [CallChunk(0, '{"\ud800', "look")], [TextChunk("\x00c")], ScriptedHang()]
    async with Chat(ScriptedModel(broken)) as chat:
        turn, live, arguments = await chat.send("please"), "", ""
        async for event in turn:
            live += event.text if isinstance(event, TextDelta) else ""
            arguments += event.text if isinstance(event, CallDelta) else ""
            if live.endswith("c"):
                break
        await turn.cancel()
        result = await turn
    assert result.message is not None
    [tool_part] = [part for part in result.message.parts if isinstance(part, ToolPart)]
    assert (live, arguments) == (result.message.text, tool_part.arguments)


async def test_ids_a_provider_repeats_are_unique_in_every_turn_and_branch() -> None:
    same: Any = [CallChunk(0, "{}", "look", "call_1"), CallChunk(1, "{}", "look", "call_1"), FinishChunk("tool_calls")]
    model = ScriptedModel([same], [same], say("Done."), [same], say("Done."))
    async with Chat(model, tools=[tool(name="look", repeatable=True)(lambda: "seen")]) as chat:
        await (await chat.send("please"))
        await (again := await chat.send("and again"))
        [answer] = [m for m in (await again.state()).messages.values() if m.role == "assistant"]
        await (await chat.rerun(answer.id))
        tree = await chat.tree()
    tool_parts = [part for message in tree.messages.values() for part in message.parts if isinstance(part, ToolPart)]
    assert len({part.call for part in tool_parts}) == len(tool_parts) == 8
    assert {part.provider_id for part in tool_parts} == {"call_1"}
    for request in model.requests:
        called = [part.call for message in request.messages for part in message.parts if isinstance(part, RequestCall)]
        assert len(set(called)) == len(called)


# Ends ---------------------------------------------------------------------------------------------------------------


async def test_a_stream_that_does_not_say_it_is_finished_was_cut_off_and_its_text_is_kept() -> None:
    problem, _, events = await failed(Raw([TextChunk("as far as ")], [TextChunk("here")]))
    assert problem.kind == "truncated"
    assert interrupted(events) == [(TextPart("as far as here"),)]


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (ModelError("overloaded", kind="server", retryable=True), "server", "overloaded"),
        (ModelError("bad key"), "model", "bad key"),
        (ModelError("\ud800 is what they sent", kind="server"), "server", "? is what they sent"),
        (RuntimeError("a bug"), "internal", "RuntimeError: a bug"),
        (asyncio.CancelledError(), "model", ""),
    ],
)
@pytest.mark.parametrize("partial_text", ["", "I was about to"])
async def test_a_model_that_raises_ends_the_turn_with_what_it_had_said(
    error: BaseException, kind: str, says: str, partial_text: str
) -> None:
    problem, turn, events = await failed(Raw([TextChunk(partial_text)], error=error))
    assert (problem.kind, turn.id) == (kind, getattr(events[-1], "turn", ""))
    assert says in problem.text
    assert interrupted(events) == [(TextPart(partial_text),) if partial_text else ()]


async def test_the_stream_of_a_model_is_closed_when_its_turn_is_cancelled() -> None:
    model = Raw([TextChunk("a")], error=None)
    silent = asyncio.Event()

    async def stream(request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        async for batch in Raw.stream(model, request):
            yield batch
            await silent.wait()

    model.stream = stream
    async with Chat(model) as chat:
        turn = await chat.send("please")
        async for event in turn:
            if isinstance(event, TextDelta):
                await turn.cancel()
        await wait_until(lambda: model.is_closed)


# Silence --------------------------------------------------------------------------------------------------------------


async def collected(turn: Turn) -> RunResult:
    return await turn


async def test_a_model_that_never_says_anything_is_given_up() -> None:
    clock, silent = FakeClock(), ScriptedModel([ScriptedHang()])
    async with Chat(silent, app=App(silent, clock=clock, settings=SETTINGS)) as chat:
        result = asyncio.ensure_future(collected(await chat.send("please")))
        await wait_until(lambda: clock.waiting)
        clock.advance(29)
        await asyncio.sleep(0)
        assert not result.done()
        clock.advance(1)
        with pytest.raises(TurnError, match="fell silent") as caught:
            await result
    assert caught.value.kind == "stalled"


async def test_a_model_that_falls_silent_is_given_up_and_its_text_is_kept() -> None:
    clock = FakeClock()
    silent: Any = [[TextChunk("one ")], [TextChunk("two")], ScriptedHang()]
    model = ScriptedModel(silent)
    async with Chat(model, app=App(model, clock=clock, settings=SETTINGS)) as chat:
        turn = await chat.send("please")
        async for event in turn:
            if isinstance(event, TextDelta):
                clock.advance(9)  # slow, but not silent
            if isinstance(event, TextDelta) and event.text == "two":
                break
        clock.advance(1)
        with pytest.raises(TurnError) as caught:
            await turn
        events = [entry.event for entry in await chat.app.store.events(chat.session)]
    assert caught.value.kind == "stalled"
    assert interrupted(events) == [(TextPart("one two"),)]


async def test_the_watch_ends_with_the_stream() -> None:
    clock, model = FakeClock(), ScriptedModel(calls(call("mail")))
    mail = tool(name="mail", approval="always")(lambda: None)
    async with Chat(model, app=App(model, tools=[mail], clock=clock, settings=SETTINGS)) as chat:
        turn = await chat.send("please")
        async for event in turn:
            if type(event).__name__ == "TurnSuspended":
                break
        assert clock.waiting == 0  # a person may take as long as they like


async def test_a_broken_step_is_not_asked_for_again() -> None:
    model = ScriptedModel([ScriptedFailure(ModelError("down", kind="server"))])
    await failed(model)
    assert len(model.requests) == 1


# Files ----------------------------------------------------------------------------------------------------------------

PICTURE = FileChunk(b"\x89PNG and more", "image/png", "cat.png")


class Keeping(MemoryStore):
    """A store that takes its time with a blob, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.asked, self.may_keep, self._error = asyncio.Event(), asyncio.Event(), error

    async def put_blob(self, data: bytes) -> str:
        self.asked.set()
        await self.may_keep.wait()
        if self._error is not None:
            raise self._error
        return await super().put_blob(data)


async def test_a_file_stands_where_it_came_and_holds_no_bytes() -> None:
    model = Raw([TextChunk("Here:"), PICTURE, TextChunk("Nice.")], [PICTURE], [FinishChunk("stop")])
    async with Chat(model) as chat:
        turn = await chat.send("a cat")
        shown = [event async for event in turn]

        first, file, last, again = next(event.parts for event in shown if isinstance(event, StepFinished))
        assert (first, last) == (TextPart("Here:"), TextPart("Nice."))
        assert file == again
        assert isinstance(file, FilePart)
        assert (file.media_type, file.size, file.name) == ("image/png", 13, "cat.png")
        assert await chat.read(file) == PICTURE.data
        assert [(event.part, event.text) for event in shown if isinstance(event, TextDelta)] == [
            (0, "Here:"),
            (2, "Nice."),
        ]
        assert load_log(dump_log(await chat.app.store.events(chat.session)))


async def test_a_reader_that_comes_back_behind_a_file_misses_nothing() -> None:
    model = Raw([TextChunk("Here:")], [PICTURE], [TextChunk("Nice.")], [FinishChunk("stop")])
    async with Chat(model) as chat:
        turn = await chat.send("a cat")
        reading = turn.events()
        async for event in reading:
            if isinstance(event, TextDelta):
                break
        rest = [event async for event in turn.events(str(reading.cursor))]
        await turn

    assert [event.text for event in rest if isinstance(event, TextDelta)] == ["Nice."]


async def test_a_file_that_had_come_before_the_stream_broke_stays() -> None:
    async with Chat(ScriptedModel([[PICTURE], ScriptedFailure(ModelError("boom", kind="server"))])) as chat:
        turn = await chat.send("a cat")
        with pytest.raises(TurnError):
            await turn

        assert [type(part) for part in (await chat.messages())[-1].parts] == [FilePart, StepPart]


async def test_a_file_that_is_being_kept_when_the_turn_is_cancelled_has_not_come() -> None:
    store = Keeping()
    async with Chat(
        Raw([TextChunk("Here:")], [PICTURE, TextChunk("Nice.")], [FinishChunk("stop")]), store=store
    ) as chat:
        turn = await chat.send("a cat")
        await store.asked.wait()
        await turn.cancel()
        await turn

        assert [type(part) for part in (await chat.messages())[-1].parts] == [TextPart, TextPart, StepPart]


async def test_a_store_that_cannot_keep_a_file_ends_the_turn() -> None:
    store = Keeping(OSError("the disk is full"))
    store.may_keep.set()
    async with Chat(Raw([PICTURE], [FinishChunk("stop")]), store=store) as chat:
        with pytest.raises(TurnError, match="the disk is full"):
            await (await chat.send("a cat"))

        assert [type(part) for part in (await chat.messages())[-1].parts] == [StepPart]


async def test_a_model_that_fails_before_it_streams_leaves_no_timer() -> None:
    class AtOnce:
        name = "at once"

        def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
            raise ModelError("no", kind="request")

    clock = FakeClock()
    async with Chat(AtOnce(), app=App(AtOnce(), clock=clock)) as chat:
        with pytest.raises(TurnError, match="no"):
            await (await chat.send("Hello"))

    assert clock.waiting == 0
