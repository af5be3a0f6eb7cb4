"""People rate answers: the log has it, no model reads it, and each rating is made once whatever dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from everturn import Chat
from everturn.chat.ratings import read_ratings
from everturn.core.events import AnswerRated, StepRestarted
from everturn.core.ratings import MAX_REASON
from everturn.errors import ConfigError, KeyConflict, UnknownMessage
from everturn.stores.export import export_session, import_session
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from tests.helpers.crash_harness import Process, Story, World, check, entries_in, plain
from tests.helpers.crash_scenarios import model
from tests.helpers.stores import CRASHES, opened


async def test_the_last_rating_of_each_person_counts_and_a_key_makes_one() -> None:
    async with Chat(ScriptedModel(say("Paris."), say("Rome."))) as chat:
        await (await chat.send("France?"))
        question, answer = await chat.messages()
        await chat.rate(answer, "down", reason=" too short ", by="ada", key="k")
        await chat.rate(answer, "down", reason=" too short ", by="ada", key="k")  # the same command
        with pytest.raises(KeyConflict):
            await chat.rate(answer, "up", by="ada", key="k")
        await chat.rate(answer, "up", by="bob")
        assert [
            (rated.by, rated.rating, rated.reason) for rated in await read_ratings(chat.app.store, chat.session)
        ] == [
            ("ada", "down", "too short"),
            ("bob", "up", ""),
        ]
        await chat.rate(answer, "", reason="left out", by="ada")
        await chat.rate(answer, "down", by="bob")
        assert [(rated.by, rated.rating) for rated in await read_ratings(chat.app.store, chat.session)] == [
            ("bob", "down")
        ]
        with pytest.raises(ConfigError, match="only answers"):
            await chat.rate(question, "up")
        with pytest.raises(UnknownMessage):
            await chat.rate("nothing", "up")
        with pytest.raises(ConfigError, match="'up', 'down'"):
            await chat.rate(answer, "great")  # pyright: ignore[reportArgumentType]
        with pytest.raises(ConfigError, match=str(MAX_REASON)):
            await chat.rate(answer, "up", reason="x" * (MAX_REASON + 1))


async def test_no_model_reads_a_rating_and_it_does_not_move_the_session() -> None:
    requests: list[str] = []

    def answer(request: Any) -> Any:
        requests.append(repr(request))
        return say("Fine.")

    async with Chat(ScriptedModel(answer, answer)) as chat:
        await (await chat.send("Hello"))
        before = await chat.app.store.info(chat.session)
        await chat.rate((await chat.messages())[-1], "down", reason="canary-reason")
        after = await chat.app.store.info(chat.session)
        assert (after.touched, after.leaf) == (before.touched, before.leaf)
        await (await chat.send("Again"))
    assert len(requests) == 2
    assert "canary-reason" not in "".join(requests)


async def test_an_exported_session_has_its_ratings_and_an_imported_one_says_that_they_are_of_elsewhere(
    tmp_path: Path,
) -> None:
    async with Chat(ScriptedModel(say("Hi."))) as chat:
        await (await chat.send("Hello"))
        await chat.rate((await chat.messages())[-1], "up", reason="kind", by="ada")
        await export_session(chat.app.store, chat.session, tmp_path / "s.zip")
    store = MemoryStore()
    name = await import_session(store, tmp_path / "s.zip", by="eve")
    [rated] = await read_ratings(store, name)
    assert (rated.rating, rated.reason, rated.by) == ("up", "kind", "import:ada")


# Crashes ---------------------------------------------------------------------------------------------------------------


async def rate(chat: Chat, world: World) -> None:
    """The person rates the first answer while the second turn waits for them, and changes their mind at the end."""
    await (await chat.send("one", key="1"))
    first = (await chat.messages())[1]
    turn = await chat.send("two", key="2")
    async for event in turn:
        if type(event).__name__ == "TurnSuspended":
            await chat.rate(first, "down", reason="short", by="ada", key="down")
            for gate in await chat.gates():
                await turn.answer(gate, allow="once")
    await chat.rate(first, "up", by="ada", key="up")


STORY = Story("rated", model(say("One."), calls(call("mail", to="ada")), say("Sent.")), rate)


def _make(folder: Path) -> None:
    folder.mkdir()


async def tell(kind: str, folder: Path, lives: int | None = None, before_next: bool = False) -> list[Any]:
    _make(folder)
    async with opened(kind, folder) as store:
        world = World(store)  # pyright: ignore[reportArgumentType]
        if not await Process(STORY, world, lives, before_next).tell():
            assert await Process(STORY, world).tell()
        await check(world)
        return await entries_in(world)


def ratings(log: list[Any]) -> list[tuple[str, str]]:
    return [(entry.event.command, entry.event.rating) for entry in log if isinstance(entry.event, AnswerRated)]


@pytest.mark.parametrize(("kind", "before_next"), CRASHES)
async def test_stopped_anywhere_each_rating_is_made_once(before_next: bool, kind: str, tmp_path: Path) -> None:
    whole = await tell(kind, tmp_path / "whole")
    assert ratings(whole) == [("down", "down"), ("up", "up")]
    for stop in range(len(whole)):
        log = await tell(kind, tmp_path / str(stop), stop, before_next)
        assert ratings(log) == ratings(whole), f"stopped after {stop}"
        if not before_next:
            assert plain([entry for entry in log if not isinstance(entry.event, StepRestarted)])[-1] == plain(whole)[-1]
