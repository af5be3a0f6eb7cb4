"""The scripted model: it says what it was told to, in pieces, and the same again after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from everturn import ModelError
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, ReasoningChunk, TextChunk, UsageChunk
from everturn.core.parts import TextPart, Usage
from everturn.core.requests import ModelRequest, RequestMessage
from everturn.testing import ScriptedFailure, ScriptedHang, ScriptedModel, call, calls, say, think


def request(answers: int = 0) -> ModelRequest:
    """A request in whose history the model has given so many answers."""
    history = [RequestMessage("assistant", (TextPart("hi"),))] * answers
    return ModelRequest("scripted", "", [*history, RequestMessage("user", (TextPart("12345678"),))], [], {})


async def answer(model: ScriptedModel, answers: int = 0) -> list[Chunk]:
    return [chunk async for batch in model.stream(request(answers)) for chunk in batch]


def text(chunks: Sequence[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks if isinstance(chunk, TextChunk | ReasoningChunk)]


async def test_text_comes_word_by_word_or_in_pieces_of_a_size() -> None:
    model = ScriptedModel(say("one two"), say("onetwo", size=4), think("hm hm"))
    assert [text(await answer(model, n)) for n in range(3)] == [["one ", "two"], ["onet", "wo"], ["hm ", "hm"]]


async def test_an_answer_without_an_end_is_finished_and_counted() -> None:
    assert (await answer(ScriptedModel(say("hi"))))[-2:] == [UsageChunk(Usage(input=3, output=1)), FinishChunk("stop")]


async def test_an_answer_with_an_end_of_its_own_is_left_as_it_is() -> None:
    assert (await answer(ScriptedModel([[TextChunk("hi"), FinishChunk("length")]])))[-1] == FinishChunk("length")


async def test_calls_come_in_pieces_that_make_them_whole() -> None:
    chunks = await answer(ScriptedModel([say("I look."), calls(call("read", path="a"), call("list"))]))
    pieces = [chunk for chunk in chunks if isinstance(chunk, CallChunk)]
    whole = {slot: "".join(c.arguments for c in pieces if c.slot == slot) for slot in (0, 1)}
    assert whole == {0: '{"path":"a"}', 1: "{}"}
    assert [(c.name, c.id) for c in pieces if c.name] == [("read", "given_0"), ("list", "given_1")]
    assert chunks[-1] == FinishChunk("tool_calls")


async def test_which_answer_comes_is_read_off_the_request() -> None:
    model = ScriptedModel(say("first"), say("second"))
    assert text(await answer(model, 1)) == ["second"]
    assert text(await answer(model, 0)) == ["first"]  # asked again, it says the same again
    assert [len(model_request.messages) for model_request in model.requests] == [2, 1]


async def test_a_script_may_look_at_the_request() -> None:
    model = ScriptedModel(lambda model_request: say(model_request.messages[-1].text))
    assert text(await answer(model)) == ["12345678"]


@pytest.mark.parametrize("script", ["One, two.", ["One, ", "two."], lambda _: "One, two."])
async def test_a_text_in_a_script_is_said(script: Any) -> None:
    assert "".join(text(await answer(ScriptedModel(script)))) == "One, two."


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (call("look", place="hall"), r"answer 1 of the script is a bare call: write calls\(call\('look', …\)\)"),
        ([call("look", place="hall")], r"write calls\(call\('look', …\)\) in the script"),
        (7, r"answer 1 of the script is of type int; there are: a text, say\(\"…\"\), calls\("),
    ],
)
async def test_what_is_no_answer_is_named(script: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        await answer(ScriptedModel(script))


async def test_a_script_that_is_over_says_so() -> None:
    with pytest.raises(
        ModelError, match=r"the script has 1 answer, and this is request 2 .*: add another answer"
    ) as caught:
        await answer(ScriptedModel(say("only")), 1)
    assert caught.value.kind == "script"


async def test_a_stream_breaks_where_the_script_says() -> None:
    broken: Any = [say("so far"), ScriptedFailure(ModelError("gone", kind="server")), say("never")]
    stream = ScriptedModel(broken).stream(request())
    assert [text(await anext(stream)), text(await anext(stream))] == [["so "], ["far"]]
    with pytest.raises(ModelError, match="gone"):
        await anext(stream)


async def test_a_stream_hangs_where_the_script_says_and_can_be_closed() -> None:
    hanging: Any = [say("hi"), [ScriptedHang()], say("never")]
    stream = ScriptedModel(hanging).stream(request())
    assert text(await anext(stream)) == ["hi"]
    more = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    assert not more.done()
    more.cancel()
    with pytest.raises(asyncio.CancelledError):
        await more
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
