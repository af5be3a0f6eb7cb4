"""Text lines: the text of an Office file while it is read, with paragraphs as lines and cells separated by tabs."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from everturn.documents.office_xml import Limits, UnreadableDocument


class TextLines:
    """The text that is being read: lines, and the cells of table rows in one line."""

    def __init__(self, most: int) -> None:
        self._most = most + 1  # characters; one more, so that a longer text is noticed
        self._pieces: list[str] = []
        self.prefix = ""  # of the paragraph: # of a heading, - of an item
        self.cells = 0  # table cells that are open

    def add(self, text: str) -> None:
        """Add text; the text of a document that is too long ends here."""
        if self.prefix and text.strip():
            self._pieces.append(self.prefix)
            self.prefix = ""
        self._pieces.append(text)
        self._most -= len(text)
        if self._most < 0:
            raise UnreadableDocument("it is too long to be read to its end")

    def end_paragraph(self) -> None:
        """End a paragraph."""
        self.prefix = ""
        self.add(" " if self.cells else "\n")

    def end_cell(self) -> None:
        """End a table cell."""
        self.cells = max(self.cells - 1, 0)
        self.add(" " if self.cells else "\t")

    def end_row(self) -> None:
        """End a table row."""
        self.add(" " if self.cells else "\n")

    def end_element(self, tag: str) -> None:
        """End a paragraph, a cell or a row, as Word and PowerPoint call them."""
        if tag == "p":
            self.end_paragraph()
        elif tag == "tc":
            self.end_cell()
        elif tag == "tr":
            self.end_row()

    def take(self) -> str:
        """The text, without more than one empty line in a row."""
        text, self._pieces = "".join(self._pieces), []
        lines: list[str] = []
        for line in text.split("\n"):  # no regular expression: it would take years for a million blanks
            plain = "\t".join(cell.rstrip(" ") for cell in line.split("\t")).rstrip()
            if plain or (lines and lines[-1]):
                lines.append(plain)
        return "\n".join(lines)


@contextlib.contextmanager
def write_section(limits: Limits, lines: TextLines, title: str = "") -> Generator[None]:
    """Write the lines that are read inside as a section; of a damaged part, what was read until then."""
    try:
        yield
    except UnreadableDocument:
        if rest := lines.take():
            limits.emit(rest, title)
        raise
    limits.emit(lines.take(), title)
