"""Readers: whoever comes, whenever and from whatever cursor, sees every character once and the end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everturn import Chat, Progress, Turn, tool
from everturn.core.deltas import CallDelta, ReasoningDelta, TurnItem, TurnReader
from everturn.core.events import Entry, Event
from everturn.errors import DriverLost
from everturn.events import CallProgress, Cursor, TextDelta, TurnCompleted, TurnStarted
from everturn.running.follow import follow_turn
from everturn.testing import MemoryStore, ScriptedHang, ScriptedModel, call, calls, say, think

SOON = 2  # seconds after which something that should have happened is taken to hang

Seen = dict[tuple[int, int], str]


def collect(shown: list[TurnItem]) -> Seen:
    """What a face would hold: the text of every part, by its step and number."""
    seen: Seen = {}
    for item in shown:
        if isinstance(item, TextDelta | ReasoningDelta | CallDelta):
            place = (item.seq, item.part)
            assert item.offset == len(seen.get(place, "")), "a gap, or something twice"
            seen[place] = seen.get(place, "") + item.text
    return seen


async def read(turn: Turn, after: Cursor | str | None = None) -> list[TurnItem]:
    async with asyncio.timeout(SOON):
        return [item async for item in turn.events(after)]


def story() -> ScriptedModel:
    return ScriptedModel(
        [think("let me see"), say("I look into it."), calls(call("look", path="a"), call("look", path="b"))],
        [say("Both are empty, "), say("as far as I see.")],
    )


@tool(read_only=True)
async def look(path: str) -> str:
    return f"nothing in {path}"


async def test_a_reader_from_any_cursor_of_a_turn_sees_exactly_the_rest() -> None:
    async with Chat(story(), tools=[look]) as chat:
        turn = await chat.send("please")
        reader = TurnReader(turn.id)
        whole: list[TurnItem] = []
        places: list[tuple[Cursor, int]] = [(reader.cursor, 0)]
        live: list[tuple[int, asyncio.Task[list[TurnItem]]]] = []
        async for item in chat.app.follow(chat.session, reader):
            whole.append(item)
            places.append((reader.cursor, len(whole)))
            live.append((len(whole), asyncio.ensure_future(read(turn, reader.cursor))))
        for at, task in live:  # came back at once, while the turn was running
            assert_same_end(whole, at, await task)
        for cursor, at in places:  # came back when it was over
            assert_same_end(whole, at, await read(turn, str(cursor)))


def assert_same_end(whole: list[TurnItem], at: int, rest: list[TurnItem]) -> None:
    """What was seen before the cursor and what is shown after it are together what somebody saw who stayed."""
    together: Seen = {}
    for item in (*whole[:at], *rest):
        if isinstance(item, TextDelta | ReasoningDelta | CallDelta):
            place = (item.seq, item.part)
            together[place] = together.get(place, "") + item.text
    assert together == collect(whole)
    assert [item for item in rest if isinstance(item, Event)] == [i for i in whole[at:] if isinstance(i, Event)]


async def test_a_reader_after_the_end_is_shown_it_all() -> None:
    async with Chat(story(), tools=[look]) as chat:
        turn = await chat.send("please")
        live = await read(turn)
        after = await read(turn)
    assert collect(after) == collect(live)
    assert [type(i) for i in after if isinstance(i, Event)] == [type(i) for i in live if isinstance(i, Event)]
    assert isinstance(after[-1], TurnCompleted)


async def test_a_reader_that_comes_in_the_middle_of_a_step_is_shown_what_was_said() -> None:
    hanging: Any = [say("one two three"), [ScriptedHang()]]
    async with Chat(ScriptedModel(hanging)) as chat:
        turn = await chat.send("please")
        async for item in turn:
            if isinstance(item, TextDelta) and item.text == "three":
                break
        late = ""
        async for item in turn:
            late += item.text if isinstance(item, TextDelta) else ""
            if late == "one two three":
                break


@pytest.mark.parametrize("joins", ["before it begins", "while it runs"])
async def test_a_reader_slower_than_the_turn_misses_nothing(joins: str) -> None:
    async with Chat(story(), tools=[look]) as chat:
        turn = await chat.send("please")
        if joins == "while it runs":
            async for item in turn:
                if isinstance(item, TextDelta):
                    break
        slow = turn.events()
        first = await anext(slow)
        await turn  # meanwhile it has ended
        async with asyncio.timeout(SOON):
            rest = [item async for item in slow]
        assert isinstance(first, TurnStarted)
        assert isinstance(rest[-1], TurnCompleted)
        assert collect(rest) == collect(await read(turn))


async def test_several_readers_at_once_see_the_same() -> None:
    async with Chat(story(), tools=[look]) as chat:
        turn = await chat.send("please")
        first, two, three = await asyncio.gather(read(turn), read(turn), read(turn))
    assert collect(first) == collect(two) == collect(three)


@pytest.mark.parametrize("cursor", ["", "garbage", "-1", "1:x", ":", "0:0,0", "9" * 5_000])
async def test_a_cursor_from_an_unknown_client_does_no_harm(cursor: str) -> None:
    async with Chat(story(), tools=[look]) as chat:
        turn = await chat.send("please")
        await turn
        shown = await read(turn, cursor)
    assert not shown or isinstance(shown[-1], TurnCompleted)


async def test_a_reader_at_or_behind_the_end_is_not_kept_waiting() -> None:
    async with Chat(story(), tools=[look]) as chat:
        turn = await chat.send("please")
        await turn
        end = await chat.app.store.head(chat.session)
        assert await read(turn, str(end)) == []
        assert await read(turn, str(end + 100)) == []


async def test_progress_is_shown_when_it_happens_and_to_nobody_later() -> None:
    seen = asyncio.Event()

    @tool
    async def count() -> Any:
        yield Progress("1 of 2")
        await seen.wait()
        yield "counted"

    async with Chat(ScriptedModel(calls(call("count")), say("Done.")), tools=[count]) as chat:
        turn = await chat.send("please")
        async for item in turn:
            if isinstance(item, CallProgress):
                assert item.text == "1 of 2"
                seen.set()
        assert not any(isinstance(item, CallProgress) for item in await read(turn))


class Far(MemoryStore):
    """A store that is far away: others get on with their work before it is asked, and before its answer is back."""

    async def admit(self, command: Any) -> Any:
        return await self._far(super().admit(command))

    async def inbox(self, session: str) -> Any:
        return await self._far(super().inbox(session))

    async def append(self, session: str, after: int, events: Any, epoch: int | None = None) -> int:
        return await self._far(super().append(session, after, events, epoch))

    async def events(self, session: str, after: int = 0, turn: str | None = None) -> list[Entry]:
        return await self._far(super().events(session, after, turn))

    async def _far(self, work: Any) -> Any:
        for _ in range(3):
            await asyncio.sleep(0)
        done = await work
        for _ in range(3):
            await asyncio.sleep(0)
        return done


@pytest.mark.parametrize("passes", range(0, 60, 3))
async def test_a_reader_of_a_store_far_away_sees_the_end_whenever_it_comes(passes: int) -> None:
    async with Chat(ScriptedModel(say("a")), store=Far()) as chat:
        turn = await chat.send("please")
        for _ in range(passes):
            await asyncio.sleep(0)
        shown = await read(turn)
        assert isinstance(shown[-1], TurnCompleted)
        assert (await turn).text == "a"


async def test_a_reader_is_told_when_nobody_drives_any_more() -> None:
    hanging: Any = [say("one"), [ScriptedHang()]]
    async with Chat(ScriptedModel(hanging)) as chat:
        turn = await chat.send("please")
        reader = turn.events()
        async for item in reader:
            if isinstance(item, TextDelta):
                break
        await chat.aclose()
        with pytest.raises(DriverLost):
            async with asyncio.timeout(SOON):
                await anext(reader)


class Behind:
    """A store whose first answer was read just before the step began, and a bus that heard nothing of its beginning."""

    def __init__(self, store: MemoryStore, began: int, frames: list[TextDelta]) -> None:
        self._store, self._began, self._frames = store, began, frames
        self.reads = 0
        self.inbox, self.open_turns = store.inbox, store.open_turns

    async def events(self, session: str, after: int = 0, turn: str | None = None) -> list[Entry]:
        self.reads += 1
        entries = await self._store.events(session, after, turn)
        return entries if self.reads > 1 else [entry for entry in entries if entry.seq < self._began]

    def tail(self, turn: str) -> Any:
        async def frames() -> Any:
            for frame in self._frames:
                yield [frame]
            await asyncio.Event().wait()

        return frames()


async def follow_behind(turn: Turn, behind: Behind, until: str) -> str:
    text = ""
    world: Any = behind
    async with asyncio.timeout(SOON):
        following = follow_turn(world, world, turn.session, TurnReader(turn.id))
        async for item in following:
            text += item.text if isinstance(item, TextDelta) else ""
            if text == until:
                break
        await following.aclose()
    return text


async def test_text_that_comes_before_the_beginning_of_its_step_was_read_is_shown() -> None:
    hanging: Any = [say("one two three"), [ScriptedHang()]]
    store = MemoryStore()
    async with Chat(ScriptedModel(hanging), store=store) as chat:
        turn = await chat.send("please")
        deltas: list[TextDelta] = []
        async for item in turn:
            deltas += [item] if isinstance(item, TextDelta) else []
            if "".join(delta.text for delta in deltas) == "one two three":
                break
        assert len(deltas) > 1
        unknown = [TextDelta(turn.id, 10**6, 0, 0, "x"), TextDelta(turn.id, 10**6, 0, 1, "y")]
        behind = Behind(store, deltas[0].seq, [*deltas[:1], *unknown, *deltas[1:]])
        assert await follow_behind(turn, behind, "one two three") == "one two three"
        assert behind.reads == 3, "the log is read once for each step that is not known"
