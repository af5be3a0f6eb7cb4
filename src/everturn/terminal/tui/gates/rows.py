"""Rows of a dialog: text wrapped to a width, each span with its style, and never truncated. Pure.

A style is a name here; `scroll` maps it to colours. Text from a model or a tool is escaped with `visible_text` before
it comes here, and is indented further than our own text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.cells import cell_len

from everturn.terminal.text.visible_text import wrap_line

Span = tuple[str, str]
"""A text, and the name of its style."""
Row = tuple[Span, ...]
MIN_TEXT_WIDTH: Final = 14  # columns that a text needs beside its head; with fewer it is written below
INDENT: Final = "  "
_ESCAPE: Final = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")


def message_rows(text: str, width: int, style: str = "", sign: str = "") -> Iterator[Row]:
    """Return our own text, wrapped, with a hanging indent."""
    lead = f"{sign} " if sign else ""
    for index, piece in enumerate(wrap_line(text, width - cell_len(lead))):
        yield ((lead if not index else " " * cell_len(lead), style), (piece.lstrip(" ") if index else piece, style))


def label_rows(head: str, text: str, width: int, pad: int, style: str = "") -> Iterator[Row]:
    """Return a label and its text, in two columns."""
    pad = min(pad, max(width - MIN_TEXT_WIDTH, 0))
    for index, piece in enumerate(wrap_line(text, width - pad)):
        lead = "" if index else head
        lead += " " * max(0, pad - cell_len(lead))
        yield ((lead, "dim"), (piece.lstrip(" ") if index else piece, style))


def text_rows(
    lines: Sequence[str], width: int, head: str = "", pad: int = 0, style: str = "", marks: bool = False
) -> Iterator[Row]:
    """Return lines of untrusted text beside their head, whole. If there are several, a bar marks where each begins."""
    before = INDENT + head
    before += " " * max(int(bool(head)), pad + len(INDENT) - cell_len(before))
    if width - cell_len(before) < MIN_TEXT_WIDTH and head:
        yield from ((("", ""), (INDENT + piece, "name")) for piece in wrap_line(head, width - len(INDENT)))
        before = INDENT * 2
    bar = "│ " if len(lines) > 1 else ""
    for line in lines:
        lead = bar
        for piece in wrap_line(line, width - cell_len(before) - len(bar)):
            yield ((before, "name"), (lead, "dim"), *mark_escapes(piece, style, marks))
            before, lead = " " * cell_len(before), " " * len(bar)


def mark_escapes(text: str, style: str, marks: bool = True) -> Iterator[Span]:
    """Split a text into spans, with escapes in a style of their own."""
    start = 0
    for match in _ESCAPE.finditer(text) if marks else ():
        if match.start() > start:
            yield text[start : match.start()], style
        yield match[0], "mark"
        start = match.end()
    if start < len(text) or not text:
        yield text[start:], style


def join_columns(left: Iterable[Row], right: Iterable[Row], width: int) -> Iterator[Row]:
    """Return two columns of rows, each `width` wide."""
    left_rows, right_rows = list(left), list(right)
    for index in range(max(len(left_rows), len(right_rows))):
        row = left_rows[index] if index < len(left_rows) else ()
        gap = " " * max(0, width - sum(cell_len(text) for text, _ in row))
        yield (*row, (gap, ""), (" │ ", "dim"), *(right_rows[index] if index < len(right_rows) else ()))


def rows_text(rows: Iterable[Row]) -> str:
    """Return the text of rows, without styles."""
    return "\n".join("".join(text for text, _ in row).rstrip() for row in rows)
