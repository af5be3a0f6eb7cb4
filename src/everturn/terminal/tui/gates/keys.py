"""Key bar and checkbox of the dialogs: a line of keys that can be pressed or clicked, and a box to tick."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widgets import Static

Key = tuple[str, str]
"""A key, and what it does."""
NAMES: Final = {"escape": "Esc", "enter": "Enter", "ctrl+s": "^S", "ctrl+t": "^T", "ctrl+o": "^O", "tab": "Tab"}
GAP: Final = 3  # columns between two keys


class WrappedText(Static):
    """Text that takes as many lines as it needs, and reports when its height changes."""

    class SizeChanged(Message):
        """The size of the text has changed."""

    def on_resize(self) -> None:
        """Report it: the parent has measured this widget before."""
        self.post_message(self.SizeChanged())


class KeyBar(WrappedText):
    """Keys, each with what it does. A click on one presses it; the bar never has the focus, so Enter does nothing."""

    DEFAULT_CSS = """
    KeyBar { height: auto; width: 1fr; padding: 0 1; color: $text-muted; }
    """

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self.auto_links = False  # the keys have their own colours
        self.keys: list[Key] = []

    def offer(self, keys: Iterable[Key]) -> None:
        """Show other keys."""
        self.keys = list(keys)
        self._flow()

    def on_resize(self) -> None:
        """Draw the keys for the new width."""
        self._flow()

    def _flow(self) -> None:
        """Draw as many keys on a line as fit: a key and its text stay together."""
        content, used, room = Content(""), 0, self.content_size.width or 76
        for key, does in self.keys:
            size = cell_len(f"{NAMES.get(key, key)} {does}".rstrip())
            gap = "" if not used else "\n" if used + GAP + size > room else " " * GAP
            used = size if gap in ("", "\n") else used + GAP + size
            content = Content.assemble(content, gap, _key_content(key, does))
        self.update(content)


def _key_content(key: str, does: str) -> Content:
    # The text is ours, never a model's.
    click = Style.from_meta({"@click": f"screen.press({key!r})"})
    name = Content.styled(NAMES.get(key, key), "bold $text-accent")
    return Content.assemble(name, f" {does}" if does else "").stylize(click)


class Checkbox(Static, can_focus=True):
    """A box to tick, readable without colours."""

    DEFAULT_CSS = """
    Checkbox { height: auto; width: 1fr; }
    Checkbox:focus { text-style: bold underline; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("space,enter", "turn", show=False)]

    def __init__(self, label: str, value: bool = False) -> None:
        super().__init__(markup=False)
        self.value, self._label = value, label

    def on_mount(self) -> None:
        """Draw the box."""
        self._draw()

    def on_click(self) -> None:
        """Toggle it."""
        self.action_turn()

    def action_turn(self) -> None:
        """Toggle it."""
        self.value = not self.value
        self._draw()

    def _draw(self) -> None:
        self.update(Content(f"[{'x' if self.value else ' '}] {self._label}"))
