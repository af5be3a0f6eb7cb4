"""An answer while it comes → markdown in scrollback, by rich: what is finished is printed once, the open end is drawn again.

`everturn chat --plain` has it on a terminal with colours, where Textual is installed. Everywhere else a text stays as it
was written.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from functools import lru_cache
from typing import Final, TextIO

from rich.console import Console
from rich.style import Style
from rich.text import Text

from everturn.tui.drawing.ink import Line
from everturn.tui.drawing.markdown import draw
from everturn.tui.drawing.pieces import Pieces

BEAT: Final = 0.05  # seconds between two drawings
WIDEST: Final = 100  # columns; longer lines are hard to read
UP_AND_CLEAR: Final = "\x1b[{}A\x1b[J"
LOOKS: Final = {
    "strong": Style(bold=True),
    "em": Style(italic=True),
    "s": Style(strike=True),
    "heading": Style(bold=True),
    "code": Style(color="cyan"),
    "link": Style(underline=True),
    "dim": Style(dim=True),
    "bullet": Style(color="blue"),
    "quote-bar": Style(dim=True),
    "math": Style(italic=True),
    "code-comment": Style(dim=True),
    "code-keyword": Style(color="magenta"),
    "code-name": Style(color="blue"),
    "code-string": Style(color="green"),
    "code-number": Style(color="yellow"),
    "good": Style(color="green"),
    "bad": Style(color="red"),
    "accent": Style(color="cyan"),
}


class Scrollback:
    """Types a text that grows onto a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._console = Console(
            file=out, force_terminal=True, color_system="standard", highlight=False, markup=False, emoji=False
        )
        self._out = out
        self._begin()

    def _begin(self) -> None:
        self._chunks = Pieces()
        self._pieces: list[str] = []
        self._printed = 0  # finished pieces
        self._tail = 0  # lines of the open end that stand on the screen
        self._due: asyncio.TimerHandle | None = None

    def feed(self, text: str) -> None:
        """Take in what has come; it is drawn within a beat."""
        self._pieces.append(text)
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(BEAT, self._draw)

    def end(self) -> None:
        """Print all that is left: the text is over, or something else is to stand under it."""
        if self._due is not None:
            self._due.cancel()
        if self._pieces:
            self._draw(is_over=True)
        self._begin()

    def _draw(self, is_over: bool = False) -> None:
        self._due = None
        text = "".join(self._pieces)
        self._pieces[:] = [text]
        size = shutil.get_terminal_size()
        room = min(size.columns, WIDEST) - 1
        rest = self._chunks.feed(text)
        self._erase()
        done = self._chunks.finished[self._printed :]
        for at, chunk in enumerate([*done, *(rest if is_over else ())], self._printed):
            # Pieces of one fence stand together; otherwise a blank line is between them.
            goes_on = chunk.kind == "code" and chunk.first != at
            self._print(([()] if at and not goes_on else []) + draw(chunk, room))
        self._printed += len(done)
        if rest and not is_over:
            lines = ([()] if self._printed else []) + [line for chunk in rest for line in draw(chunk, room)]
            lines = lines[-(size.lines - 2) :]  # what has left the screen cannot be drawn over
            self._print(lines)
            self._tail = len(lines)
        self._out.flush()

    def _erase(self) -> None:
        if self._tail:
            self._out.write(UP_AND_CLEAR.format(self._tail))
            self._tail = 0

    def _print(self, lines: list[Line]) -> None:
        for line in lines:
            text = Text(no_wrap=True, overflow="ignore", end="")
            for piece, style in line:
                text.append(piece, _look(style))
            self._console.print(text, crop=False, soft_wrap=True)


@lru_cache(256)
def _look(names: str) -> Style:
    """What names of styles look like, all together."""
    return Style.combine([Style.null(), *(LOOKS[name] for name in names.split() if name in LOOKS)])


def can_typeset(out: TextIO, color: bool) -> bool:
    """Whether markdown can be typeset here: a terminal that understands colours, and can go up a line."""
    return color and out.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
