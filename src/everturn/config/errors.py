"""Configuration problems: all problems of files and variables at once, each with its position."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TypeVar

from msgspec import Struct

from everturn.errors import ConfigError

T = TypeVar("T")


class SourcePosition(Struct, frozen=True, order=True):
    """A position: a file with line and column, or an environment variable (which has neither)."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """As editors and compilers write it."""
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


class ConfigProblem(Struct, frozen=True):
    """One problem: its position, its key, and how to fix it."""

    where: SourcePosition
    key: str
    text: str

    def __str__(self) -> str:
        """Return one line."""
        return f"{self.where}: {self.key}: {self.text}" if self.key else f"{self.where}: {self.text}"


class ConfigProblems(ConfigError):
    """All problems in one error, one per line."""

    def __init__(self, troubles: Iterable[ConfigProblem]) -> None:
        self.problems = tuple(sorted(troubles, key=lambda problem: problem.where))
        super().__init__("\n".join(map(str, self.problems)))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `did you mean …?` or, without a close match, the known names."""
    names = list(known)
    close = get_close_matches(name.lower(), names, 1, 0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"there are: {', '.join(names)}" if names else "there are none"
