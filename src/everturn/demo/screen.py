"""Text → lines of a terminal: wrapped, aligned, and unable to do anything but be read."""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import Final, TextIO

WIDTH = 80
GUTTER = 13
ROW_LINES = 3
STYLES: Final = {"": "0", "dim": "2", "bold": "1", "good": "32", "bad": "31", "ask": "33"}


def printable(text: str) -> str:
    r"""Text that a terminal can only show, never obey: what is not a plain character is written as its escape.

    Models, tools and people write what they like. An escape sequence could wipe the screen, or draw over what a person
    is about to allow; an invisible or a right-to-left mark could hide a part of it. They come out as `\x1b`, `\u202e`.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Screen:
    """Lines of at most 80 columns, only ever added to: a label in the gutter, beside it what happens."""

    def __init__(self, out: TextIO, color: bool = False) -> None:
        self._out, self._color = out, color
        self._width = max(min(shutil.get_terminal_size().columns, WIDTH), 3 * GUTTER)
        self._column = 0
        self._label = ""

    def begin(self, label: str, note: str = "") -> None:
        """Begin a section; its label stands before its first line, which may be a note."""
        self.end()
        if self._label:  # nothing was written under it
            self._margin()
            self.end()
        self._out.write("\n")
        self._label = label
        if note:
            self.line(note, "dim")

    def line(self, text: str, style: str = "") -> None:
        """Write a line of its own, or several."""
        self.end()
        self.write(text, style)
        self.end()

    def row(self, head: str, text: str, style: str = "") -> None:
        """Write a text beside its head, in a column of its own; a long one is cut."""
        head, room = printable(head), self._width - GUTTER
        lines = textwrap.wrap(printable(text), max(room - len(head), GUTTER), max_lines=ROW_LINES, placeholder=" …")
        for at, line in enumerate(lines or [""]):
            self.line((" " * len(head) if at else head) + line, style)

    def write(self, text: str, style: str = "") -> None:
        """Write on, wrapped between words. Whatever is shown passes here, and is made printable."""
        for piece in re.findall(r"\n|[^\S\n]+|\S+", text):
            if piece == "\n":
                self.end()
            else:
                self._word(printable(piece), style)
        self._out.flush()

    def _word(self, word: str, style: str) -> None:
        if self._column and self._column + len(word) > self._width:
            self.end()
            word = word.lstrip()
        while word:
            self._margin()
            room = self._width - self._column
            self._put(word[:room], style)
            if word := word[room:]:
                self.end()

    def _margin(self) -> None:
        if not self._column:
            self._put(f" {printable(self._label):<{GUTTER - 1}}", "dim")
            self._label = ""

    def _put(self, text: str, style: str) -> None:
        self._out.write(f"\x1b[{STYLES[style]}m{text}\x1b[0m" if self._color and style else text)
        self._column += len(text)

    def end(self) -> None:
        """End the line, if one was begun."""
        if self._column:
            self._out.write("\n")
            self._out.flush()
        self._column = 0

    def echoed(self, typed: str) -> None:
        """Take note of what the terminal itself has shown: Enter, or the mark of a Ctrl-C."""
        self._column = 0 if typed == "\n" else self._column + len(typed)
