"""Ways back and beside: versions of messages, another model, two answers side by side, and files as they were."""

from __future__ import annotations

import pytest

from everturn.terminal.tui.branches import BranchesScreen
from everturn.terminal.tui.compare import CompareScreen
from everturn.terminal.tui.picker import PickerScreen
from everturn.terminal.tui.revert import FilesScreen
from tests.helpers.scripted_server.server import Rig
from tests.tui.screen_user import Person, person

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


async def branches(one: Person) -> BranchesScreen:
    await one.press("ctrl+b")
    await one.until(lambda: isinstance(one.app.screen, BranchesScreen) and one.app.screen.chosen(), "the branches")
    assert isinstance(one.app.screen, BranchesScreen)
    return one.app.screen


async def test_a_message_is_said_differently_and_both_versions_are_there(rig: Rig) -> None:
    async with person(rig) as one:
        session = await one.say("first question")
        await one.sees("You said: first question")
        await one.idle()
        await one.press("up")  # in the empty box
        assert one.app.chat_screen.composer.text == "first question"
        one.app.chat_screen.composer.write("other question")
        await one.press("enter")
        await one.sees("You said: other question")
        await one.idle()
        await branches(one)
        await one.reads("version 2 of 2")
        await one.press("home", "enter")
        await one.sees("You said: first question")
        assert rig.stored_text(session) == "You said: first question"
        screen = await branches(one)
        await one.press("home", "c")
        await one.until(lambda: isinstance(one.app.screen, CompareScreen), "both")
        assert "You said: first question" in one.screen
        assert "You said: other question" in one.screen
        assert screen is not one.app.screen


async def test_another_answer_by_another_model(rig: Rig) -> None:
    async with person(rig) as one:
        session = await one.say("who are you")
        await one.idle()
        await branches(one)
        await one.press("m")
        await one.until(lambda: isinstance(one.app.screen, PickerScreen), "the models")
        await one.press("end", "enter")
        await one.until(lambda: one.branch()[-1].by == "rig-other", "the other model")
        await one.idle()
        assert rig.messages(session)[-1]["by"] == "rig-other"
        assert one.app.follower is not None
        assert len(one.app.follower.state.tree.versions(one.branch()[-1].id)) == 2


async def test_a_message_is_deleted_once_that_was_confirmed(rig: Rig) -> None:
    async with person(rig) as one:
        session = await one.say("one")
        await one.idle()
        await one.say("two")
        await one.idle()
        await branches(one)
        await one.press("d")
        await one.press("n")
        assert len(one.branch()) == 4
        await one.press("d")
        await one.confirm()
        await one.until(lambda: len(one.branch()) == 3, "it to be gone")
        assert len(rig.messages(session)) == 3


async def test_files_become_what_they_were(rig: Rig) -> None:
    (rig.files / "a.txt").write_text("a before\n")
    async with person(rig) as one:
        await one.say("files 1")
        for tool in ("write_file", "write_file", "edit_file"):
            await one.allow(tool)
        await one.sees("The files are written.")
        await one.idle()
        assert (rig.files / "a.txt").read_text() == "a 1 and more\n"
        await one.app.action_files()
        await one.until(lambda: isinstance(one.app.screen, FilesScreen), "the steps")
        await one.press("home", "enter")
        await one.confirm()
        await one.until(lambda: not (rig.files / "b.txt").exists(), "the files")
        assert (rig.files / "a.txt").read_text() == "a before\n"
