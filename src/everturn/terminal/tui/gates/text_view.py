"""Text view: a text area to read, select or edit a text, which escapes everything that a terminal would obey."""

from __future__ import annotations

from rich.text import Text
from textual.document._document import Location
from textual.widgets import TextArea

REPLACEMENT = "�"


class TextView(TextArea):
    """A text area that draws a replacement for every character that a terminal would act on."""

    DEFAULT_CSS = """
    TextView { height: 1fr; border: none; padding: 0 1; background: $panel; scrollbar-size-vertical: 1; }
    TextView:focus { border: none; background: $panel; }
    """

    def get_line(self, line_index: int) -> Text:
        """Return a line as it is drawn; pasted text may contain anything."""
        line = self.document.get_line(line_index)
        if not line.isprintable():
            line = "".join(char if char == "\t" or char.isprintable() else REPLACEMENT for char in line)
        return Text(line, end="", no_wrap=True)

    @property
    def chosen(self) -> tuple[int, int]:
        """The selection, as character offsets in the text."""
        start, end = sorted(self.selection)
        return self._offset_of(start), self._offset_of(end)

    def _offset_of(self, location: Location) -> int:
        row, column = location
        return sum(len(line) + 1 for line in self.document.lines[:row]) + column

    @property
    def is_at_end(self) -> bool:
        """Whether the last line is on the screen."""
        return self.max_scroll_y - self.scroll_offset.y < 1
