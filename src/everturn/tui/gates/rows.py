"""Lines of text → rows of a roll: wrapped to a width, each piece with its style, and nothing cut. Pure.

A style is a name here; `roll.py` knows how it looks. Whatever a model or a tool wrote passes `seen` before it comes
here, and stands further to the right than what we say of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.cells import cell_len

from everturn.terminal.exact import wrapped

Span = tuple[str, str]
"""A text, and the name of its style."""
Row = tuple[Span, ...]
LEAST: Final = 14  # columns that a text has beside its head; with fewer it stands below
INDENT: Final = "  "
_ESCAPE: Final = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")


def say(text: str, width: int, style: str = "", sign: str = "") -> Iterator[Row]:
    """Our own words, wrapped; what goes on stands below what begins."""
    lead = f"{sign} " if sign else ""
    for at, piece in enumerate(wrapped(text, width - cell_len(lead))):
        yield ((lead if not at else " " * cell_len(lead), style), (piece.lstrip(" ") if at else piece, style))


def pair(head: str, text: str, width: int, pad: int, style: str = "") -> Iterator[Row]:
    """A head of ours and what there is to say of it, in two columns."""
    pad = min(pad, max(width - LEAST, 0))
    for at, piece in enumerate(wrapped(text, width - pad)):
        lead = "" if at else head
        lead += " " * max(0, pad - cell_len(lead))
        yield ((lead, "dim"), (piece.lstrip(" ") if at else piece, style))


def write(
    lines: Sequence[str], width: int, head: str = "", pad: int = 0, style: str = "", marks: bool = False
) -> Iterator[Row]:
    """Lines of somebody else's beside their head, whole. Where there are several, a bar stands where each begins."""
    before = INDENT + head
    before += " " * max(int(bool(head)), pad + len(INDENT) - cell_len(before))
    if width - cell_len(before) < LEAST and head:
        yield from ((("", ""), (INDENT + piece, "name")) for piece in wrapped(head, width - len(INDENT)))
        before = INDENT * 2
    bar = "│ " if len(lines) > 1 else ""
    for line in lines:
        lead = bar
        for piece in wrapped(line, width - cell_len(before) - len(bar)):
            yield ((before, "name"), (lead, "dim"), *marked(piece, style, marks))
            before, lead = " " * cell_len(before), " " * len(bar)


def marked(text: str, style: str, marks: bool = True) -> Iterator[Span]:
    """A text in which what was written out is set off."""
    at = 0
    for found in _ESCAPE.finditer(text) if marks else ():
        if found.start() > at:
            yield text[at : found.start()], style
        yield found[0], "mark"
        at = found.end()
    if at < len(text) or not text:
        yield text[at:], style


def beside(left: Iterable[Row], right: Iterable[Row], width: int) -> Iterator[Row]:
    """Two columns of rows, each `width` wide."""
    ours, theirs = list(left), list(right)
    for at in range(max(len(ours), len(theirs))):
        one = ours[at] if at < len(ours) else ()
        gap = " " * max(0, width - sum(cell_len(text) for text, _ in one))
        yield (*one, (gap, ""), (" │ ", "dim"), *(theirs[at] if at < len(theirs) else ()))


def text_of(rows: Iterable[Row]) -> str:
    """What stands there, without styles."""
    return "\n".join("".join(text for text, _ in row).rstrip() for row in rows)
