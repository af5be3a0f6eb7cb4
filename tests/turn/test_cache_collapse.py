"""A request that missed the prompt cache: its step says so in the log, with the cause that reading the whole log gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from everturn import App, Chat, TurnOptions, tool
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk, UsageChunk
from everturn.core.events import StepFinished
from everturn.core.parts import CacheCollapse, Usage
from everturn.core.projections.cache_health import read_cache_health
from everturn.core.requests import ModelRequest
from everturn.errors import StoreUnavailable
from everturn.testing import FakeClock, MemoryStore, ScriptedModel

SIZE = 10_000


@tool
async def look() -> str:
    return "nothing"


@tool
async def put() -> str:
    return "done"


def answer(read: int, written: int, *chunks: Chunk) -> Callable[[ModelRequest], Sequence[object]]:
    usage = Usage(input=read + written + 50, output=5, cached=read, written=written)
    content_chunks = chunks or (TextChunk("ok"),)
    finish = "tool_calls" if any(isinstance(chunk, CallChunk) for chunk in content_chunks) else "stop"
    return lambda request: [[*content_chunks, UsageChunk(usage), FinishChunk(finish)]]


class CountingStore(MemoryStore):
    """Counts how often earlier turns are looked for."""

    def __init__(self) -> None:
        super().__init__()
        self.lookups = 0
        self.is_away = False

    async def turn_starts(self, session: str, before: int, limit: int) -> Any:
        self.lookups += 1
        if self.is_away:
            raise StoreUnavailable("away")
        return await super().turn_starts(session, before, limit)


class Conversation:
    def __init__(self, *script: Any) -> None:
        self.clock, self.store = FakeClock(), CountingStore()
        self.model = ScriptedModel(*script)
        self.app = App(self.model, tools=[look, put], store=self.store, clock=self.clock)

    async def say(self, text: str, **options: Any) -> None:
        chat = Chat(self.model, app=self.app, session="s", options=TurnOptions(context="auto", **options))
        await (await chat.send(text)).result()

    async def steps(self) -> list[StepFinished]:
        return [entry.event for entry in await self.store.events("s") if isinstance(entry.event, StepFinished)]

    async def collapses(self) -> list[CacheCollapse | None]:
        """Those of the log, which are those that reading the whole log finds."""
        found = [step.cache for step in await self.steps()]
        reads = read_cache_health(entry.event for entry in await self.store.events("s"))
        expected = [CacheCollapse(read.cause, read.expected - read.read) if read.cause else None for read in reads]
        assert found == expected
        return found


MISS, HIT, FIRST = answer(0, SIZE), answer(SIZE, 100), answer(0, SIZE)


async def test_a_request_that_reads_what_was_left_has_no_collapse_and_reads_no_log() -> None:
    talk = Conversation(FIRST, answer(SIZE, 100, CallChunk(0, "{}", "look", "c")), answer(SIZE + 100, 50))
    await talk.say("one")
    await talk.say("two")
    assert await talk.collapses() == [None, None, None]
    assert talk.store.lookups == 0


@pytest.mark.parametrize(
    ("cause", "options", "seconds"),
    [
        ("unexpected", {}, 10.0),
        ("expired", {}, 301.0),
        ("tools changed", {"tools": ("look",)}, 10.0),
        ("instructions changed", {"system": "Be brief."}, 10.0),
        ("unexpected", {"params": {"cache": "1h"}}, 10.0),
    ],
)
async def test_a_collapse_between_two_turns_has_its_cause(cause: Any, options: Any, seconds: float) -> None:
    talk = Conversation(FIRST, MISS)
    await talk.say("one")
    talk.clock.advance(seconds)
    await talk.say("two", **options)
    assert await talk.collapses() == [None, CacheCollapse(cause, SIZE)]


async def test_a_collapse_between_two_steps_of_a_turn_is_noticed() -> None:
    talk = Conversation(answer(0, SIZE, CallChunk(0, "{}", "look", "c")), answer(4_000, 6_100))
    await talk.say("one")
    assert await talk.collapses() == [None, CacheCollapse("unexpected", 6_000)]


async def test_the_request_after_a_compaction_names_it() -> None:
    notes = TextChunk("There are many trains, and all of them take about three hours. " * 250)
    usages = iter([(0, SIZE), (SIZE, 100), (SIZE + 100, 0), (0, 500)])

    def reply(request: ModelRequest) -> Sequence[object]:
        if request.system.startswith("You write the summary"):
            return [[TextChunk("Goal: a trip to Lisbon."), FinishChunk("stop")]]
        return answer(*next(usages), notes)(request)

    talk = Conversation(*[reply] * 8)
    for text in ("one", "two", "three"):
        await talk.say(text)
    chat = Chat(talk.model, app=talk.app, session="s", options=TurnOptions(context="auto"))
    await (await chat.compact()).result()
    await talk.say("four")
    assert await talk.collapses() == [None, None, None, CacheCollapse("compacted", SIZE + 100)]


async def test_a_store_that_is_away_costs_the_cause_and_not_the_answer() -> None:
    talk = Conversation(FIRST, MISS)
    await talk.say("one")
    talk.store.is_away = True
    await talk.say("two")
    assert [step.cache for step in await talk.steps()] == [None, None]
    assert (await talk.steps())[-1].finish == "stop"
