"""Search of earlier messages, and keys that are typed faster than a screen opens."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events
from textual.app import ComposeResult
from textual.command import CommandPalette
from textual.screen import ModalScreen
from textual.widgets import Input

from everturn.terminal.tui.history_search import HistorySearchScreen
from tests.helpers.folder_model import FolderModel
from tests.tui.test_folder import everturn, home, model, project

__all__ = ["home", "model", "project"]  # fixtures


async def test_an_earlier_message_is_found_and_put_into_the_input(
    model: FolderModel, home: Path, project: Path
) -> None:
    model.config(home)
    model.says("One.", "Two.")
    async with everturn() as person:
        await person.pilot.press("ctrl+r")
        await person.is_told("You have not sent a message from this machine yet.")
        await person.says("fix the price")
        await person.sees("One.")
        await person.says("run the tests")
        await person.sees("Two.")
    async with everturn() as person:  # another session, another run
        await person.pilot.press("ctrl+r")
        await person.until(lambda: isinstance(person.app.screen, HistorySearchScreen))
        await person.sees("run the tests")
        await person.pilot.press(*"price")
        await person.until(lambda: "run the tests" not in person.screen)
        await person.pilot.press("enter")
        await person.until(lambda: person.app.chat_screen.composer.text == "fix the price")


class LateScreen(ModalScreen[None]):
    """A screen whose input has the focus only when somebody gives it."""

    AUTO_FOCUS = ""

    def compose(self) -> ComposeResult:
        yield Input()


@pytest.mark.parametrize(("is_buffered", "typed"), [(True, "fix"), (False, "")])
async def test_keys_are_kept_until_a_new_screen_has_the_focus(
    is_buffered: bool, typed: str, model: FolderModel, home: Path, project: Path
) -> None:
    model.config(home)
    async with everturn() as person:
        app, screen = person.app, LateScreen()
        if is_buffered:
            app.buffer_keys_for(screen)
        await app.push_screen(screen)
        for key in "fix":
            app.post_message(events.Key(key, key))
        await person.pilot.pause()
        assert screen.query_one(Input).value == ""
        screen.query_one(Input).focus()
        await person.until(lambda: app._buffered_keys is None)
        await person.pilot.pause()
        assert screen.query_one(Input).value == typed
        app.pop_screen()
        await person.pilot.press("h", "i")
        await person.until(lambda: app.chat_screen.composer.text == "hi")


async def test_the_palette_takes_what_is_typed_right_after_its_key(
    model: FolderModel, home: Path, project: Path
) -> None:
    model.config(home)
    async with everturn() as person:
        for key in ("ctrl+p", *"usage"):
            person.app.post_message(events.Key(key, key if len(key) == 1 else None))

        def typed() -> str:
            screen = person.app.screen
            return screen.query_one(Input).value if isinstance(screen, CommandPalette) else ""

        await person.until(lambda: typed() == "usage")
        assert person.app.chat_screen.composer.text == ""
