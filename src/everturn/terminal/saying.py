"""What the chat has to say → the screen, behind a sign, or stderr where the output is for the model alone."""

from __future__ import annotations

import sys

from everturn.terminal.agreeing import agreed
from everturn.terminal.exact import STEP, write
from everturn.terminal.screen import Screen, printable, prose, typeset


class Sayer:
    """Says what the model did not say: on the screen, or beside what goes into a pipe."""

    def __init__(self, color: bool) -> None:
        self._color = color
        self.is_bare = not sys.stdout.isatty()

    def screen(self) -> Screen:
        """As wide as the terminal is now."""
        return Screen(sys.stdout, self._color, gutter=0, width=0, safe=prose if self.is_bare else typeset)

    def __call__(self, text: str, style: str = "dim", sign: str = "·", label: str = "") -> None:
        """Say it, behind a sign."""
        if self.is_bare:
            print(f"everturn: {label}{printable(text)}", file=sys.stderr)
        else:
            screen = self.screen()
            screen.row(f"{screen.sign(sign)} {label}", text, style)

    def show(self, lines: list[str]) -> None:
        """Show lines of somebody else's, exactly."""
        write(self.screen(), " " * 2 * STEP, lines)

    async def agreed(self, question: str) -> bool:
        """Ask whoever sits in front of it."""
        return await agreed(self.screen(), question)
