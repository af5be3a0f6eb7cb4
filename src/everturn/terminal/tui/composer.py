"""Composer: the text input of the conversation; it grows, completes commands, and takes dropped files.

It sends nothing itself. It posts the text to its screen, which puts the text back if the server refuses it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import OptionList, Static, TextArea
from textual.widgets.option_list import Option

from everturn.terminal.text.paths import parse_dropped_paths, parse_pasted_images, save_pasted_image
from everturn.terminal.text.screen import display_width, escape_prose

NEWLINE = ("ctrl+j", "shift+enter", "alt+enter")
MAX_COMPLETIONS = 100  # completions in the list, which scrolls


class ComposerInput(TextArea):
    """The text area."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "send", priority=False),
        Binding("ctrl+j,shift+enter,alt+enter", "newline", "newline", show=False),
        Binding("ctrl+s,ctrl+enter", "steer", "steer", show=False),
        Binding("up", "edit_last", "edit_last", show=False),
    ]

    class Submitted(Message):
        """The person sends this text; `steers` if it is meant for the running turn."""

        def __init__(self, text: str, steers: bool) -> None:
            super().__init__()
            self.text, self.steers = text, steers

    class Dropped(Message):
        """Files were dropped on the input, or pasted; temporary ones are deleted when they are attached."""

        def __init__(self, paths: list[Path], is_temporary: bool = False) -> None:
            super().__init__()
            self.paths, self.is_temporary = paths, is_temporary

    class EditLast(Message):
        """The up arrow was pressed in the empty input."""

    class CompletionKeyPressed(Message):
        """A key for the list of completions, while it is shown: -1 up, 1 down, 0 accepts."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    is_completing = False

    def __init__(self) -> None:
        super().__init__(soft_wrap=True, show_line_numbers=False, tab_behavior="focus", highlight_cursor_line=False)
        self.touched = 0.0  # time of the last key

    async def _on_key(self, event: events.Key) -> None:
        self.touched = time.monotonic()
        is_command = event.key == "tab" and self.text.startswith("/")  # the list may not be shown yet
        if is_command or (self.is_completing and event.key in ("up", "down", "tab")):
            event.stop()
            event.prevent_default()
            self.post_message(self.CompletionKeyPressed({"up": -1, "down": 1, "tab": 0}[event.key]))
        elif event.key == "enter":
            event.stop()
            event.prevent_default()
            self.action_send()
        elif event.key in NEWLINE:
            event.stop()
            event.prevent_default()
            self.insert("\n")
        elif event.key == "up" and not self.text:
            event.stop()
            event.prevent_default()
            self.post_message(self.EditLast())

    async def _on_paste(self, event: events.Paste) -> None:
        self.touched = time.monotonic()
        text, image = event.text.strip(), None
        paths = parse_pasted_images(text) if self.text.strip() else parse_dropped_paths(text)
        if not paths and (image := save_pasted_image(text)) is not None:
            paths = [image]
        if paths:
            event.stop()
            event.prevent_default()
            self.post_message(self.Dropped(paths, is_temporary=image is not None))

    def action_send(self) -> None:
        """Send the text."""
        self._send(False)

    def action_steer(self) -> None:
        """Send the text into the running turn."""
        self._send(True)

    def _send(self, steers: bool) -> None:
        self.post_message(self.Submitted(self.text, steers))
        self.load_text("")  # at once: the next key belongs to the next message

    def action_newline(self) -> None:
        """Begin a new line."""
        self.insert("\n")

    def action_edit_last(self) -> None:
        """Move the cursor up; in the empty input, edit the last message."""
        self.action_cursor_up()


def split_about(about: str) -> tuple[str, str]:
    """Return the arguments of a command and its description: `NAME  continue with another model`."""
    arguments, gap, description = about.partition("  ")
    return (arguments, description) if gap else ("", about)


class Composer(Vertical):
    """The input, the completions for it, and a line about attached files."""

    DEFAULT_CSS = """
    Composer { height: auto; max-height: 16; dock: none; }
    Composer #commands { display: none; height: auto; max-height: 8; margin: 0 1; background: $surface; border: none; }
    Composer #commands > .option-list--option-highlighted { background: $panel; color: $foreground; text-style: bold; }
    Composer #about { display: none; color: $text-muted; padding: 0 2; height: 1; }
    Composer ComposerInput {
        height: auto; min-height: 3; max-height: 10; border: round $panel; background: $background; padding: 0 1;
    }
    Composer ComposerInput:focus { border: round $primary; }
    Composer.editing ComposerInput { border: round $warning; }
    ComposerInput .text-area--placeholder { color: $text-disabled; }
    """
    about = reactive("")

    def __init__(
        self,
        commands: Callable[[], Mapping[str, str]],
        values: Callable[[str], Sequence[str]],
        files: Callable[[str], Sequence[str]] = lambda typed: (),
    ) -> None:
        super().__init__(id="composer")
        self.commands, self._values, self._files = commands, values, files

    def compose(self) -> ComposeResult:
        """Completions, the line, the input."""
        yield OptionList(id="commands", markup=False)
        yield Static(id="about", markup=False)
        yield ComposerInput()

    def on_mount(self) -> None:
        """Keys reach the list through the input."""
        self.query_one("#commands", OptionList).can_focus = False

    @property
    def text_area(self) -> ComposerInput:
        """The text area."""
        return self.query_one(ComposerInput)

    @property
    def text(self) -> str:
        """The text in the input."""
        return self.text_area.text

    def write(self, text: str) -> None:
        """Replace the text, with the cursor at its end."""
        self.text_area.load_text(text)
        self.text_area.move_cursor(self.text_area.document.end)

    def is_idle(self, seconds: float) -> bool:
        """Return whether the input is empty and no key was pressed for this many seconds."""
        return not self.text.strip() and time.monotonic() - self.text_area.touched >= seconds

    def watch_about(self, text: str) -> None:
        """Show the line about attached files."""
        line = self.query_one("#about", Static)
        line.update(Content(escape_prose(text)))
        line.display = bool(text)

    # Commands ------------------------------------------------------------------------------------------------------

    @on(TextArea.Changed)
    def _offer(self, event: TextArea.Changed) -> None:
        event.stop()
        completions = self._completions(self.text)
        menu = self.query_one("#commands", OptionList)
        menu.clear_options()
        shown = completions[:MAX_COMPLETIONS]
        rows = [(name, *split_about(escape_prose(about))) for name, about in shown]
        width = max((display_width(f"{name} {arguments}".rstrip()) for name, arguments, _ in rows), default=0)
        for name, arguments, description in rows:
            head = Content.assemble((name, "bold"), (f" {arguments}" if arguments else "", "$text-muted"))
            gap = " " * (width - head.cell_length + 2)
            menu.add_option(Option(Content.assemble(head, gap, (description, "$text-muted")), name))
        menu.display = self.text_area.is_completing = bool(completions)
        if completions:
            menu.highlighted = 0

    def _completions(self, text: str) -> list[tuple[str, str]]:
        if (mention := self._mention()) is not None:
            return [(f"@{path}", "") for path in self._files(mention)]
        if not text.startswith("/") or "\n" in text:
            return []
        word, blank, rest = text.partition(" ")
        if blank:
            values = [value for value in self._values(word) if value.startswith(rest) and value != rest]
            return [(f"{word} {value}", "") for value in values]
        return [(name, about) for name, about in self.commands().items() if name.startswith(word) and name != word]

    def _mention(self) -> str | None:
        """Return what was typed after the `@` in front of the cursor; None: the cursor is not in such a word."""
        row, column = self.text_area.cursor_location
        word = self.text_area.document.get_line(row)[:column].rpartition(" ")[2]
        return word[1:] if word.startswith("@") else None

    @on(ComposerInput.CompletionKeyPressed)
    def _completion_key(self, event: ComposerInput.CompletionKeyPressed) -> None:
        event.stop()
        menu = self.query_one("#commands", OptionList)
        if event.by < 0:
            menu.action_cursor_up()
        elif event.by > 0:
            menu.action_cursor_down()
        elif menu.highlighted is not None:
            self._take(menu.get_option_at_index(menu.highlighted).id or "")

    @on(OptionList.OptionSelected, "#commands")
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._take(event.option.id or "")
        self.text_area.focus()

    def _take(self, name: str) -> None:
        if name.startswith("@") and (mention := self._mention()) is not None:
            row, column = self.text_area.cursor_location
            self.text_area.replace(f"{name} ", (row, column - len(mention) - 1), (row, column))
            return
        self.write(f"{name} " if " " not in name else name)
