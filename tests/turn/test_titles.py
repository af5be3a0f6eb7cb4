"""A session has its title from its first turn's first event, in every store and wherever it is copied to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from everturn import Chat, Turn, tool
from everturn.core.events import TitleSet, TurnStarted
from everturn.core.gates import Gate
from everturn.events import GateOpened
from everturn.stores.export import export_session, import_session
from everturn.stores.sql.store import SqlStore
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say

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
    made: list[Any] = []

    def make() -> Any:
        made.append(MemoryStore() if request.param == "memory" else SqlStore.sqlite(tmp_path / "s.db"))
        return made[-1]

    yield make
    for one in made:
        await one.aclose()


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
