"""Compactions, stopped after and before every event: the summary is asked for at most once more, and the end is the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from everturn import Chat, TurnOptions, tool
from everturn.core.chunks import Chunk
from everturn.core.events import CompactionFinished, CompactionStarted, MessageAdded
from everturn.core.parts import ClearedPart, SummaryPart
from everturn.core.ports import Tool
from everturn.core.requests import ModelRequest
from tests.helpers.crash_harness import SESSION, Story, World, check, entries_in, plain, tell
from tests.helpers.window_model import WindowModel, counting, events_of, is_summary_request

COMPACTION = MessageAdded | CompactionStarted
PIECES = 3  # requests for one summary in a small window


@tool(read_only=True)
def look(n: int) -> str:
    """Look at something."""
    return f"result {n} " + "lorem ipsum dolor sit amet " * 40


class Counted(WindowModel):
    """Puts every request, summaries included, where no crash reaches it."""

    def __init__(self, world: World, **how: Any) -> None:
        super().__init__(counting(6, "done " * 60), lambda prompt: "Goal: go on.", **how)
        self._world = world

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        if is_summary_request(request):
            self._world.done["summary"] += 1
            self._world.effects["summary"] = "read"
        async for batch in super().stream(request):
            yield batch


def story(kind: str) -> Story:
    """A person who sends a message in which results are cleared, and one in which earlier messages are summarised."""

    async def play(chat: Chat, world: World) -> None:
        await (await chat.send("count to 6 " + "words " * 100, key="first")).result()
        if kind == "command":
            await (await chat.compact(focus="words", key="second")).result()
        else:
            await (await chat.send("count to 6 again " + "words " * 100, key="second")).result()

    window = {"limit": 2_000, "overflow": None, "command": 50_000}[kind]
    tools: list[Tool] = [look]
    return Story(
        kind,
        lambda world: Counted(world, window=window, hidden_window=2_000),
        play,
        tools=lambda _: tools,
        options=TurnOptions(max_steps=20),
    )


@pytest.mark.parametrize("before_next", [False, True], ids=["after", "before"])
@pytest.mark.parametrize("kind", ["limit", "overflow", "command"])
async def test_stopped_at_any_event_a_compaction_ends_the_same(kind: str, before_next: bool) -> None:
    scenario = story(kind)
    whole = await tell(scenario)
    await check(whole)
    entries = await entries_in(whole)
    parts = [part for event in events_of(entries, MessageAdded) for part in event.message.parts]
    assert any(isinstance(part, SummaryPart) for part in parts)
    assert kind != "limit" or any(isinstance(part, ClearedPart) for part in parts)
    once, first = whole.done["summary"], next(entry.seq for entry in entries if isinstance(entry.event, COMPACTION))
    for stop in range(first - 3, len(entries)):
        world = await tell(scenario, lives=stop, before_next=before_next)
        await check(world)
        again = await entries_in(world)
        assert world.done["summary"] <= once + PIECES, f"stopped at {stop}"
        assert _without_usage(plain(again)) == _without_usage(plain(entries)), f"stopped at {stop}"


async def test_until_the_summary_is_written_the_old_view_holds() -> None:
    scenario = story("command")
    entries = await entries_in(await tell(scenario))
    started = next(entry.seq for entry in entries if isinstance(entry.event, CompactionStarted))
    finished = next(entry.seq for entry in entries if isinstance(entry.event, CompactionFinished))
    assert finished == started + 2
    world = await tell(scenario, lives=started)
    log = await world.store.events(SESSION)
    assert len(events_of(log, CompactionStarted)) == len(events_of(log, CompactionFinished)) == 1


def _without_usage(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a summary cost is lost if a store writes a part of its append, which no real store does.

    The index of calls is a blob, and its hash depends on the ids of messages, which differ between processes.
    """
    events: list[dict[str, Any]] = []
    for event in log:
        if event["type"] in ("CompactionFinished", "TurnCompleted"):
            event = {name: value for name, value in event.items() if name != "usage"}
        elif event["type"] == "MessageAdded":
            parts = [{name: part[name] for name in part if name != "calls"} for part in event["message"]["parts"]]
            event = {**event, "message": {**event["message"], "parts": parts}}
        events.append(event)
    return events
