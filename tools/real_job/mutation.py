"""Mutations: one token of a source file replaced by another of the same kind."""

from __future__ import annotations

import io
import random
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

GROUPS = (
    ("<", "<=", ">", ">=", "==", "!="),
    ("+", "-", "*", "//", "%"),
    ("+=", "-="),
    ("and", "or"),
    ("True", "False"),
)
ALTERNATIVES = {token: [other for other in group if other != token] for group in GROUPS for token in group}


class Mutation(Struct, frozen=True):
    """A token of a file, and what replaces it."""

    line: int  # from 1
    column: int
    old: str
    new: str

    def apply(self, line: str) -> str:
        """The line with the token replaced."""
        return line[: self.column] + self.new + line[self.column + len(self.old) :]


def alternatives(token: str) -> list[str]:
    """What may have stood in the place of a token."""
    if token.isdecimal() and len(token) <= 4:
        return [str(int(token) + 1), *([str(int(token) - 1)] if int(token) else [])]
    return ALTERNATIVES.get(token, [])


def mutations(source: str) -> Iterator[Mutation]:
    """Every mutation of a source text."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return
    for token in tokens:
        if token.type in (tokenize.OP, tokenize.NAME, tokenize.NUMBER):
            for new in alternatives(token.string):
                yield Mutation(token.start[0], token.start[1], token.string, new)


def plant(files: list[Path], seed: int, count_failures: Callable[[], int], most: int = 6) -> tuple[Path, Mutation]:
    """Change one token of one file, such that some tests fail, and at most `most`.

    Raises:
        LookupError: no mutation that was tried does.
    """
    everything = [(file, found) for file in files for found in mutations(file.read_text(encoding="utf-8"))]
    random.Random(seed).shuffle(everything)
    for file, mutation in everything[:200]:
        original = file.read_text(encoding="utf-8")
        lines = original.splitlines(keepends=True)
        lines[mutation.line - 1] = mutation.apply(lines[mutation.line - 1])
        file.write_text("".join(lines), encoding="utf-8")
        if 0 < count_failures() <= most:
            return file, mutation
        file.write_text(original, encoding="utf-8")
    raise LookupError("no mutation makes a test fail")
