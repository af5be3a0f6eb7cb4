"""Text with names of styles → lines of a width. Whatever is drawn passes here, and is made safe to show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.cells import cell_len, chop_cells

from everturn.terminal.screen import TAB, prose

Run = tuple[str, str]
"""A text on one line, and the names of its styles, with blanks between them."""
Line = tuple[Run, ...]

GUTTER: Final = 3  # columns that are ours: a mark of the cursor, a sign, a blank
LEAST: Final = 8  # columns that a text is given, however narrow the screen is
STACKED: Final = 6  # marks without a width that may stand on one character
LOST: Final = "\ufffd"

# Characters that are wide and have no blanks between words: a line may be broken on either side of each of them,
_WIDE: Final = "\u1100-\u115f\u2e80-\u2fff\u3004-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff10-\uff60\U00020000-\U0003fffd"
# except in front of what closes.
_CLOSING: Final = (
    "\u3001-\u3003\u3009\u300b\u300d\u300f\u3011\u3015\u3017\uff01\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff3d\uff5d"
)
_PIECE: Final = re.compile(rf" +|[{_WIDE}][{_CLOSING}]*|[^ {_WIDE}]+")
_STACK: Final = re.compile(
    "([\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef]"
    rf"{{{STACKED}}})[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef]+"
)


def safe(text: str) -> str:
    r"""A text that can only be read: what a terminal would obey is written out, as `\x1b`; a line break, as `\n`."""
    if text.isascii() and text.isprintable():
        return text
    text = prose(text.replace("\t", TAB))
    return text if text.isascii() else _STACK.sub(rf"\1{LOST}", text)


def split(text: str) -> list[str]:
    """The lines of a text. Only \\n ends one, and \\r before it: whatever else claims to is written out."""
    return text.replace("\r\n", "\n").split("\n")


def run(text: str, style: str = "") -> Run:
    """A run, safe."""
    return safe(text), style


def width_of(line: Iterable[Run]) -> int:
    """How many columns some runs take."""
    return sum(cell_len(text) for text, _ in line)


def cut(text: str, room: int) -> str:
    """A text in one line of so many columns; what does not fit is left out, and a sign says so."""
    text = safe(text[: 4 * room + 8].replace("\n", " ")) if room > 0 else ""
    if cell_len(text) <= room:
        return text
    return _fitting(text, room - 1)[0] + "…" if room > 0 else ""


def _fitting(text: str, room: int) -> tuple[str, str]:
    """As much of a text as fits, and the rest."""
    if cell_len(text) <= room:
        return text, ""
    if text.isascii():
        return text[:room], text[room:]
    first = next(iter(chop_cells(text[: 8 * room + 8], max(room, 1))), text[:1]) or text[:1]
    return first, text[len(first) :]


def wrap(runs: Sequence[Run], width: int) -> list[Line]:
    """Runs in lines that fit, broken between words; a word that is too long is broken anywhere."""
    width, lines = max(width, LEAST), list[Line]()
    line, used, gap = list[Run](), 0, list[Run]()
    for word in _words(runs):
        if word[0][0].startswith(" "):
            gap = [*gap, *word] if line else gap
            continue
        size, between = width_of(word), width_of(gap)
        if line and used + between + size > width:
            lines.append(_joined(line))
            line, used = [], 0
        elif gap:
            line, used = [*line, *gap], used + between
        gap = []
        if size > width:
            *full, word = fold(word, width)
            lines.extend(full)
            size = width_of(word)
        line, used = [*line, *word], used + size
    return [*lines, _joined(line)] if line or not lines else lines


def fold(runs: Iterable[Run], width: int) -> list[Line]:
    """Runs in lines that fit, broken anywhere: for code, where every blank counts."""
    width, lines = max(width, LEAST), list[Line]()
    line, used = list[Run](), 0
    for text, style in runs:
        rest = safe(text)
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
    """Words and blanks; a word may have several styles."""
    word: list[Run] = []
    for text, style in runs:
        for piece in _PIECE.findall(safe(text)):
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
    """A line with neighbours of one style put together: there are fewer pieces to write."""
    found: list[Run] = []
    for text, style in line:
        if found and found[-1][1] == style:
            found[-1] = (found[-1][0] + text, style)
        else:
            found.append((text, style))
    return tuple(found)


def lead(lines: Iterable[Line], first: Run, rest: Run) -> list[Line]:
    """Lines with something in front: of the first, and of those after it."""
    return [(rest if at else first, *line) for at, line in enumerate(lines)]


def margin(sign: str = " ", style: str = "") -> Run:
    """The columns that are ours, with a sign in them. The first one is left to the cursor."""
    return f" {sign} ", style


def under(lines: Iterable[Line], sign: str = " ", style: str = "", rest: str = "") -> list[Line]:
    """Lines beside our columns; the sign stands at the first of them, and `rest` at the others."""
    return lead(lines, margin(sign, style), margin(rest or " ", style))


def plain(line: Line) -> str:
    """Only its text."""
    return "".join(text for text, _ in line)
