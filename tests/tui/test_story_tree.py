"""Ways back and beside: versions of messages, another model, two answers side by side, and files as they were."""

from __future__ import annotations

import pytest

from everturn.core.messages import ForkPoint, Message
from everturn.core.parts import Output, StepPart, TextPart, ToolPart
from everturn.terminal.tui.branches import BranchesScreen
from everturn.terminal.tui.compare import CompareScreen
from everturn.terminal.tui.picker import PickerScreen
from everturn.terminal.tui.revert import FilesScreen
from everturn.terminal.tui.steps import StepsScreen, step_rows
from tests.helpers.scripted_server.server import Rig
from tests.tui.screen_user import Person, person

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


async def branches(user: Person) -> BranchesScreen:
    await user.press("ctrl+b")
    await user.until(lambda: isinstance(user.app.screen, BranchesScreen) and user.app.screen.chosen(), "the branches")
    assert isinstance(user.app.screen, BranchesScreen)
    return user.app.screen


async def test_a_message_is_said_differently_and_both_versions_are_there(rig: Rig) -> None:
    async with person(rig) as user:
        session = await user.say("first question")
        await user.sees("You said: first question")
        await user.idle()
        await user.press("up")  # in the empty box
        assert user.app.chat_screen.composer.text == "first question"
        user.app.chat_screen.composer.write("other question")
        await user.press("enter")
        await user.sees("You said: other question")
        await user.idle()
        await branches(user)
        await user.reads("version 2 of 2")
        await user.press("home", "enter")
        await user.sees("You said: first question")
        assert rig.stored_text(session) == "You said: first question"
        screen = await branches(user)
        await user.press("home", "c")
        await user.until(lambda: isinstance(user.app.screen, CompareScreen), "both")
        assert "You said: first question" in user.screen
        assert "You said: other question" in user.screen
        assert screen is not user.app.screen


async def test_another_answer_by_another_model(rig: Rig) -> None:
    async with person(rig) as user:
        session = await user.say("who are you")
        await user.idle()
        await branches(user)
        await user.press("m")
        await user.until(lambda: isinstance(user.app.screen, PickerScreen), "the models")
        await user.press("end", "enter")
        await user.until(lambda: user.branch()[-1].by == "rig-other", "the other model")
        await user.idle()
        assert rig.messages(session)[-1]["by"] == "rig-other"
        assert user.app.follower is not None
        assert len(user.app.follower.state.tree.versions(user.branch()[-1].id)) == 2


async def test_a_conversation_continues_after_a_step_of_an_answer(rig: Rig) -> None:
    async with person(rig) as user:
        session = await user.say("fails")
        await user.sees("It came to this")
        await user.idle()
        answer = user.branch()[-1]
        await branches(user)
        await user.press("home", "f")
        await user.reads("Choose an answer with a finished step.")
        await user.press("end", "f")
        await user.until(lambda: isinstance(user.app.screen, StepsScreen), "the steps")
        assert "1  fail" in user.screen
        await user.press("enter")
        await user.until(lambda: user.branch()[-1].fork is not None, "the fork")
        assert user.branch()[-1].fork == ForkPoint(answer.id, 1)
        await user.say("hello")
        await user.sees("You said: hello")
        await user.idle()
        await branches(user)
        await user.press("home", "down", "f")
        await user.until(lambda: isinstance(user.app.screen, StepsScreen), "the steps")
        await user.press("r")
        await user.until(lambda: len(rig.messages(session)) == 3, "the model continues")
        await user.idle()
        assert "It came to this" in rig.stored_text(session)


def test_a_step_is_named_by_its_calls_or_by_its_text() -> None:
    def done(call: str, name: str) -> ToolPart:
        return ToolPart(call, name, "{}", state="completed", output=Output("x"))

    steps = (
        done("1", "look"),
        done("2", "look"),
        done("3", "run"),
        StepPart(1, "tool_calls"),
        TextPart("So\nit is."),
        StepPart(2, "stop"),
    )
    assert step_rows(Message("a", None, "assistant", steps)) == [(1, "look ×2, run"), (2, "So it is.")]
    assert not step_rows(Message("u", None, "user", (TextPart("a question"),)))


async def test_a_message_is_deleted_once_that_was_confirmed(rig: Rig) -> None:
    async with person(rig) as user:
        session = await user.say("one")
        await user.idle()
        await user.say("two")
        await user.idle()
        await branches(user)
        await user.press("d")
        await user.press("n")
        assert len(user.branch()) == 4
        await user.press("d")
        await user.confirm()
        await user.until(lambda: len(user.branch()) == 3, "it to be gone")
        assert len(rig.messages(session)) == 3


async def test_files_become_what_they_were(rig: Rig) -> None:
    (rig.files / "a.txt").write_text("a before\n")
    async with person(rig) as user:
        await user.say("files 1")
        for tool in ("write_file", "write_file", "edit_file"):
            await user.allow(tool)
        await user.sees("The files are written.")
        await user.idle()
        assert (rig.files / "a.txt").read_text() == "a 1 and more\n"
        await user.app.action_files()
        await user.until(lambda: isinstance(user.app.screen, FilesScreen), "the steps")
        await user.press("home", "enter")
        await user.confirm()
        await user.until(lambda: not (rig.files / "b.txt").exists(), "the files")
        assert (rig.files / "a.txt").read_text() == "a before\n"
