"""Calls that go round in circles: the same ones again, with a period of up to four. Pure.

Names and arguments are compared, not texts: other spaces or another order of keys make no other call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from everturn.core.canonical import canonical, digest, parse_object

TIMES: Final = 3  # that a pattern may not reach without somebody being asked
LONGEST: Final = 4  # calls of a pattern
TRAIL: Final = TIMES * LONGEST  # calls to look at
_SHORT: Final = 200


def mark_of(name: str, arguments: str) -> str:
    """By what the same call is known again, from what a model wrote."""
    parsed = parse_object(arguments)
    return mark_as(name, arguments if parsed is None else canonical(parsed))


def mark_as(name: str, arguments: str) -> str:
    """The same, where the name is a tool's own and the arguments are in their canonical form."""
    text = f"{name} {arguments}"
    return text if len(text) <= _SHORT else digest(text)


def period_of(trail: Sequence[str]) -> int:
    """How long the pattern is whose third round the last call completes; 0: there is none."""
    for period in range(1, LONGEST + 1):
        seen = trail[-TIMES * period :]
        if len(seen) == TIMES * period and all(seen[at] == seen[at % period] for at in range(period, len(seen))):
            return period
    return 0
