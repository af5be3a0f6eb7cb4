"""A process that dies anywhere while a message is about to join a turn: it is there once, and nothing else is different."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everturn import Chat, TurnOptions
from everturn.core.events import MessageAdded, StepRestarted, TurnStarted, TurnSuspended
from everturn.events import StepStarted
from everturn.stores.sql.store import SqlStore
from everturn.testing import ScriptedModel, call, calls, say
from tests.helpers import call_records
from tests.helpers.crash_harness import Process, Story, World, check, entries_in, plain
from tests.helpers.crash_scenarios import model
from tests.helpers.stores import CRASHES, opened
from tests.helpers.tools import pay_with_approval
from tests.turn.killed_steering_process import SESSION

ROOT = Path(__file__).parent.parent.parent


def steered(*words: str, at: Callable[[Any], bool], cancel: bool = False) -> Any:
    """The person sends a message and, when they see something, these to the same turn; then they answer its gates."""

    async def play(chat: Chat, world: World) -> None:
        first = await chat.send("one", key="1")
        sent: list[Any] = []

        async def speak() -> None:
            async for event in first:
                if at(event):
                    sent[:] = [await chat.send(word, steer=first, key=word) for word in words]
                    if cancel:
                        await first.cancel(key="cancel")
                if isinstance(event, TurnSuspended) and not cancel:
                    for gate in await chat.gates():
                        await first.answer(gate, allow="once")

        await speak()
        for turn in sent:
            await turn

    return play


def is_parked(event: Any) -> bool:
    return isinstance(event, TurnSuspended)


def is_asked(event: Any) -> bool:
    return isinstance(event, StepStarted)


SENT = calls(call("mail", to="ada"), call("look", path="a"))
STORIES = [
    Story("joined", model(SENT, say("Sent, and noted.")), steered("two", "three", at=is_parked)),
    Story("too late", model(say("One."), say("Two.")), steered("two", at=is_asked), options=TurnOptions(max_steps=1)),
    Story("cancelled", model(SENT, say("Two.")), steered("two", at=is_parked, cancel=True)),
]
names = [story.name for story in STORIES]


async def tell(story: Story, kind: str, folder: Path, lives: int | None = None, before_next: bool = False) -> World:
    async with opened(kind, folder) as store:
        world = World(store)  # pyright: ignore[reportArgumentType]
        if not await Process(story, world, lives, before_next).tell():
            assert await Process(story, world).tell()
        await check(world)
        world.log = await entries_in(world)  # pyright: ignore[reportAttributeAccessIssue]
        return world


def log_in(world: World) -> list[Any]:
    return world.log  # pyright: ignore[reportAttributeAccessIssue]


def taken(world: World) -> list[tuple[str, str]]:
    """What was sent, and by which event it was taken."""
    events = [entry.event for entry in log_in(world)]
    return [(e.command, type(e).__name__) for e in events if isinstance(e, TurnStarted | MessageAdded)]


EXPECTED = {
    "joined": [("1", "TurnStarted"), ("two", "MessageAdded"), ("three", "MessageAdded")],
    "too late": [("1", "TurnStarted"), ("two", "TurnStarted")],
    "cancelled": [("1", "TurnStarted"), ("two", "TurnStarted")],
}


@pytest.mark.parametrize(("kind", "before_next"), CRASHES)
@pytest.mark.parametrize("story", STORIES, ids=names)
async def test_stopped_anywhere_it_is_there_once(story: Story, before_next: bool, kind: str, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole = await tell(story, kind, tmp_path / "whole")
    assert taken(whole) == EXPECTED[story.name]
    for stop in range(len(log_in(whole))):
        folder = tmp_path / str(stop)
        folder.mkdir()
        world = await tell(story, kind, folder, stop, before_next)
        assert taken(world) == EXPECTED[story.name], f"stopped after {stop}"
        if not before_next and story.name != "cancelled":
            left = [entry for entry in log_in(world) if not isinstance(entry.event, StepRestarted)]
            assert [type(entry.event) for entry in left] == [type(entry.event) for entry in log_in(whole)]
            assert plain(left)[-1] == plain(log_in(whole))[-1]


async def test_the_process_is_killed_while_it_waits_and_another_lets_it_join(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    command = [sys.executable, "-m", "tests.turn.killed_steering_process", str(path)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    turn = (await process.stdout.readline()).decode().strip()
    process.kill()
    await process.communicate()
    assert turn
    store = SqlStore.sqlite(path)
    script = ScriptedModel(calls(call("pay", amount=1)), say("Paid, with thanks."))
    async with Chat(script, tools=[pay_with_approval], store=store, session=SESSION) as chat:
        again = await chat.send("and say thanks", steer=True, key="k")
        assert (again.id, again.is_new) == (turn, False)
        [gate] = await chat.gates()
        await chat.answer(gate, allow="once")
        result = await again
        assert (result.turn, result.text) == (turn, "Paid, with thanks.")
        log = [entry.event for entry in await store.events(SESSION)]
    assert [event.command for event in log if isinstance(event, MessageAdded)] == ["k"]
    assert [event.turn for event in log if isinstance(event, TurnStarted)] == [turn]
    call_records.forget()  # what another process wrote, they have not seen
    await store.aclose()
