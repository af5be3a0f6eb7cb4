"""Where a person writes: a box that grows, commands that are completed, and files that were dropped on it.

It sends nothing. What was written is posted to whoever is around, who puts it back if it is refused.
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

from everturn.terminal.paths import dropped
from everturn.terminal.screen import prose

NEWLINE = ("ctrl+j", "shift+enter", "alt+enter")
MOST = 8  # commands that are offered at once


class Box(TextArea):
    """The text itself."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "send", priority=False),
        Binding("ctrl+j,shift+enter,alt+enter", "newline", "newline", show=False),
        Binding("ctrl+s,ctrl+enter", "steer", "steer", show=False),
        Binding("up", "edit_last", "edit_last", show=False),
    ]

    class Sent(Message):
        """A person wants this sent; `steers` when it is meant for the turn that runs."""

        def __init__(self, text: str, steers: bool) -> None:
            super().__init__()
            self.text, self.steers = text, steers

    class Dropped(Message):
        """Files were dropped on the box."""

        def __init__(self, paths: list[Path]) -> None:
            super().__init__()
            self.paths = paths

    class EditLast(Message):
        """The arrow up was pressed where there is nothing to go up in."""

    class Moved(Message):
        """A key that is for the list of commands, while it is there: -1 up, 1 down, 0 takes it."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    is_completing = False

    def __init__(self) -> None:
        super().__init__(soft_wrap=True, show_line_numbers=False, tab_behavior="focus", highlight_cursor_line=False)
        self.touched = 0.0  # when somebody typed last

    async def _on_key(self, event: events.Key) -> None:
        self.touched = time.monotonic()
        is_command = event.key == "tab" and self.text.startswith("/")  # the list may not be there yet
        if is_command or (self.is_completing and event.key in ("up", "down", "tab")):
            event.stop()
            event.prevent_default()
            self.post_message(self.Moved({"up": -1, "down": 1, "tab": 0}[event.key]))
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
        if not self.text.strip() and (paths := dropped(event.text.strip())):
            event.stop()
            event.prevent_default()
            self.post_message(self.Dropped(paths))

    def action_send(self) -> None:
        """Send it."""
        self._send(False)

    def action_steer(self) -> None:
        """Send it into the turn that runs."""
        self._send(True)

    def _send(self, steers: bool) -> None:
        self.post_message(self.Sent(self.text, steers))
        self.load_text("")  # at once: the next key belongs to the next message

    def action_newline(self) -> None:
        """Begin a new line."""
        self.insert("\n")

    def action_edit_last(self) -> None:
        """Go up; from the empty box, to what was said last."""
        self.action_cursor_up()


class Composer(Vertical):
    """The box, the commands that fit what is in it, and a line about what goes along."""

    DEFAULT_CSS = """
    Composer { height: auto; max-height: 16; dock: none; }
    Composer #commands { display: none; height: auto; max-height: 8; margin: 0 1; background: $surface; border: none; }
    Composer #commands > .option-list--option-highlighted { background: $panel; color: $foreground; text-style: bold; }
    Composer #about { display: none; color: $text-muted; padding: 0 2; height: 1; }
    Composer Box {
        height: auto; min-height: 3; max-height: 10; border: round $panel; background: $background; padding: 0 1;
    }
    Composer Box:focus { border: round $primary; }
    Composer.editing Box { border: round $warning; }
    """
    about = reactive("")

    def __init__(self, commands: Mapping[str, str], values: Callable[[str], Sequence[str]]) -> None:
        super().__init__(id="composer")
        self.commands, self._values = commands, values

    def compose(self) -> ComposeResult:
        """Commands, the line, the box."""
        yield OptionList(id="commands", markup=False)
        yield Static(id="about", markup=False)
        yield Box()

    def on_mount(self) -> None:
        """The list is moved in from the box."""
        self.query_one("#commands", OptionList).can_focus = False

    @property
    def box(self) -> Box:
        """The text itself."""
        return self.query_one(Box)

    @property
    def text(self) -> str:
        """What is in it."""
        return self.box.text

    def write(self, text: str) -> None:
        """Let this be in it, with the cursor behind."""
        self.box.load_text(text)
        self.box.move_cursor(self.box.document.end)

    def is_quiet(self, seconds: float) -> bool:
        """Whether nothing is written, and nobody typed for so long."""
        return not self.text.strip() and time.monotonic() - self.box.touched >= seconds

    def watch_about(self, text: str) -> None:
        """Show what goes along."""
        line = self.query_one("#about", Static)
        line.update(Content(prose(text)))
        line.display = bool(text)

    # Commands ------------------------------------------------------------------------------------------------------

    @on(TextArea.Changed)
    def _offer(self, event: TextArea.Changed) -> None:
        event.stop()
        found = self._fitting(self.text)
        offered = self.query_one("#commands", OptionList)
        offered.clear_options()
        for name, about in found[:MOST]:
            offered.add_option(Option(Content.assemble((f"{name:<10} ", "bold"), (prose(about), "dim")), name))
        offered.display = self.box.is_completing = bool(found)
        if found:
            offered.highlighted = 0

    def _fitting(self, text: str) -> list[tuple[str, str]]:
        if not text.startswith("/") or "\n" in text:
            return []
        word, blank, rest = text.partition(" ")
        if blank:
            values = [value for value in self._values(word) if value.startswith(rest) and value != rest]
            return [(f"{word} {value}", "") for value in values]
        return [(name, about) for name, about in self.commands.items() if name.startswith(word) and name != word]

    @on(Box.Moved)
    def _moved(self, event: Box.Moved) -> None:
        event.stop()
        offered = self.query_one("#commands", OptionList)
        if event.by < 0:
            offered.action_cursor_up()
        elif event.by > 0:
            offered.action_cursor_down()
        elif offered.highlighted is not None:
            self._take(offered.get_option_at_index(offered.highlighted).id or "")

    @on(OptionList.OptionSelected, "#commands")
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._take(event.option.id or "")
        self.box.focus()

    def _take(self, name: str) -> None:
        self.write(f"{name} " if " " not in name else name)
