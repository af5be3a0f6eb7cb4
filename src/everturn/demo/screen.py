"""Text → lines of a terminal: wrapped, aligned, and unable to do anything but be read."""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import Final, TextIO

WIDTH = 80
GUTTER = 13
ROW_LINES = 5
STYLES: Final = {"": "0", "dim": "2", "bold": "1", "good": "32", "bad": "31", "ask": "33"}
ASCII: Final = {"→": "->", "·": ".", "✓": "+", "×": "x", "…": "..."}


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
        self._has_signs = _can_show("".join(ASCII), out.encoding)
        self._column = 0
        self._gap = ""  # blanks that are due, and written only before a word
        self._label = ""

    @property
    def room(self) -> int:
        """The columns beside the gutter."""
        return self._width - GUTTER

    def sign(self, sign: str) -> str:
        """A sign as this output can have it: itself, or its stand-in in ASCII, all of them equally wide."""
        return sign if self._has_signs else ASCII.get(sign, sign).ljust(2)

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

    def row(self, head: str, text: str, style: str = "", is_whole: bool = True) -> None:
        """Write a text beside its head, in a column of its own; a long one is cut, unless it is wanted whole."""
        head, most = printable(head), None if is_whole else ROW_LINES
        room = max(self.room - len(head), GUTTER)
        lines = textwrap.wrap(printable(text), room, max_lines=most, placeholder=f" {self.sign('…')}")
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

    def prompt(self, mark: str, style: str = "") -> None:
        """Write what stands before an answer, with its blank: the person types right behind it."""
        self.end()
        self.write(mark, style)
        self._out.write(self._gap)
        self._out.flush()
        self._gap = ""

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
        self._column += len(text)
        if not (word := text.rstrip(" ")):
            self._gap += text
            return
        self._out.write(self._gap + (f"\x1b[{STYLES[style]}m{word}\x1b[0m" if self._color and style else word))
        self._gap = text[len(word) :]

    def end(self) -> None:
        """End the line, if one was begun."""
        if self._column:
            self._out.write("\n")
            self._out.flush()
        self._column, self._gap = 0, ""

    def echoed(self, typed: str) -> None:
        """Take note of what the terminal itself has shown: Enter, or the mark of a Ctrl-C."""
        self._column, self._gap = 0 if typed == "\n" else self._column + len(typed), ""


def _can_show(text: str, encoding: str | None) -> bool:
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
