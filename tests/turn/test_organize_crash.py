"""A process that dies anywhere while a session is renamed, pinned, archived and labelled: each change is made once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from everturn import Chat
from everturn.core.events import SessionUpdated, StepRestarted
from everturn.testing import call, calls, say
from tests.helpers.crash_harness import Process, Story, World, check, entries_in, plain
from tests.helpers.crash_scenarios import model
from tests.helpers.stores import CRASHES, opened


async def organize(chat: Chat, world: World) -> None:
    """The person renames the session while a turn waits for them, and organizes it after its end."""
    turn = await chat.send("one", key="1")
    async for event in turn:
        if type(event).__name__ == "TurnSuspended":
            await chat.update(title="Mine", by="ada", key="rename")
            for gate in await chat.gates():
                await turn.answer(gate, allow="once")
    await chat.update(pinned=True, labels=["work"], by="ada", key="pin")
    await chat.update(archived=True, by="ada", key="archive")


STORY = Story("organized", model(calls(call("mail", to="ada")), say("Sent.")), organize)


async def tell(kind: str, folder: Path, lives: int | None = None, before_next: bool = False) -> tuple[list[Any], Any]:
    async with opened(kind, folder) as store:
        world = World(store)  # pyright: ignore[reportArgumentType]
        if not await Process(STORY, world, lives, before_next).tell():
            assert await Process(STORY, world).tell()
        await check(world)
        [info] = await store.sessions()
        return await entries_in(world), (info.title, info.is_renamed, info.pinned, info.archived, info.labels)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def updates(log: list[Any]) -> list[str]:
    return [entry.event.command for entry in log if isinstance(entry.event, SessionUpdated)]


@pytest.mark.parametrize(("kind", "before_next"), CRASHES)
async def test_stopped_anywhere_each_change_is_made_once(before_next: bool, kind: str, tmp_path: Path) -> None:
    whole, listed = await tell(kind, _made(tmp_path / "whole"))
    assert listed == ("Mine", True, True, True, ("work",))
    assert updates(whole) == ["rename", "pin", "archive"]
    for stop in range(len(whole)):
        log, again = await tell(kind, _made(tmp_path / str(stop)), stop, before_next)
        assert (updates(log), again) == (updates(whole), listed), f"stopped after {stop}"
        if not before_next:
            left = [entry for entry in log if not isinstance(entry.event, StepRestarted)]
            assert plain(left)[-1] == plain(whole)[-1]
