"""Rows → a part of the screen that can be scrolled, knows what was seen of it, and is drawn line by line."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from everturn.tui.gates.rows import Row, text_of

Make = Callable[[int], list[Row]]
"""Rows for so many columns."""


class Roll(ScrollView, can_focus=True):
    """Rows that can only be read. `is_read` once the last of them was on the screen."""

    DEFAULT_CSS = """
    Roll { height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    Roll > .roll--head { text-style: bold; }
    Roll > .roll--dim { color: $text-muted; }
    Roll > .roll--name { color: $text-accent; }
    Roll > .roll--add { color: $text-success; }
    Roll > .roll--del { color: $text-error; }
    Roll > .roll--warn { color: $text-warning; }
    Roll > .roll--bad { color: $text-error; text-style: bold; }
    Roll > .roll--mark { color: $text-error; text-style: reverse; }
    Roll > .roll--good { color: $text-success; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"roll--{name}" for name in ("head", "dim", "name", "add", "del", "warn", "bad", "mark", "good")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "scroll_down", show=False),
        Binding("k,up", "scroll_up", show=False),
        Binding("space,pagedown", "page_down", show=False),
        Binding("b,pageup", "page_up", show=False),
        Binding("home,g", "scroll_home", show=False),
        Binding("end,G", "scroll_end", show=False),
    ]

    class Moved(Message):
        """Something else is on the screen now."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: list[Row] = []
        self.is_read = False
        self._make: Make | None = None
        self._laid = 0

    def lay(self, make: Make, *, is_new: bool = True) -> None:
        """Show other rows; `is_new`: what was seen of the ones before says nothing of these."""
        self._make = make
        if is_new:
            self.is_read = False
            self.scroll_to(y=0, animate=False, force=True)
        self._again(force=True)

    @property
    def text(self) -> str:
        """What stands there, seen or not."""
        return text_of(self.rows)

    @property
    def below(self) -> int:
        """How many rows are below what is on the screen."""
        return max(0, len(self.rows) - round(self.scroll_offset.y) - self.size.height)

    def on_resize(self, event: Resize) -> None:
        """The same for another width."""
        self._again()

    def _again(self, force: bool = False) -> None:
        width = self.scrollable_content_region.width
        if self._make is None or width <= 0 or (width == self._laid and not force):
            self._look()
            return
        self._laid = width
        self.rows = self._make(width)
        self.virtual_size = Size(width, len(self.rows))
        self.refresh()
        self.call_after_refresh(self._look)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """See how far it was read."""
        super().watch_scroll_y(old_value, new_value)
        self._look()

    def _look(self) -> None:
        if self.rows and self.size.height and not self.below:
            self.is_read = True
        self.post_message(self.Moved())

    def render_line(self, y: int) -> Strip:
        """One row."""
        at, width, base = y + round(self.scroll_offset.y), self.size.width, self.rich_style
        row = self.rows[at] if at < len(self.rows) else ()
        segments = [Segment(text, base + self._style(style)) for text, style in row if text]
        return Strip(segments).adjust_cell_length(width, base).crop(0, width)

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(f"roll--{name}") if name else Style()
