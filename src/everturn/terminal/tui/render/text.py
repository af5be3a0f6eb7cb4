"""Styled text: runs with style names, wrapped to lines of a width. All drawn text passes here, and is escaped here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.cells import cell_len, chop_cells

from everturn.terminal.text.screen import TAB, escape_prose

Run = tuple[str, str]
"""A text on one line, and its style names, separated by blanks."""
Line = tuple[Run, ...]

GUTTER: Final = 3  # columns of our own: the cursor mark, a sign, a blank
MIN_WIDTH: Final = 8  # minimal columns of a text, however narrow the screen is
MEASURE: Final = 100  # maximal columns of prose, however wide the screen is; code, diffs and tables take all
MAX_STACKED_MARKS: Final = 6  # combining marks that may be stacked on one character
REPLACEMENT: Final = "\ufffd"

# Wide characters, which have no blanks between words: a line may be broken on either side of each of them,
_WIDE: Final = "\u1100-\u115f\u2e80-\u2fff\u3004-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff10-\uff60\U00020000-\U0003fffd"
# except before closing punctuation.
_CLOSING: Final = (
    "\u3001-\u3003\u3009\u300b\u300d\u300f\u3011\u3015\u3017\uff01\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff3d\uff5d"
)
_PIECE: Final = re.compile(rf" +|[{_WIDE}][{_CLOSING}]*|[^ {_WIDE}]+")
_STACK: Final = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef]"
    rf"{{{MAX_STACKED_MARKS}}})[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef]+"
)


def escape_text(text: str) -> str:
    r"""Escape what a terminal would obey, as `\x1b`, and line breaks, as `\n`: the text can only be read."""
    if text.isascii() and text.isprintable():
        return text
    text = escape_prose(text.replace("\t", TAB))
    return text if text.isascii() else _STACK.sub(rf"\1{REPLACEMENT}", text)


def split_lines(text: str) -> list[str]:
    r"""Split a text into lines. Only \\n, or \\r\\n, ends a line: other line separators are escaped."""
    return text.replace("\r\n", "\n").split("\n")


def safe_run(text: str, style: str = "") -> Run:
    """Return a run of escaped text."""
    return escape_text(text), style


def runs_width(line: Iterable[Run]) -> int:
    """Return how many columns runs take."""
    return sum(cell_len(text) for text, _ in line)


def truncate(text: str, room: int) -> str:
    """Return a text on one line of this many columns; an ellipsis marks what does not fit."""
    text = escape_text(text[: 4 * room + 8].replace("\n", " ")) if room > 0 else ""
    if cell_len(text) <= room:
        return text
    return _fitting(text, room - 1)[0] + "…" if room > 0 else ""


def _fitting(text: str, room: int) -> tuple[str, str]:
    """Return as much of a text as fits, and the rest."""
    if cell_len(text) <= room:
        return text, ""
    if text.isascii():
        return text[:room], text[room:]
    first = next(iter(chop_cells(text[: 8 * room + 8], max(room, 1))), text[:1]) or text[:1]
    return first, text[len(first) :]


def wrap(runs: Sequence[Run], width: int) -> list[Line]:
    """Wrap runs between words; a word that is too long is broken anywhere."""
    width, lines = max(width, MIN_WIDTH), list[Line]()
    line, used, gap = list[Run](), 0, list[Run]()
    for word in _words(runs):
        if word[0][0].startswith(" "):
            gap = [*gap, *word] if line else gap
            continue
        size, between = runs_width(word), runs_width(gap)
        if line and used + between + size > width:
            lines.append(_joined(line))
            line, used = [], 0
        elif gap:
            line, used = [*line, *gap], used + between
        gap = []
        if size > width:
            *full, word = wrap_anywhere(word, width)
            lines.extend(full)
            size = runs_width(word)
        line, used = [*line, *word], used + size
    return [*lines, _joined(line)] if line or not lines else lines


def wrap_prose(runs: Sequence[Run], width: int) -> list[Line]:
    """Wrap runs between words, to lines that are not too long to read."""
    return wrap(runs, min(width, MEASURE))


def wrap_anywhere(runs: Iterable[Run], width: int) -> list[Line]:
    """Wrap runs anywhere: for code, where every blank counts."""
    width, lines = max(width, MIN_WIDTH), list[Line]()
    line, used = list[Run](), 0
    for text, style in runs:
        rest = escape_text(text)
        while rest:
            piece, rest = _fitting(rest, width - used) if width > used else ("", rest)
            if piece and (used + cell_len(piece) <= width or not line):
                line.append((piece, style))
                used += cell_len(piece)
            else:
                rest = piece + rest
            if rest:
                lines.append(tuple(line))
                line, used = [], 0
    return [*lines, tuple(line)]


def _words(runs: Iterable[Run]) -> Iterator[list[Run]]:
    """Yield words and blanks; a word may have several styles."""
    word: list[Run] = []
    for text, style in runs:
        for piece in _PIECE.findall(escape_text(text)):
            is_joined = word and cell_len(piece[0]) < 2 and not piece.startswith(" ") and not _ends_wide(word)
            if word and not is_joined:
                yield word
                word = []
            if piece.startswith(" "):
                yield [(piece, style)]
            else:
                word.append((piece, style))
    if word:
        yield word


def _ends_wide(word: list[Run]) -> bool:
    return cell_len(word[-1][0][-1]) > 1


def _joined(line: list[Run]) -> Line:
    """Return a line with adjacent runs of one style merged: fewer segments to write."""
    merged: list[Run] = []
    for text, style in line:
        if merged and merged[-1][1] == style:
            merged[-1] = (merged[-1][0] + text, style)
        else:
            merged.append((text, style))
    return tuple(merged)


def prefix_lines(lines: Iterable[Line], first: Run, rest: Run) -> list[Line]:
    """Prefix lines: the first with `first`, the others with `rest`."""
    return [(rest if index else first, *line) for index, line in enumerate(lines)]


def gutter_run(sign: str = " ", style: str = "") -> Run:
    """Return our own columns with a sign in them. The first column is reserved for the cursor."""
    return f" {sign} ", style


def add_gutter(lines: Iterable[Line], sign: str = " ", style: str = "", rest: str = "") -> list[Line]:
    """Put lines beside our own columns; the sign is at the first line, and `rest` at the others."""
    return prefix_lines(lines, gutter_run(sign, style), gutter_run(rest or " ", style))


def line_text(line: Line) -> str:
    """Return the text of a line, without styles."""
    return "".join(text for text, _ in line)
