"""Long conversations at their limits: where nothing fits, where each request overflows, and with prompted tool calls."""

from __future__ import annotations

import re
import time

import pytest
from msgspec.structs import replace

from everturn import App, Chat, TurnError, TurnOptions, tool
from everturn.core.chunks import Chunk, FinishChunk, TextChunk
from everturn.core.continuation import CONTINUE_REQUEST
from everturn.core.events import CallStarted, CompactionStarted, MessageAdded, StepFinished, StepRestarted
from everturn.core.parts import ClearedPart, SummaryPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall
from everturn.models import PromptedModel
from everturn.models.prompted import TOOL_FORMATS
from tests.helpers.window_model import WindowModel, counting, events_of, text_of


@tool(read_only=True)
def look(n: int) -> str:
    """Look at something."""
    return f"result {n} " + "lorem ipsum dolor sit amet " * 40


async def run(chat: Chat, text: str, **how: object) -> None:
    await (await chat.send(text, **how)).result()  # type: ignore[arg-type]


async def test_where_instructions_and_tools_are_43k_and_33k_are_usable_there_are_at_most_two_summary_requests() -> None:
    wide = WindowModel(counting(2), window=200_000, name="wide")
    narrow = WindowModel(counting(2), window=44_000, name="narrow")  # a quarter of it is left to the answer
    app = App(wide, tools=[look])
    app.add_model(narrow)
    chat = Chat(wide, session="s", app=app, options=TurnOptions(system="x" * 4 * 43_000))
    for _ in range(5):
        await run(chat, "count to 2 " + "words " * 400)
    head = len(await app.store.events("s"))
    started = time.process_time()
    with pytest.raises(TurnError) as caught:
        await run(chat, "count to 2 " + "words " * 400, model="narrow")
    assert time.process_time() - started < 5
    assert caught.value.kind == "context"
    assert "instructions 43,0" in str(caught.value)
    assert len(re.findall(r"[\w ]+ [\d,]*\d(?=[,.])", str(caught.value).split("largest parts in tokens:")[1])) >= 3
    log = (await app.store.events("s"))[head:]
    assert len(narrow.summaries) <= 2
    assert len(events_of(log, CompactionStarted)) <= 2
    assert events_of(log, CallStarted) == []


async def test_a_summariser_that_saves_one_percent_is_asked_at_most_twice_at_full_size() -> None:
    model = WindowModel(counting(60), lambda prompt: prompt[: int(len(prompt) * 0.99)], window=44_000)
    app = App(model, tools=[look])
    await run(app.chat("s"), "count to 60 " + "words " * 2_000, max_steps=70)
    assert len(events_of(await app.store.events("s"), CompactionStarted)) <= 2
    assert model.refused == 0


async def test_a_request_that_is_refused_again_after_its_compaction_fails_the_turn() -> None:
    class Full(WindowModel):
        """Refuses whatever is longer than a greeting, from the fifth request on."""

        def full(self, request: ModelRequest) -> int:
            return 90_000 if len(self.requests) >= 4 else 100

    model = Full(lambda request: [TextChunk("answer " * 200)], window=None, hidden_window=50_000)
    model._count = model.full
    app = App(model, tools=[look])
    chat = app.chat("s")
    for number in range(4):
        await run(chat, f"message {number} " + "words " * 100)
    with pytest.raises(TurnError) as caught:
        await run(chat, "one more")
    assert caught.value.kind == "context"
    assert model.refused == 2
    log = await app.store.events("s")
    assert len(events_of(log, CompactionStarted)) == 1
    assert len(events_of(log, StepRestarted)) == 1


async def test_an_answer_that_fills_the_window_is_compacted_and_continued() -> None:
    """Some vendors do not refuse a request that leaves too little room: they end the answer where the window ends."""

    def answer(request: ModelRequest) -> list[Chunk]:
        if request.messages[-1] == CONTINUE_REQUEST:
            return [TextChunk(" and this is the end.")]
        if "tell all" in request.messages[-1].text:
            return [TextChunk("a long story " * 450), FinishChunk("length")]
        return [TextChunk("answer " * 150)]

    model = WindowModel(answer, window=4_000)
    app = App(model, tools=[look])
    chat = app.chat("s")
    for number in range(5):
        await run(chat, f"message {number} " + "words " * 150)
    head = len(await app.store.events("s"))
    result = await (await chat.send("tell all")).result()
    assert result.status == "completed"
    assert model.refused == 0
    log = (await app.store.events("s"))[head:]
    kinds = [type(entry.event) for entry in log]
    first = kinds.index(StepFinished)
    assert kinds.index(CompactionStarted, first) < kinds.index(StepFinished, first + 1)
    last = model.requests[-1].messages
    assert last[-1] == CONTINUE_REQUEST
    assert last[-2].text == "a long story " * 450
    [cut, end] = events_of(log, StepFinished)
    assert cut.continues
    assert end.parts == (TextPart(" and this is the end."),)


@pytest.mark.parametrize("tool_format", TOOL_FORMATS)
async def test_prompted_tool_calls_are_compacted_like_native_ones(tool_format: str) -> None:
    def answer(request: ModelRequest) -> list[Chunk]:
        texts = [message.text for message in request.messages if message.role == "user"]
        numbers = re.findall(r"result (\d+) lorem", texts[-1])
        number = int(numbers[-1]) if numbers else 0
        if number >= 25:
            return [TextChunk("done")]
        call = RequestCall("c", "look", f'{{"n": {number + 1}}}')
        return [TextChunk(TOOL_FORMATS[tool_format].write([call]))]

    model = WindowModel(answer, window=6_000)
    app = App(PromptedModel(model, tool_format), tools=[look])
    result = await (await app.chat("s").send("count to 25", max_steps=40)).result()
    assert result.text == "done"
    assert model.refused == 0
    parts = [part for event in events_of(await app.store.events("s"), MessageAdded) for part in event.message.parts]
    assert any(isinstance(part, ClearedPart | SummaryPart) for part in parts)
    assert max(model.sizes) <= 6_000
    assert "count to 25" in text_of(replace(model.requests[-1], system=""))
