"""What a seeded bug is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A bug: in `file`, `old` (which stands there exactly once) becomes `new`; `test` fails then."""

    name: str
    file: str
    old: str
    new: str
    test: str
