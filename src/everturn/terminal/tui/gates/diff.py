"""Diff rows: changes with signs and colours, in one column or side by side. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from rich.cells import cell_len

from everturn.terminal.text.visible_text import escape_invisible, wrap_line
from everturn.terminal.tui.gates.rows import INDENT, Row, join_columns, mark_escapes

Line = tuple[str, str]
"""A sign and a text: + - and a blank for added, removed and unchanged lines, @ for a hunk, h for any other line."""
STYLES: Final[dict[str, str]] = {"+": "add", "-": "del", " ": "", "@": "dim", "h": "head"}
SHOWN: Final[dict[str, str]] = {"+": "+ ", "-": "− ", " ": "  ", "@": "", "h": ""}
MAX_COMPARED: Final = 2000  # lines of either text that are compared; a longer text is shown as replaced
MIN_SIDE_BY_SIDE: Final = 100  # columns from which on the diff is side by side


def is_diff(text: str) -> bool:
    """Whether a text is a unified diff."""
    return (
        re.match(r"--- .*\n\+\+\+ .*(\n|\Z)", text) is not None
        or re.search(r"^@@ -\d+", text, re.MULTILINE) is not None
    )


def parse_diff(text: str) -> Iterator[Line]:
    """Yield a unified diff line by line, with nothing left out."""
    is_in_hunk = False
    for line in text.removesuffix("\n").split("\n"):
        is_in_hunk = is_in_hunk or line.startswith("@@")
        if line.startswith("@@"):
            yield "@", line
        elif is_in_hunk and line[:1] in ("+", "-", " "):
            yield line[:1], line[1:]
        else:
            yield "h", line


def edit_texts(arguments: dict[str, Any] | None) -> tuple[str, str] | None:
    """Return the old and the new text of a call that replaces one by the other."""
    old, new = (arguments or {}).get("old_text"), (arguments or {}).get("new_text")
    return (old, new) if isinstance(old, str) and isinstance(new, str) else None


def diff_texts(before: str, after: str) -> list[Line]:
    """Return the changes from one text to another, line by line."""
    old, new = before.split("\n"), after.split("\n")
    if len(old) > MAX_COMPARED or len(new) > MAX_COMPARED:
        return [*(("-", line) for line in old), *(("+", line) for line in new)]
    lines: list[Line] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            lines += [(" ", line) for line in old[a:b]]
        else:
            lines += [*(("-", line) for line in old[a:b]), *(("+", line) for line in new[c:d])]
    return lines


def language_of(path: str) -> str:
    """The language of a file by its name, for syntax colours; "" if it is not known."""
    return path.rpartition(".")[2].lower() if "." in path else ""


def diff_rows(lines: Sequence[Line], width: int, is_wide: bool, language: str = "") -> Iterator[Row]:
    """Return the whole diff as rows, with syntax colours; side by side if it is wide enough and has two sides."""
    if is_wide and width >= MIN_SIDE_BY_SIDE and {"+", "-"} <= {sign for sign, _ in lines}:
        yield from _sides(lines, width, language)
        return
    for sign, text in lines:
        yield from _line(sign, text, width, language)


def _line(sign: str, text: str, width: int, language: str) -> Iterator[Row]:
    style, lead, shown = STYLES[sign], SHOWN[sign], escape_invisible(text)
    marks = shown != text  # a blank at the end of a line is escaped, too
    colours = _colours(shown, language) if sign in "+- " and not marks else [""] * len(shown)
    room, at = width - len(INDENT) - 2, 0
    for piece in wrap_line(shown, room):
        spans = list(mark_escapes(piece, style, marks))
        if any(colours[at : at + len(piece)]):
            spans = [(part, f"{style} {colour}") for part, colour in _runs(piece, colours[at : at + len(piece)])]
        fill = (" " * max(0, room - cell_len(piece)), style) if sign in "+-" else ("", "")
        yield ((INDENT, ""), (lead, style), *spans, fill)
        lead, at = " " * len(lead), at + len(piece)


def _colours(line: str, language: str) -> list[str]:
    """The style of each character of a line of code. A line is read by itself: a text over several lines has no colour."""
    from everturn.terminal.tui.render.code import highlight

    runs = highlight(line, language)
    colours = [style for text, style in (runs[0] if runs else ()) for _ in text]
    return colours if len(colours) == len(line) else [""] * len(line)


def _runs(text: str, colours: Sequence[str]) -> Iterator[tuple[str, str]]:
    for colour, group in groupby(zip(text, colours, strict=True), key=itemgetter(1)):
        yield "".join(character for character, _ in group), colour


def _sides(lines: Sequence[Line], width: int, language: str) -> Iterator[Row]:
    room = (width - 3) // 2
    removed: list[Row] = []
    added: list[Row] = []
    for sign, text in (*lines, ("h", "")):
        if sign == "-" and added:  # a removal after an addition belongs to the next change
            yield from join_columns(removed, added, room)
            removed, added = [], []
        if sign == "-":
            removed += _line(sign, text, room, language)
        elif sign == "+":
            added += _line(sign, text, room, language)
        else:
            yield from join_columns(removed, added, room)
            removed, added = [], []
            if sign == " ":
                yield from join_columns(_line(sign, text, room, language), _line(sign, text, room, language), room)
            elif text:
                yield from _line(sign, text, width, language)
