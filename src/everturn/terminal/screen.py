"""Text → lines of a terminal: wrapped, aligned, and unable to do anything but be read."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable
from typing import Final, TextIO

WIDTH = 80
GUTTER = 13
NARROW = 3 * GUTTER  # columns; on less than these nothing would be readable
ROW_LINES = 5
TAB = "    "
HELD = 40  # characters of a word that are held back until the rest has come
STYLES: Final = {"": "0", "dim": "2", "bold": "1", "good": "32", "bad": "31", "ask": "33"}
ASCII: Final = {"→": "->", "↑": "^", "↓": "v", "·": ".", "✓": "+", "×": "x", "…": "...", "│": "|", "±": "+-", "−": "-"}
KEPT: Final = "\t\u200c\u200d"  # the joiners have no width; Persian, Hindi and emoji are not written without them

# A line may be broken on either side of a wide character; other words stay whole.
_WIDE: Final = "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\U00020000-\U0003fffd"
_PIECE: Final = re.compile(rf"\n|[^\S\n]+|[{_WIDE}]|[^\s{_WIDE}]+")


def printable(text: str) -> str:
    r"""Text that a terminal can only show, never obey: what is not a plain character is written as its escape.

    Models, tools and people write what they like. An escape sequence could wipe the screen, or draw over what a person
    is about to allow; an invisible or a right-to-left mark could hide a part of it. They come out as `\x1b`, `\u202e`.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def prose(text: str) -> str:
    """The same for what is only read and never allowed: tabs, blanks of any width and joiners stay what they are."""
    if text.isprintable():
        return text
    return "".join(c if c in KEPT or unicodedata.category(c) == "Zs" else printable(c) for c in text)


def typeset(text: str) -> str:
    """Prose in which every blank is as wide as it says."""
    return "".join(" " if c.isspace() else c for c in prose(text).replace("\t", TAB))


def columns(text: str) -> int:
    """How many columns a text takes, or a few less: a mark that has no width of its own counts as one."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class Screen:
    """Lines that are only ever added to: a label in the gutter, beside it what happens.

    Without a gutter every line begins with `lead`. A `width` of 0 is that of the terminal, and none where there is no
    terminal: what goes into a file or a pipe is wrapped by whoever reads it.
    """

    def __init__(
        self,
        out: TextIO,
        color: bool = False,
        *,
        gutter: int = GUTTER,
        width: int = WIDTH,
        safe: Callable[[str], str] = printable,
    ) -> None:
        self._out, self._color, self._gutter, self._safe = out, color, gutter, safe
        have = shutil.get_terminal_size().columns
        self._width = max(min(have, width), NARROW) if width else have if out.isatty() else sys.maxsize
        self._has_signs = _can_show("".join(ASCII), out.encoding)
        self._column = 0
        self._gap = ""  # blanks that are due, and written only before a word
        self._blank = -1  # the same with empty lines; -1 before the first line of a text
        self._held, self._style = "", ""  # the beginning of a word, and its style
        self._label = ""
        self.lead = ""

    @property
    def room(self) -> int:
        """The columns beside the gutter."""
        return self._width - self._gutter

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
        head, most = self._safe(head), None if is_whole else ROW_LINES
        room = max(self.room - len(head), GUTTER)
        placeholder = f" {self.sign('…')}"
        # Names of files, models and options have hyphens, and are copied.
        lines = textwrap.wrap(self._safe(text), room, max_lines=most, placeholder=placeholder, break_on_hyphens=False)
        for at, line in enumerate(lines or [""]):
            self.line((" " * len(head) if at else head) + line, style)

    def write(self, text: str, style: str = "") -> None:
        """Write on, wrapped between words. Whatever is shown passes here, and is made safe to show.

        A model sends pieces of words. The last one is held back until it is whole, or it would be broken at the margin.
        """
        if style != self._style:
            self._release()
        pieces = _PIECE.findall(self._held + text)
        self._held, self._style = "", style
        if pieces and _may_go_on(pieces[-1]) and self._width < sys.maxsize:
            self._held = pieces.pop()
        for piece in pieces:
            self._place(piece, style)
        self._out.flush()

    def prompt(self, mark: str, style: str = "") -> None:
        """Write what stands before an answer, with its blank: the person types right behind it."""
        self.end()
        self.write(mark, style)
        self._out.write(self._gap)
        self._out.flush()
        self._gap = ""

    def _release(self) -> None:
        held, self._held = self._held, ""
        if held:
            self._place(held, self._style)

    def _place(self, piece: str, style: str) -> None:
        if piece != "\n":
            self._word(self._safe(piece), style)
        elif self._column:
            self._break()
        elif self._blank >= 0:
            self._blank += 1

    def _word(self, word: str, style: str) -> None:
        if self._column and self._column + columns(word) > self._width:
            self._break()
            word = word.lstrip()
        while word:
            self._margin()
            size = fitting(word, self._width - self._column)
            self._put(word[:size], style)
            if word := word[size:]:
                self._break()

    def _margin(self) -> None:
        if self._column:
            return
        for _ in range(self._blank):
            self._put(self.lead, "dim")
            self._break()
        self._blank = 0
        if self._gutter:
            self._put(f" {self._safe(self._label):<{self._gutter - 1}}", "dim")
            self._label = ""
        else:
            self._put(self.lead, "dim")

    def _put(self, text: str, style: str) -> None:
        self._column += columns(text)
        if not (word := text.rstrip(" ")):
            self._gap += text
            return
        self._out.write(self._gap + (f"\x1b[{STYLES[style]}m{word}\x1b[0m" if self._color and style else word))
        self._gap = text[len(word) :]

    def _break(self) -> None:
        self._out.write("\n")
        self._column, self._gap = 0, ""

    def end(self) -> None:
        """End the line, if one was begun, and with it the text: empty lines are kept within a text, not around it."""
        self._release()
        if self._column:
            self._break()
            self._out.flush()
        self._blank = -1

    def echoed(self, typed: str) -> None:
        """Take note of what the terminal itself has shown: Enter, or the mark of a Ctrl-C."""
        self._release()
        self._column, self._gap = 0 if typed == "\n" else self._column + len(typed), ""


def _may_go_on(piece: str) -> bool:
    return len(piece) < HELD and not piece.isspace() and not re.match(f"[{_WIDE}]", piece)


def fitting(word: str, room: int) -> int:
    """How many characters of a word fit into so many columns; at least one, for it must go somewhere."""
    used = 0  # not all of it is measured: a line of a megabyte is cut into thousands of pieces
    for at, char in enumerate(word):
        used += _columns(char)
        if used > room:
            return max(at, 1)
    return len(word)


def _can_show(text: str, encoding: str | None) -> bool:
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
