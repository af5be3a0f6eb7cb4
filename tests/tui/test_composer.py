"""The box where one writes, alone on a screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual import events, on
from textual.app import App, ComposeResult
from textual.widgets import OptionList

from everturn.terminal.tui.composer import Composer, ComposerInput
from everturn.terminal.tui.key_buffer import keys_from_text

COMMANDS = {"/help": "all keys", "/model": "NAME  another model", "/new": "begin anew"}


class Alone(App[None]):
    """As much of an app as the box needs."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Any] = []

    def compose(self) -> ComposeResult:
        yield Composer(COMMANDS, lambda word: ["big", "small"] if word == "/model" else [])

    def on_mount(self) -> None:
        self.query_one(ComposerInput).focus()

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    @on(ComposerInput.Submitted)
    def _submitted(self, event: ComposerInput.Submitted) -> None:
        self.heard.append((event.text, event.steers))

    @on(ComposerInput.Dropped)
    def _dropped(self, event: ComposerInput.Dropped) -> None:
        self.heard.append(event.paths)

    @on(ComposerInput.EditLast)
    def _edit(self) -> None:
        self.heard.append("edit")


async def test_enter_sends_and_other_keys_begin_a_line() -> None:
    app = Alone()
    async with app.run_test() as pilot:
        for key in ("a", "ctrl+j", "b", "shift+enter", "c", "alt+enter", "d"):
            await pilot.press(key)
        assert app.composer.text == "a\nb\nc\nd"
        await pilot.press("enter")
        assert app.heard == [("a\nb\nc\nd", False)]
        assert app.composer.text == ""
        await pilot.press("e", "ctrl+s")
        assert app.heard[1] == ("e", True)


async def test_keys_that_come_at_once_belong_to_the_message_that_they_were_typed_for() -> None:
    app = Alone()
    async with app.run_test() as pilot:
        for key in (*keys_from_text("one\rtwo\rthree"),):
            app.post_message(key)
        await pilot.pause()
        assert app.heard == [("one", False), ("two", False)]
        assert app.composer.text == "three"


async def test_tab_completes_a_command_that_was_typed_at_once() -> None:
    app = Alone()
    async with app.run_test() as pilot:
        for key in keys_from_text("/mo\t"):
            app.post_message(key)
        await pilot.pause()
        assert app.composer.text == "/model "
        assert app.composer.text_area.has_focus


async def test_up_edits_only_from_the_empty_box() -> None:
    app = Alone()
    async with app.run_test() as pilot:
        await pilot.press("up")
        assert app.heard == ["edit"]
        await pilot.press("x", "up")
        assert app.heard == ["edit"]


async def test_commands_are_offered_and_completed() -> None:
    app = Alone()
    async with app.run_test() as pilot:
        await pilot.press("/")
        offered = app.query_one("#commands", OptionList)
        assert offered.display
        assert offered.option_count == 3
        await pilot.press("down", "tab")
        assert app.composer.text == "/model "
        assert [option.id for option in offered.options] == ["/model big", "/model small"]
        await pilot.press("s")
        await pilot.press("tab")
        assert app.composer.text == "/model small"
        assert not offered.display
        await pilot.press("enter")
        assert app.heard == [("/model small", False)]


async def test_a_file_that_is_dropped_is_attached_and_text_is_pasted(tmp_path: Path) -> None:
    file = tmp_path / "a b.txt"
    file.write_text("x")
    app = Alone()
    async with app.run_test() as pilot:
        app.post_message(events.Paste(f"'{file}'"))
        await pilot.pause()
        assert app.heard == [[file]]
        assert app.composer.text == ""
        app.post_message(events.Paste("/no/such/file"))
        await pilot.pause()
        assert app.composer.text == "/no/such/file"


async def test_much_text_is_pasted_as_it_is() -> None:
    app = Alone()
    much = "\n".join(f"line {n} [bold]not markup[/bold] 你好" for n in range(3000))
    async with app.run_test() as pilot:
        app.post_message(events.Paste(much))
        await pilot.pause()
        assert app.composer.text == much
        await pilot.press("enter")
        assert app.heard == [(much, False)]
