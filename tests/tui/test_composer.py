"""The box where one writes, alone on a screen."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
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
        yield Composer(lambda: COMMANDS, lambda word: ["big", "small"] if word == "/model" else [])

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


async def test_all_commands_are_listed_with_their_arguments_in_front_of_a_column_of_descriptions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = {**COMMANDS, **{f"/command{number}": "FILE  does it" for number in range(20)}}
    monkeypatch.setitem(globals(), "COMMANDS", many)
    app = Alone()
    async with app.run_test() as pilot:
        await pilot.press("/")
        menu = app.query_one("#commands", OptionList)
        assert menu.option_count == len(many), "the list scrolls to those that have no place"
        rows = [str(menu.get_option_at_index(index).prompt) for index in range(len(many))]
        assert rows[1].startswith("/model NAME ")
        assert (
            len(
                {row.index(about) for row in rows for about in ("all keys", "another model", "does it") if about in row}
            )
            == 1
        )


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


PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


async def test_the_path_of_an_image_is_attached_beside_what_is_written(tmp_path: Path) -> None:
    image, other = tmp_path / "shot.png", tmp_path / "notes.txt"
    image.write_bytes(PNG)
    other.write_text("x")
    app = Alone()
    async with app.run_test() as pilot:
        await pilot.press("a")
        app.post_message(events.Paste(str(image)))
        await pilot.pause()
        assert (app.heard, app.composer.text) == ([[image]], "a")
        app.post_message(events.Paste(f" {other}"))  # a path that somebody writes about
        await pilot.pause()
        assert (app.heard, app.composer.text) == ([[image]], f"a {other}")


async def test_an_image_that_is_pasted_as_data_is_attached() -> None:
    app = Alone()
    async with app.run_test() as pilot:
        app.post_message(events.Paste(f"data:image/png;base64,{base64.b64encode(PNG).decode()}"))
        await pilot.pause()
        [[path]] = app.heard
        assert path.read_bytes() == PNG
        assert path.stat().st_mode & 0o077 == 0
        path.unlink()
        for text in ("data:image/png;base64,!!!", "data:image/png;base64,aGVsbG8=", "data:text/html;base64,aGk="):
            app.post_message(events.Paste(text))
            await pilot.pause()
        assert len(app.heard) == 1
        assert app.composer.text.startswith("data:image/png;base64,!!!")
