"""What can be done → a line of keys and what each does, to be pressed or clicked; and something to be ticked."""

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
"""What is pressed, and what it does."""
NAMES: Final = {"escape": "Esc", "enter": "Enter", "ctrl+s": "^S", "ctrl+t": "^T", "ctrl+o": "^O", "tab": "Tab"}
GAP: Final = 3  # columns between two of them


class Line(Static):
    """Lines of text that are as tall as they have to be, and say when that is another height."""

    class Resized(Message):
        """There is more room beside it now, or less."""

    def on_resize(self) -> None:
        """Say so: whoever shares the room with it has measured it before."""
        self.post_message(self.Resized())


class Keys(Line):
    """Keys, each with what it does. A click on one is the key; Enter does nothing here, for nothing here has the focus."""

    DEFAULT_CSS = """
    Keys { height: auto; width: 1fr; padding: 0 1; color: $text-muted; }
    """

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self.auto_links = False  # they have their own colours
        self.keys: list[Key] = []

    def offer(self, keys: Iterable[Key]) -> None:
        """Show other keys."""
        self.keys = list(keys)
        self._flow()

    def on_resize(self) -> None:
        """The same for another width."""
        self._flow()

    def _flow(self) -> None:
        """As many on a line as fit: a key and its words stay together."""
        content, used, room = Content(""), 0, self.content_size.width or 76
        for key, does in self.keys:
            size = cell_len(f"{NAMES.get(key, key)} {does}".rstrip())
            gap = "" if not used else "\n" if used + GAP + size > room else " " * GAP
            used = size if gap in ("", "\n") else used + GAP + size
            content = Content.assemble(content, gap, _one(key, does))
        self.update(content)


def _one(key: str, does: str) -> Content:
    # The words are ours, never a model's.
    click = Style.from_meta({"@click": f"screen.press({key!r})"})
    name = Content.styled(NAMES.get(key, key), "bold $text-accent")
    return Content.assemble(name, f" {does}" if does else "").stylize(click)


class Tick(Static, can_focus=True):
    """Something that is so or not, and looks it without colours."""

    DEFAULT_CSS = """
    Tick { height: auto; width: 1fr; }
    Tick:focus { text-style: bold underline; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("space,enter", "turn", show=False)]

    def __init__(self, label: str, value: bool = False) -> None:
        super().__init__(markup=False)
        self.value, self._label = value, label

    def on_mount(self) -> None:
        """Draw it."""
        self._draw()

    def on_click(self) -> None:
        """The other way round."""
        self.action_turn()

    def action_turn(self) -> None:
        """The other way round."""
        self.value = not self.value
        self._draw()

    def _draw(self) -> None:
        self.update(Content(f"[{'x' if self.value else ' '}] {self._label}"))
