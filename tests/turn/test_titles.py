"""A session has its title from its first turn's first event, in every store and wherever it is copied to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from everturn import Chat, Turn, tool
from everturn.core.chunks import FinishChunk, UsageChunk
from everturn.core.events import TitleSet, TurnStarted
from everturn.core.gates import Gate
from everturn.core.parts import Usage
from everturn.core.requests import ModelRequest
from everturn.core.titles import TITLE_LENGTH, clean_title
from everturn.errors import ModelError
from everturn.events import GateOpened
from everturn.replay.compare import normalize_recording
from everturn.replay.recording import Recording
from everturn.running.drive_setup import TurnSettings
from everturn.stores.export import export_session, import_session
from everturn.stores.sql.store import SqlStore
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from tests.helpers.sqlite_files import empty_database

FIRST = "Please book a table for four at the harbour restaurant on Friday evening"
TITLE = "Please book a table for four at the harbour restaurant on…"


@tool(approval="always")
def book() -> str:
    """Book it."""
    return "booked"


async def gate_of(turn: Turn) -> Gate:
    """What it asks first."""
    async for event in turn:
        if isinstance(event, GateOpened):
            return event.gate
    raise AssertionError("it asks nothing")


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Callable[[], Any]]:
    stores: list[Any] = []

    def make() -> Any:
        stores.append(
            MemoryStore() if request.param == "memory" else SqlStore.sqlite(empty_database(tmp_path / "s.db"))
        )
        return stores[-1]

    yield make
    for opened_store in stores:
        await opened_store.aclose()


async def test_a_session_that_waits_for_a_person_has_its_title(store: Callable[[], Any]) -> None:
    async with Chat(ScriptedModel(calls(call("book")), say("Done."), say("Yes.")), tools=[book], store=store()) as chat:
        turn = await chat.send(FIRST)
        gate = await gate_of(turn)
        assert (await chat.app.store.info(chat.session)).title == TITLE
        [listed] = await chat.app.store.session_page("local")
        assert listed.title == TITLE
        await turn.answer(gate, allow="once")
        await turn
        await (await chat.send("and something else"))
        assert (await chat.app.store.info(chat.session)).title == TITLE


async def test_the_title_is_written_with_the_first_turn_and_only_then(store: Callable[[], Any]) -> None:
    async with Chat(ScriptedModel(*[say("Hi.")] * 3), store=store()) as chat:
        await (await chat.send(" "))  # it says nothing, and gives no title
        await (await chat.send(FIRST))
        await (await chat.send("something else"))
        events = [entry.event for entry in await chat.app.store.events(chat.session)]
    [title] = [event for event in events if isinstance(event, TitleSet)]
    begun = events[events.index(title) - 1]
    assert isinstance(begun, TurnStarted)
    assert (title.title, title.turn, title.at) == (TITLE, begun.turn, begun.at)


async def test_a_branch_and_a_copy_are_called_as_the_session_is(tmp_path: Path) -> None:
    answer = lambda request: calls(call("book")) if "branch" in str(request.messages) else say("Hi.")  # noqa: E731
    async with Chat(ScriptedModel(answer), tools=[book]) as chat:
        await (await chat.send(FIRST))
        await chat.fork(None)
        turn = await chat.send("a branch of its own")
        await gate_of(turn)
        assert (await chat.app.store.info(chat.session)).title == TITLE
        await export_session(chat.app.store, chat.session, tmp_path / "s.zip")
        other = MemoryStore()
        copy = await import_session(other, tmp_path / "s.zip")
        assert (await other.info(copy)).title == TITLE
        await turn.cancel()


async def test_a_copy_of_a_session_in_its_first_turn_has_its_title(tmp_path: Path) -> None:
    async with Chat(ScriptedModel(calls(call("book"))), tools=[book]) as chat:
        turn = await chat.send(FIRST)
        await gate_of(turn)
        await export_session(chat.app.store, chat.session, tmp_path / "s.zip")
        other = MemoryStore()
        copy = await import_session(other, tmp_path / "s.zip")
        assert (await other.info(copy)).title == TITLE
        await turn.cancel()


def _down(request: ModelRequest) -> Any:
    raise ModelError("it is down", kind="model")


class TestTitlesBySmallModel:
    """A model writes the title, if one is configured."""

    @staticmethod
    def chat(store: Any, small: ScriptedModel, *answers: Any) -> Chat:
        main = ScriptedModel(*(answers or (say("Done."), say("Again."))), name="main")
        chat = Chat(main, store=store, settings=TurnSettings(title_model="small"))
        chat.app.add_model(small)
        return chat

    async def test_the_model_writes_the_title_of_the_first_turn_once(self, store: Callable[[], Any]) -> None:
        small = ScriptedModel(
            [*say("“Table for four.”\nmore"), [UsageChunk(Usage(40, 7)), FinishChunk("stop")]], name="small"
        )
        async with self.chat(store(), small) as chat:
            turn = await chat.send(FIRST)
            result = await turn
            await (await chat.send(FIRST + " again"))
            app_store = chat.app.store
            assert (await app_store.info(chat.session)).title == "Table for four"
            titles = [
                event.event for event in await app_store.events(chat.session) if isinstance(event.event, TitleSet)
            ]
            assert [(title.title, title.model, title.usage.input) for title in titles] == [
                (TITLE, "", 0),
                ("Table for four", "small", 40),
            ]
            [request] = small.requests
            assert "harbour" in str(request.messages)
            assert "Done." not in str(request.messages)
            spent = await app_store.spent(session=chat.session)
            assert spent.usage.input >= 40
            assert result.usage.input >= 40

    @pytest.mark.parametrize("answer", [_down, say(" \n "), [*say("A title"), [FinishChunk("length")]]])
    async def test_a_failure_keeps_the_cut_message(self, store: Callable[[], Any], answer: Any) -> None:
        async with self.chat(store(), ScriptedModel(answer, name="small")) as chat:
            assert (await (await chat.send(FIRST))).status == "completed"
            assert (await chat.app.store.info(chat.session)).title == TITLE

    async def test_a_short_message_is_its_own_title(self, store: Callable[[], Any]) -> None:
        small = ScriptedModel(name="small")
        async with self.chat(store(), small) as chat:
            await (await chat.send("Book a table"))
            assert (await chat.app.store.info(chat.session)).title == "Book a table"
        assert not small.requests

    async def test_the_title_of_a_person_stays(self, store: Callable[[], Any]) -> None:
        small = ScriptedModel(say("Table for four"), name="small")
        async with Chat(
            ScriptedModel(calls(call("book")), say("Done."), name="main"),
            tools=[book],
            store=store(),
            settings=TurnSettings(title_model="small"),
        ) as chat:
            chat.app.add_model(small)
            turn = await chat.send(FIRST)
            gate = await gate_of(turn)
            await chat.update(title="Friday")
            await turn.answer(gate, allow="once")
            await turn
            assert (await chat.app.store.info(chat.session)).title == "Friday"

    async def test_a_replay_does_not_miss_the_title_of_a_model(self) -> None:
        recordings: list[bytes] = []
        for settings in (TurnSettings(), TurnSettings(title_model="small")):
            async with Chat(ScriptedModel(say("Done.")), store=MemoryStore(), settings=settings) as chat:
                chat.app.add_model(ScriptedModel(say("Table for four"), name="small"))
                await (await chat.send(FIRST))
                recordings.append(normalize_recording(await Recording.from_log(chat.app.store, chat.session)))
        assert recordings[0] == recordings[1]


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("", ""),
        ("\n\n", ""),
        ('"Lunch."', "Lunch"),
        ("**Lunch**\nbecause", "Lunch"),
        ("\u202eLunch\x1b", "Lunch"),
        ("x " * 90, None),
    ],
)
def test_an_answer_becomes_a_title(answer: str, title: str | None) -> None:
    cleaned = clean_title(answer)
    assert len(cleaned) <= TITLE_LENGTH
    assert title is None or cleaned == title
