"""The app around a conversation: what is drawn where, in any size and theme, and what strangers' words can do to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.widgets import OptionList

from everturn.core.parts import FilePart
from everturn.terminal.tui.help import HelpScreen
from everturn.terminal.tui.picker import PickerScreen
from everturn.terminal.tui.settings import SettingsScreen, load_user_settings
from everturn.terminal.tui.sidebar import Sidebar
from everturn.terminal.tui.texts.app import get_app_texts
from everturn.terminal.tui.themes import CONTRAST, LIGHT
from tests.helpers.scripted_server.server import Rig
from tests.tui.screen_user import person

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]
HOSTILE = "[bold]no[/nope] \x1b[2J\x1b]8;;https://x\x07y \u202egnp [@click=app.quit]z[/]"


def is_harmless(text: str) -> bool:
    return re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text) is None


async def test_what_an_unknown_client_says_is_only_text(rig: Rig) -> None:
    session = rig.say(f"echo:{HOSTILE}")["session"]
    rig.wait_idle(session, 60)
    async with person(rig, session, size=(140, 30)) as user:
        await user.sees("[bold]no[/nope]")
        user.app.show_message(HOSTILE, "error")
        await user.pilot.pause(0.2)
        assert is_harmless(user.screen)
        assert "[@click=app.quit]z[/]" in user.screen
        for key in ("ctrl+o", "ctrl+b"):
            await user.press(key)
            await user.pilot.pause(0.3)
            assert is_harmless(user.screen)
            assert "[bold]no[/nope]" in user.screen
            await user.press("escape")


async def test_what_is_in_memory_only_says_so_all_the_time_and_on_leaving(rig: Rig) -> None:
    async with person(rig, size=(140, 30)) as user:
        user.app.is_in_memory = True
        await user.say("parallel")
        await user.idle()
        await user.reads(get_app_texts("en").in_memory)
        listed = user.app.chat_screen.query_one(Sidebar).query_one(OptionList)  # called as it is above the conversation
        await user.until(lambda: listed.options and "parallel" in str(listed.options[0].prompt), "the title")
        await user.press("ctrl+c")
        await user.reads(get_app_texts("en").press_quit)
        assert "quit the app" not in user.screen
        user.app.language = "zh"
        await user.reads(get_app_texts("zh").in_memory)
        await user.app.action_quit()
        assert user.app.exit_messages == [get_app_texts("zh").gone]


async def test_it_is_drawn_in_any_size_and_says_where_it_cannot_be(rig: Rig) -> None:
    async with person(rig, size=(38, 10)) as user:
        await user.reads("too small")
        await user.pilot.resize_terminal(80, 24)
        await user.reads("Enter sends")
        await user.say("parallel")
        await user.idle()
        for width, height in ((80, 24), (40, 12), (160, 50)):
            await user.pilot.resize_terminal(width, height)
            side = user.app.chat_screen.query_one(Sidebar)
            await user.until(lambda wide=width, side=side: side.display is (wide >= 120), "the side")
            if side.display:
                await user.until(lambda side=side: side.query_one(OptionList).option_count, "the sessions")
            assert len(user.screen.splitlines()) <= height
            assert "Ctrl+Q Quit" in user.screen
            for action in ("help", "sessions", "pick", "branches", "usage", "settings", "files"):
                await user.app.run_action(action)
                await user.until(lambda: user.app.screen is not user.app.chat_screen, action)
                await user.pilot.pause()
                await user.press("escape")
                await user.closed()


async def test_a_theme_and_a_language_are_taken_and_kept(rig: Rig) -> None:
    async with person(rig) as user:
        await user.app.action_settings()
        await user.until(lambda: isinstance(user.app.screen, SettingsScreen), "the settings")
        await user.pilot.pause()
        listed = user.app.screen.query_one(OptionList)
        listed.highlighted = listed.get_option_index(f"theme:{CONTRAST}")
        await user.press("enter")
        await user.until(lambda: user.app.theme == CONTRAST, "the theme")
        await user.app.like("language", "zh")
        await user.reads("回车发送")
    assert (load_user_settings().theme, load_user_settings().language) == (CONTRAST, "zh")
    async with person(rig) as again:
        assert (again.app.theme, again.app.language) == (CONTRAST, "zh")
    async with person(rig, theme=LIGHT, language="en") as overriding_user:
        assert (overriding_user.app.theme, overriding_user.app.language) == (LIGHT, "en")


async def test_all_keys_are_in_the_help(rig: Rig) -> None:
    async with person(rig, size=(100, 90)) as user:
        await user.press("f1")
        await user.until(lambda: isinstance(user.app.screen, HelpScreen), "the help")
        for words in ("Ctrl+N", "Ctrl+O", "Ctrl+G", "Ctrl+B", "Ctrl+L", "Ctrl+P", "Ctrl+Q", "Ctrl+T", "/export", "Esc"):
            await user.reads(words)
        assert "key_" not in user.screen  # a word that is missing


async def test_another_model_is_chosen_and_answers(rig: Rig) -> None:
    async with person(rig) as user:
        await user.press("ctrl+l")
        await user.until(lambda: isinstance(user.app.screen, PickerScreen), "the models")
        await user.reads("32,000 tokens of context")
        await user.press("escape")
        user.app.chat_screen.composer.write("/model nosuch")
        await user.press("enter")
        await user.reads("There is no model nosuch")
        user.app.chat_screen.composer.write("/model rig-other")
        await user.press("enter")
        await user.until(lambda: user.app.model == "rig-other", "the model")
        await user.say("who are you")
        await user.idle()
        assert user.branch()[-1].by == "rig-other"


async def test_a_file_is_attached_and_goes_along(rig: Rig, tmp_path: Path) -> None:
    file = tmp_path / "notes of mine.txt"
    file.write_text("hello from a file")
    async with person(rig) as user:
        user.app.chat_screen.composer.write(f"/attach {file}")
        await user.press("enter")
        await user.reads("1 file attached: notes of mine.txt")
        await user.say("what is in it")
        await user.idle()
        assert not user.app.attached
        assert [part.name for part in user.said()[0].parts if isinstance(part, FilePart)] == ["notes of mine.txt"]
        user.app.chat_screen.composer.write("/attach /nowhere/x")
        await user.press("enter")
        await user.reads("there is no file /nowhere/x")


async def test_a_draft_stays_with_its_session(rig: Rig) -> None:
    async with person(rig) as user:
        session = await user.say("hello")
        await user.idle()
        await user.type("half a thought")
        await user.press("ctrl+n")
        await user.until(lambda: user.app.follower is None, "a new session")
        assert user.app.chat_screen.composer.text == ""
        await user.app.open_session(session)
        assert user.app.chat_screen.composer.text == "half a thought"


async def test_a_message_that_is_refused_stays_in_the_box(rig: Rig) -> None:
    async with person(rig) as user:
        await user.say("hello")
        await user.idle()
        user.app.model = "nosuch"
        user.app.chat_screen.composer.write("do not lose this")
        await user.press("enter")
        await user.until(lambda: user.app.chat_screen.composer.text == "do not lose this", "the text")
        assert len(user.said()) == 1
