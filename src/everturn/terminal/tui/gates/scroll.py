"""Scrolling rows: a widget that draws rows line by line, and knows whether all of them were read."""

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

from everturn.terminal.tui.gates.rows import Row, rows_text

MakeRows = Callable[[int], list[Row]]
"""Makes the rows for a width in columns."""


class ScrolledRows(ScrollView, can_focus=True):
    """Rows that can only be read. `is_read` is set once the last of them was on the screen."""

    DEFAULT_CSS = """
    ScrolledRows { height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    ScrolledRows > .roll--head { text-style: bold; }
    ScrolledRows > .roll--dim { color: $text-muted; }
    ScrolledRows > .roll--name { color: $text-accent; }
    ScrolledRows > .roll--add { color: $text-success; background: $success 12%; }
    ScrolledRows > .roll--del { color: $text-error; background: $error 12%; }
    ScrolledRows > .roll--code-comment { color: $text-muted; }
    ScrolledRows > .roll--code-keyword { color: $text-primary; }
    ScrolledRows > .roll--code-name { color: $text-accent; }
    ScrolledRows > .roll--code-string { color: $text-secondary; }
    ScrolledRows > .roll--code-number { color: $text-warning; }
    ScrolledRows > .roll--warn { color: $text-warning; }
    ScrolledRows > .roll--bad { color: $text-error; text-style: bold; }
    ScrolledRows > .roll--mark { color: $text-error; text-style: reverse; }
    ScrolledRows > .roll--good { color: $text-success; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"roll--{name}"
        for name in (
            *("head", "dim", "name", "add", "del", "warn", "bad", "mark", "good"),
            *("code-comment", "code-keyword", "code-name", "code-string", "code-number"),
        )
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "scroll_down", show=False),
        Binding("k,up", "scroll_up", show=False),
        Binding("space,pagedown", "page_down", show=False),
        Binding("b,pageup", "page_up", show=False),
        Binding("home,g", "scroll_home", show=False),
        Binding("end,G", "scroll_end", show=False),
    ]

    class PositionChanged(Message):
        """The visible rows have changed."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: list[Row] = []
        self.is_read = False
        self._make: MakeRows | None = None
        self._laid_width = 0

    def set_rows(self, make: MakeRows, *, is_new: bool = True) -> None:
        """Show other rows; with `is_new` they count as unread."""
        self._make = make
        if is_new:
            self.is_read = False
            self.scroll_to(y=0, animate=False, force=True)
        self._lay_out(force=True)

    @property
    def text(self) -> str:
        """The text of all rows, visible or not."""
        return rows_text(self.rows)

    @property
    def rows_below(self) -> int:
        """The number of rows below the screen."""
        return max(0, len(self.rows) - round(self.scroll_offset.y) - self.size.height)

    def on_resize(self, event: Resize) -> None:
        """Lay the rows out for the new width."""
        self._lay_out()

    def _lay_out(self, force: bool = False) -> None:
        width = self.scrollable_content_region.width
        if self._make is None or width <= 0 or (width == self._laid_width and not force):
            self._update_is_read()
            return
        self._laid_width = width
        self.rows = self._make(width)
        self.virtual_size = Size(width, len(self.rows))
        self.refresh()
        self.call_after_refresh(self._update_is_read)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Track how far the rows were read."""
        super().watch_scroll_y(old_value, new_value)
        self._update_is_read()

    def _update_is_read(self) -> None:
        if self.rows and self.size.height and not self.rows_below:
            self.is_read = True
        self.post_message(self.PositionChanged())

    def render_line(self, y: int) -> Strip:
        """Return one row."""
        index, width, base = y + round(self.scroll_offset.y), self.size.width, self.rich_style
        row = self.rows[index] if index < len(self.rows) else ()
        segments = [Segment(text, base + self._style(style)) for text, style in row if text]
        return Strip(segments).adjust_cell_length(width, base).crop(0, width)

    def _style(self, name: str) -> Style:
        """The style of a name, or of several: the first one is the line's, and the others only add their colours."""
        first, *others = name.split(" ")
        style = self.get_component_rich_style(f"roll--{first}") if first else Style()
        for other in filter(None, others):
            style += Style(color=self.get_component_rich_style(f"roll--{other}").color)
        return style
