"""Streaming Markdown in the scrollback, by rich: finished pieces are printed once, the unfinished end is redrawn.

`everturn chat --plain` uses it on a terminal with colours, if Textual is installed. Everywhere else the text stays as
it was written.
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

from everturn.terminal.tui.render.markdown import draw_markdown
from everturn.terminal.tui.render.markdown_split import MarkdownSplitter
from everturn.terminal.tui.render.text import Line

REDRAW_INTERVAL: Final = 0.05  # seconds between two redraws
MAX_WIDTH: Final = 100  # columns; longer lines are hard to read
UP_AND_CLEAR: Final = "\x1b[{}A\x1b[J"
STYLES: Final = {
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
    """Prints a growing text on a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._console = Console(
            file=out, force_terminal=True, color_system="standard", highlight=False, markup=False, emoji=False
        )
        self._out = out
        self._begin()

    def _begin(self) -> None:
        self._chunks = MarkdownSplitter()
        self._pieces: list[str] = []
        self._printed = 0  # finished pieces
        self._tail = 0  # lines of the unfinished end that are on the screen
        self._due: asyncio.TimerHandle | None = None

    def feed(self, text: str) -> None:
        """Take a piece of the streamed text; it is drawn within `REDRAW_INTERVAL`."""
        self._pieces.append(text)
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(REDRAW_INTERVAL, self._draw)

    def end(self) -> None:
        """Print the rest: the text is complete, or other output follows."""
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
        room = min(size.columns, MAX_WIDTH) - 1
        rest = self._chunks.feed(text)
        self._erase()
        done = self._chunks.finished[self._printed :]
        for index, chunk in enumerate([*done, *(rest if is_over else ())], self._printed):
            # Pieces of one fence stay together; otherwise there is a blank line between them.
            is_continued = chunk.kind == "code" and chunk.first != index
            self._print(([()] if index and not is_continued else []) + draw_markdown(chunk, room))
        self._printed += len(done)
        if rest and not is_over:
            lines = ([()] if self._printed else []) + [line for chunk in rest for line in draw_markdown(chunk, room)]
            lines = lines[-(size.lines - 2) :]  # lines that have scrolled away cannot be redrawn
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
                text.append(piece, _combined_style(style))
            self._console.print(text, crop=False, soft_wrap=True)


@lru_cache(256)
def _combined_style(names: str) -> Style:
    """Return the combined style of several style names."""
    return Style.combine([Style.null(), *(STYLES[name] for name in names.split() if name in STYLES)])


def can_render_markdown(out: TextIO, color: bool) -> bool:
    """Return whether Markdown can be rendered here: the terminal understands colours, and can move the cursor up."""
    return color and out.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
