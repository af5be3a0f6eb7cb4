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
    async with person(rig, session, size=(140, 30)) as one:
        await one.sees("[bold]no[/nope]")
        one.app.show_message(HOSTILE, "error")
        await one.pilot.pause(0.2)
        assert is_harmless(one.screen)
        assert "[@click=app.quit]z[/]" in one.screen
        for key in ("ctrl+o", "ctrl+b"):
            await one.press(key)
            await one.pilot.pause(0.3)
            assert is_harmless(one.screen)
            assert "[bold]no[/nope]" in one.screen
            await one.press("escape")


async def test_what_is_in_memory_only_says_so_all_the_time_and_on_leaving(rig: Rig) -> None:
    async with person(rig, size=(140, 30)) as one:
        one.app.is_in_memory = True
        await one.say("parallel")
        await one.idle()
        await one.reads(get_app_texts("en").in_memory)
        listed = one.app.chat_screen.query_one(Sidebar).query_one(OptionList)  # called as it is above the conversation
        await one.until(lambda: listed.options and "parallel" in str(listed.options[0].prompt), "the title")
        await one.press("ctrl+c")
        await one.reads(get_app_texts("en").press_quit)
        assert "quit the app" not in one.screen
        one.app.language = "zh"
        await one.reads(get_app_texts("zh").in_memory)
        await one.app.action_quit()
        assert one.app.exit_messages == [get_app_texts("zh").gone]


async def test_it_is_drawn_in_any_size_and_says_where_it_cannot_be(rig: Rig) -> None:
    async with person(rig, size=(38, 10)) as one:
        await one.reads("too small")
        await one.pilot.resize_terminal(80, 24)
        await one.reads("Enter sends")
        await one.say("parallel")
        await one.idle()
        for width, height in ((80, 24), (40, 12), (160, 50)):
            await one.pilot.resize_terminal(width, height)
            side = one.app.chat_screen.query_one(Sidebar)
            await one.until(lambda wide=width, side=side: side.display is (wide >= 120), "the side")
            if side.display:
                await one.until(lambda side=side: side.query_one(OptionList).option_count, "the sessions")
            assert len(one.screen.splitlines()) <= height
            assert "Ctrl+Q Quit" in one.screen
            for action in ("help", "sessions", "pick", "branches", "usage", "settings", "files"):
                await one.app.run_action(action)
                await one.until(lambda: one.app.screen is not one.app.chat_screen, action)
                await one.pilot.pause()
                await one.press("escape")
                await one.closed()


async def test_a_theme_and_a_language_are_taken_and_kept(rig: Rig) -> None:
    async with person(rig) as one:
        await one.app.action_settings()
        await one.until(lambda: isinstance(one.app.screen, SettingsScreen), "the settings")
        await one.pilot.pause()
        listed = one.app.screen.query_one(OptionList)
        listed.highlighted = listed.get_option_index(f"theme:{CONTRAST}")
        await one.press("enter")
        await one.until(lambda: one.app.theme == CONTRAST, "the theme")
        await one.app.like("language", "zh")
        await one.reads("回车发送")
    assert (load_user_settings().theme, load_user_settings().language) == (CONTRAST, "zh")
    async with person(rig) as again:
        assert (again.app.theme, again.app.language) == (CONTRAST, "zh")
    async with person(rig, theme=LIGHT, language="en") as said:
        assert (said.app.theme, said.app.language) == (LIGHT, "en")


async def test_all_keys_are_in_the_help(rig: Rig) -> None:
    async with person(rig, size=(100, 90)) as one:
        await one.press("f1")
        await one.until(lambda: isinstance(one.app.screen, HelpScreen), "the help")
        for words in ("Ctrl+N", "Ctrl+O", "Ctrl+G", "Ctrl+B", "Ctrl+L", "Ctrl+P", "Ctrl+Q", "Ctrl+T", "/export", "Esc"):
            await one.reads(words)
        assert "key_" not in one.screen  # a word that is missing


async def test_another_model_is_chosen_and_answers(rig: Rig) -> None:
    async with person(rig) as one:
        await one.press("ctrl+l")
        await one.until(lambda: isinstance(one.app.screen, PickerScreen), "the models")
        await one.reads("32,000 tokens of context")
        await one.press("escape")
        one.app.chat_screen.composer.write("/model nosuch")
        await one.press("enter")
        await one.reads("There is no model nosuch")
        one.app.chat_screen.composer.write("/model rig-other")
        await one.press("enter")
        await one.until(lambda: one.app.model == "rig-other", "the model")
        await one.say("who are you")
        await one.idle()
        assert one.branch()[-1].by == "rig-other"


async def test_a_file_is_attached_and_goes_along(rig: Rig, tmp_path: Path) -> None:
    file = tmp_path / "notes of mine.txt"
    file.write_text("hello from a file")
    async with person(rig) as one:
        one.app.chat_screen.composer.write(f"/attach {file}")
        await one.press("enter")
        await one.reads("1 file attached: notes of mine.txt")
        await one.say("what is in it")
        await one.idle()
        assert not one.app.attached
        assert [part.name for part in one.said()[0].parts if isinstance(part, FilePart)] == ["notes of mine.txt"]
        one.app.chat_screen.composer.write("/attach /nowhere/x")
        await one.press("enter")
        await one.reads("there is no file /nowhere/x")


async def test_a_draft_stays_with_its_session(rig: Rig) -> None:
    async with person(rig) as one:
        session = await one.say("hello")
        await one.idle()
        await one.type("half a thought")
        await one.press("ctrl+n")
        await one.until(lambda: one.app.follower is None, "a new session")
        assert one.app.chat_screen.composer.text == ""
        await one.app.open_session(session)
        assert one.app.chat_screen.composer.text == "half a thought"


async def test_a_message_that_is_refused_stays_in_the_box(rig: Rig) -> None:
    async with person(rig) as one:
        await one.say("hello")
        await one.idle()
        one.app.model = "nosuch"
        one.app.chat_screen.composer.write("do not lose this")
        await one.press("enter")
        await one.until(lambda: one.app.chat_screen.composer.text == "do not lose this", "the text")
        assert len(one.said()) == 1
