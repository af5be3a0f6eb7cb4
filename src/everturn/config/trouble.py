"""What is wrong in files and variables: all of it at once, each with its place."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TypeVar

from msgspec import Struct

from everturn.errors import ConfigError

T = TypeVar("T")


class Where(Struct, frozen=True, order=True):
    """A place: a file with line and column, or a variable of the environment (which has neither)."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """As editors and compilers write it."""
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


class Trouble(Struct, frozen=True):
    """One thing that makes no sense: where, of which key, and what would."""

    where: Where
    key: str
    text: str

    def __str__(self) -> str:
        """In one line."""
        return f"{self.where}: {self.key}: {self.text}" if self.key else f"{self.where}: {self.text}"


class ConfigTroubles(ConfigError):
    """All that is wrong, in one error: a line for each."""

    def __init__(self, troubles: Iterable[Trouble]) -> None:
        self.troubles = tuple(sorted(troubles, key=lambda one: one.where))
        super().__init__("\n".join(map(str, self.troubles)))


def nearest(name: str, known: Iterable[str]) -> str:
    """`did you mean …?` or, where nothing is near, what there is."""
    there = list(known)
    close = get_close_matches(name.lower(), there, 1, 0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"there are: {', '.join(there)}" if there else "there are none"
