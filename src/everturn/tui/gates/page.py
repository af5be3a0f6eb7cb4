"""A text → a page on which it can be read, selected in or written on, and which never obeys what stands there."""

from __future__ import annotations

from rich.text import Text
from textual.document._document import Location
from textual.widgets import TextArea

STAND_IN = "�"


class Page(TextArea):
    """A text area whose lines are only ever shown: a character that a terminal would act on is drawn as a stand-in."""

    DEFAULT_CSS = """
    Page { height: 1fr; border: none; padding: 0 1; background: $panel; scrollbar-size-vertical: 1; }
    Page:focus { border: none; background: $panel; }
    """

    def get_line(self, line_index: int) -> Text:
        """A line as it is drawn; what is pasted may hold anything."""
        line = self.document.get_line(line_index)
        if not line.isprintable():
            line = "".join(char if char == "\t" or char.isprintable() else STAND_IN for char in line)
        return Text(line, end="", no_wrap=True)

    @property
    def chosen(self) -> tuple[int, int]:
        """What is selected, in characters from the beginning of the text."""
        start, end = sorted(self.selection)
        return self._place(start), self._place(end)

    def _place(self, at: Location) -> int:
        row, column = at
        return sum(len(line) + 1 for line in self.document.lines[:row]) + column

    @property
    def is_at_end(self) -> bool:
        """Whether the last line is on the screen."""
        return self.max_scroll_y - self.scroll_offset.y < 1
