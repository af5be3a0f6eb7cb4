"""Several models answer one message: one command, one append of their starts, a turn and a branch for each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everturn import App, Chat
from everturn.core.commands import Send
from everturn.core.events import GateOpened, TurnStarted
from everturn.errors import ConfigError
from everturn.testing import ScriptedHang, ScriptedModel, call, calls, say
from tests.helpers.crash_harness import Process, Story, World, check, entries_in, watch
from tests.helpers.stores import opened
from tests.helpers.waiting import wait_until


def chat_of(*names: str) -> Chat:
    first, *others = [ScriptedModel(say(f"I am {name}."), say("More."), name=name) for name in names]
    app = App(first)
    for model in others:
        app.add_model(model)
    return Chat(first, app=app, session="s")


def starts(log: list[Any]) -> list[TurnStarted]:
    return [entry.event for entry in log if isinstance(entry.event, TurnStarted)]


async def test_every_model_answers_the_same_message_in_a_branch_of_its_own() -> None:
    chat = chat_of("first", "second", "third")
    turn = await chat.send("who are you?", compare_with=["second", "third"], key="k")
    answers = [await each for each in (turn, *turn.compared)]
    assert [answer.text for answer in answers] == ["I am first.", "I am second.", "I am third."]
    log = await chat.app.store.events("s")
    own, *others = starts(log)
    assert own.input is not None
    assert [(start.parent, start.input, start.command) for start in others] == [(own.input.id, None, "k")] * 2
    numbers = [entry.seq for entry in log if isinstance(entry.event, TurnStarted)]
    assert numbers[-1] - numbers[0] <= 3  # nothing but the title is between them: one append
    tree = await chat.tree()
    assert len(tree.versions(tree.children[own.input.id][0])) == 3
    assert (await chat.messages())[-1].by in ("first", "second", "third")


async def test_the_next_message_continues_from_the_answer_that_was_chosen() -> None:
    chat = chat_of("first", "second")
    turn = await chat.send("who are you?", compare_with=["second"])
    await asyncio.gather(turn.result(), turn.compared[0].result())
    chosen = next(message for message in (await chat.tree()).messages.values() if message.by == "second")
    await chat.fork(chosen.id)
    await (await chat.send("and now?"))
    assert [message.text for message in await chat.messages()] == ["who are you?", "I am second.", "and now?", "More."]


async def test_the_same_key_is_the_same_comparison() -> None:
    chat = chat_of("first", "second")
    turns = [await chat.send("hello", compare_with=["second"], key="k") for _ in range(2)]
    assert (turns[1].is_new, turns[1].id) == (False, turns[0].id)
    assert [each.id for each in turns[1].compared] == [each.id for each in turns[0].compared]
    await asyncio.gather(turns[0].result(), turns[0].compared[0].result())
    assert len(starts(await chat.app.store.events("s"))) == 2


async def test_a_comparison_that_waits_for_a_turn_begins_as_a_whole() -> None:
    first = ScriptedModel(say("One."), say("One."), name="first")
    app = App(first)
    app.add_model(ScriptedModel(say("Beside."), say("Beside."), name="second"))
    app.add_model(ScriptedModel([say("Well"), ScriptedHang()], name="hangs"))
    chat = Chat(first, app=app, session="s")
    running = await chat.send("take your time", model="hangs")
    await wait_until(lambda: app.store.open_turns("s"))
    turn = await chat.send("hello", compare_with=["second"])
    [waiting] = await app.store.inbox("s")
    assert isinstance(waiting, Send)
    assert waiting.turns == (turn.id, turn.compared[0].id)
    results = asyncio.gather(turn.result(), turn.compared[0].result())
    await running.cancel()
    assert [result.text for result in await results] == ["One.", "Beside."]


@pytest.mark.parametrize(
    ("others", "problem"),
    [
        (["second", "second"], "answers a message once"),
        (["first"], "answers a message once"),
        (["second", "third", "fourth", "fifth"], "at most 4"),
        ("second", "must be a list of models"),
    ],
)
async def test_what_cannot_be_compared_is_refused_before_anything_is_sent(others: Any, problem: str) -> None:
    chat = chat_of("first", "second", "third", "fourth", "fifth")
    with pytest.raises(ConfigError, match=problem):
        await chat.send("hello", compare_with=others)
    assert not await chat.app.store.sessions()


async def compare(chat: Chat, world: World) -> None:
    chat.app.add_model(ScriptedModel(calls(call("mail", to="bob")), say("Beside."), name="second"))
    turn = await chat.send("please", key="k", compare_with=["second"])
    await asyncio.gather(*(watch(each, resolution={"allow": "once"}) for each in (turn, *turn.compared)))


def one_model(_: World) -> ScriptedModel:
    return ScriptedModel(calls(call("mail", to="ada")), say("Sent."))


STORY = Story("compared", one_model, compare)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def tell(kind: str, folder: Path, lives: int | None = None) -> list[Any]:
    async with opened(kind, folder) as store:
        world = World(store)  # pyright: ignore[reportArgumentType]
        if not await Process(STORY, world, lives).tell():
            assert await Process(STORY, world).tell()
        await check(world)
        return await entries_in(world)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_stopped_anywhere_both_models_answer_once_and_each_is_asked(kind: str, tmp_path: Path) -> None:
    whole = await tell(kind, _made(tmp_path / "whole"))
    first = max(at for at, entry in enumerate(whole) if isinstance(entry.event, TurnStarted)) + 1
    for stop in (0, *range(first, len(whole))):  # the starts are one append, of which no part is ever written alone
        log = await tell(kind, _made(tmp_path / str(stop)), stop)
        assert [start.command for start in starts(log)] == ["k", "k"], f"stopped after {stop}"
        assert sorted(type(entry.event).__name__ for entry in log).count("TurnCompleted") == 2, f"stopped after {stop}"
        gates = [entry.event.gate.id for entry in log if isinstance(entry.event, GateOpened)]
        assert len(gates) == len(set(gates)) == 2, f"stopped after {stop}"
