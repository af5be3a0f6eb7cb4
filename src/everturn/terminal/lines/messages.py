"""Messages of the chat itself: on the screen behind a sign, or on stderr where stdout is for the answer alone."""

from __future__ import annotations

import sys

from everturn.terminal.lines.confirm import confirm
from everturn.terminal.text.screen import LineScreen, escape_and_expand_blanks, escape_prose, escape_unprintable
from everturn.terminal.text.visible_text import INDENT, print_lines


class MessageWriter:
    """Prints messages that are not the model's: on the screen, or to stderr if stdout is a pipe or a file."""

    def __init__(self, color: bool) -> None:
        self._color = color
        self.is_bare = not sys.stdout.isatty()

    def screen(self) -> LineScreen:
        """Return a screen as wide as the terminal is now."""
        return LineScreen(
            sys.stdout, self._color, gutter=0, width=0, safe=escape_prose if self.is_bare else escape_and_expand_blanks
        )

    def __call__(self, text: str, style: str = "dim", sign: str = "·", label: str = "") -> None:
        """Print a message behind a sign."""
        if self.is_bare:
            print(f"everturn: {label}{escape_unprintable(text)}", file=sys.stderr)
        else:
            screen = self.screen()
            screen.row(f"{screen.sign(sign)} {label}", text, style)

    def show(self, lines: list[str]) -> None:
        """Print escaped lines of a third party, exactly."""
        print_lines(self.screen(), " " * 2 * INDENT, lines)

    async def confirm(self, question: str) -> bool:
        """Ask the person a yes-or-no question."""
        return await confirm(self.screen(), question)
