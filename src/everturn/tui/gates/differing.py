"""What changes → rows: signs and colours, below each other or side by side. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from everturn.terminal.exact import hidden, seen, wrapped
from everturn.tui.gates.rows import INDENT, Row, beside, marked

Line = tuple[str, str]
"""A sign, and a text: + - and a blank for lines that come, go or stay, @ for a place, h for names and remarks."""
STYLES: Final[dict[str, str]] = {"+": "add", "-": "del", " ": "", "@": "dim", "h": "head"}
SHOWN: Final[dict[str, str]] = {"+": "+ ", "-": "− ", " ": "  ", "@": "", "h": ""}
MOST: Final = 2000  # lines of either text that are compared; longer ones are shown as replaced
SIDES: Final = 100  # columns from which on two sides stand beside each other


def is_diff(text: str) -> bool:
    """Whether a text is a unified diff."""
    return (
        re.match(r"--- .*\n\+\+\+ .*(\n|\Z)", text) is not None
        or re.search(r"^@@ -\d+", text, re.MULTILINE) is not None
    )


def read(text: str) -> Iterator[Line]:
    """A unified diff, line by line, with nothing left out."""
    is_in_hunk = False
    for line in text.removesuffix("\n").split("\n"):
        is_in_hunk = is_in_hunk or line.startswith("@@")
        if line.startswith("@@"):
            yield "@", line
        elif is_in_hunk and line[:1] in ("+", "-", " "):
            yield line[:1], line[1:]
        else:
            yield "h", line


def edit_of(arguments: dict[str, Any] | None) -> tuple[str, str] | None:
    """The two texts of a call that puts one in the place of the other."""
    old, new = (arguments or {}).get("old_text"), (arguments or {}).get("new_text")
    return (old, new) if isinstance(old, str) and isinstance(new, str) else None


def differ(before: str, after: str) -> list[Line]:
    """What becomes of a text, line by line."""
    old, new = before.split("\n"), after.split("\n")
    if len(old) > MOST or len(new) > MOST:
        return [*(("-", line) for line in old), *(("+", line) for line in new)]
    lines: list[Line] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            lines += [(" ", line) for line in old[a:b]]
        else:
            lines += [*(("-", line) for line in old[a:b]), *(("+", line) for line in new[c:d])]
    return lines


def drawn(lines: Sequence[Line], width: int, is_wide: bool) -> Iterator[Row]:
    """The lines, whole; side by side where there is room."""
    if is_wide and width >= SIDES:
        yield from _sides(lines, width)
        return
    for sign, text in lines:
        yield from _line(sign, text, width)


def _line(sign: str, text: str, width: int) -> Iterator[Row]:
    style, lead, marks = STYLES[sign], SHOWN[sign], hidden(text) > 0
    for piece in wrapped(seen(text), width - len(INDENT) - 2):
        yield ((INDENT, ""), (lead, style), *marked(piece, style, marks))
        lead = " " * len(lead)


def _sides(lines: Sequence[Line], width: int) -> Iterator[Row]:
    room = (width - 3) // 2
    gone: list[Row] = []
    come: list[Row] = []
    for sign, text in (*lines, ("h", "")):
        if sign == "-" and come:  # what goes after something came is another place
            yield from beside(gone, come, room)
            gone, come = [], []
        if sign == "-":
            gone += _line(sign, text, room)
        elif sign == "+":
            come += _line(sign, text, room)
        else:
            yield from beside(gone, come, room)
            gone, come = [], []
            if sign == " ":
                yield from beside(_line(sign, text, room), _line(sign, text, room), room)
            elif text:
                yield from _line(sign, text, width)
