"""Terminal output in lines: wraps and aligns text, and escapes everything that a terminal would obey."""

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
NARROW = 3 * GUTTER  # columns; narrower text would not be readable
ROW_LINES = 5
TAB = "    "
MAX_HELD = 40  # characters of an unfinished word that are held back until the rest arrives
STYLES: Final = {"": "0", "dim": "2", "bold": "1", "good": "32", "bad": "31", "ask": "33"}
ASCII: Final = {"→": "->", "↑": "^", "↓": "v", "·": ".", "✓": "+", "×": "x", "…": "...", "│": "|", "±": "+-", "−": "-"}
UNESCAPED: Final = "\t\u200c\u200d"  # the joiners have no width; Persian, Hindi and emoji are not written without them

# A line may be broken on either side of a wide character; other words stay whole.
_WIDE: Final = "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\U00020000-\U0003fffd"
_PIECE: Final = re.compile(rf"\n|[^\S\n]+|[{_WIDE}]|[^\s{_WIDE}]+")


def escape_unprintable(text: str) -> str:
    r"""Escape every character that is not printable, so that a terminal shows the text and never obeys it.

    Text comes from models, tools and people. An escape sequence could clear the screen, or draw over what a person is
    about to allow; an invisible or a right-to-left mark could hide a part of it. They become `\x1b`, `\u202e`.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def escape_prose(text: str) -> str:
    """Escape text that is only read and never approved: tabs, blanks of any width and joiners stay as they are."""
    if text.isprintable():
        return text
    return "".join(c if c in UNESCAPED or unicodedata.category(c) == "Zs" else escape_unprintable(c) for c in text)


def escape_and_expand_blanks(text: str) -> str:
    """Escape prose, and replace every blank by spaces, so that its width is known."""
    return "".join(" " if c.isspace() else c for c in escape_prose(text).replace("\t", TAB))


def display_width(text: str) -> int:
    """Return how many columns a text takes, or slightly more: a mark without a width of its own counts as one."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class LineScreen:
    """Output to which lines are only appended: a label in the gutter, and the text beside it.

    Without a gutter every line begins with `lead`. A `width` of 0 means the terminal's width, and no limit where there
    is no terminal: the reader of a file or pipe wraps its lines.
    """

    def __init__(
        self,
        out: TextIO,
        color: bool = False,
        *,
        gutter: int = GUTTER,
        width: int = WIDTH,
        safe: Callable[[str], str] = escape_unprintable,
    ) -> None:
        self._out, self._color, self._gutter, self._safe = out, color, gutter, safe
        available = shutil.get_terminal_size().columns
        self._width = max(min(available, width), NARROW) if width else available if out.isatty() else sys.maxsize
        self._has_signs = _can_show("".join(ASCII), out.encoding)
        self._column = 0
        self._gap = ""  # pending blanks, which are written only before a word
        self._blank = -1  # pending empty lines; -1 before the first line of a text
        self._held, self._style = "", ""  # the beginning of an unfinished word, and its style
        self._label = ""
        self.line_prefix = ""

    @property
    def text_width(self) -> int:
        """The columns beside the gutter."""
        return self._width - self._gutter

    def sign(self, sign: str) -> str:
        """Return a sign that this output can encode: the sign itself, or its ASCII replacement, all equally wide."""
        return sign if self._has_signs else ASCII.get(sign, sign).ljust(2)

    def begin(self, label: str, note: str = "") -> None:
        """Begin a section; its label is printed before its first line, which may be a note."""
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
        """Write a text beside its head, in a column of its own; without `is_whole` a long text is cut."""
        head, max_lines = self._safe(head), None if is_whole else ROW_LINES
        room = max(self.text_width - len(head), GUTTER)
        placeholder = f" {self.sign('…')}"
        # Names of files, models and options have hyphens, and are copied.
        lines = textwrap.wrap(
            self._safe(text), room, max_lines=max_lines, placeholder=placeholder, break_on_hyphens=False
        )
        for index, line in enumerate(lines or [""]):
            self.line((" " * len(head) if index else head) + line, style)

    def write(self, text: str, style: str = "") -> None:
        """Append text, wrapped between words. All output passes through here and is escaped here.

        A model streams pieces of words. The last piece is held back until the word is complete, so that it is not
        broken at the margin.
        """
        if style != self._style:
            self._release()
        pieces = _PIECE.findall(self._held + text)
        self._held, self._style = "", style
        if pieces and _is_unfinished(pieces[-1]) and self._width < sys.maxsize:
            self._held = pieces.pop()
        for piece in pieces:
            self._place(piece, style)
        self._out.flush()

    def prompt(self, mark: str, style: str = "") -> None:
        """Write a prompt with its trailing blank: the person types right behind it."""
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
        if self._column and self._column + display_width(word) > self._width:
            self._break()
            word = word.lstrip()
        while word:
            self._margin()
            size = count_fitting(word, self._width - self._column)
            self._put(word[:size], style)
            if word := word[size:]:
                self._break()

    def _margin(self) -> None:
        if self._column:
            return
        for _ in range(self._blank):
            self._put(self.line_prefix, "dim")
            self._break()
        self._blank = 0
        if self._gutter:
            self._put(f" {self._safe(self._label):<{self._gutter - 1}}", "dim")
            self._label = ""
        else:
            self._put(self.line_prefix, "dim")

    def _put(self, text: str, style: str) -> None:
        self._column += display_width(text)
        if not (word := text.rstrip(" ")):
            self._gap += text
            return
        self._out.write(self._gap + (f"\x1b[{STYLES[style]}m{word}\x1b[0m" if self._color and style else word))
        self._gap = text[len(word) :]

    def _break(self) -> None:
        self._out.write("\n")
        self._column, self._gap = 0, ""

    def end(self) -> None:
        """End the current line, and with it the text: empty lines are written within a text, not around it."""
        self._release()
        if self._column:
            self._break()
            self._out.flush()
        self._blank = -1

    def record_echo(self, typed: str) -> None:
        """Record what the terminal itself has echoed: Enter, or `^C`."""
        self._release()
        self._column, self._gap = 0 if typed == "\n" else self._column + len(typed), ""


def _is_unfinished(piece: str) -> bool:
    return len(piece) < MAX_HELD and not piece.isspace() and not re.match(f"[{_WIDE}]", piece)


def count_fitting(word: str, room: int) -> int:
    """Return how many characters of a word fit into this many columns; at least one, so that output always advances."""
    used = 0  # stops early: a line of a megabyte is cut into thousands of pieces
    for index, char in enumerate(word):
        used += _columns(char)
        if used > room:
            return max(index, 1)
    return len(word)


def _can_show(text: str, encoding: str | None) -> bool:
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
