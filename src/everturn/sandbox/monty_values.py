"""A value of a program that we do not trust → JSON data, if it is that and not too much of it."""

from __future__ import annotations

import datetime
from typing import Final, cast

DEPTH: Final = 32
VALUES: Final = 20_000  # to walk through so many takes up to 50 ms
SIZE: Final = 1_000_000  # characters


class Unfit(Exception):
    """A value that is no JSON, or too much of it."""


class Room:
    """How much may still be taken in."""

    def __init__(self) -> None:
        self.values, self.size = VALUES, SIZE

    def take(self, size: int) -> None:
        """Take in one value."""
        self.values -= 1
        self.size -= size
        if self.values < 0 or self.size < 0:
            raise Unfit(f"too much at once; at most {VALUES} values and {SIZE} characters can be given")


def plain(value: object, room: Room, depth: int = 0) -> object:
    """A value of the code as JSON data. What is in it twice is taken in twice, so that a small bomb is found out.

    Raises:
        Unfit: it is none, or too much.
    """
    if depth > DEPTH:
        raise Unfit(f"lists and dicts can be given at most {DEPTH} deep, and not inside of themselves")
    room.take(len(value) if isinstance(value, str) else 0)
    match value:
        case None | bool():
            return value
        case str():
            return value.encode(errors="replace").decode()
        case int() if value.bit_length() < 64:
            return value
        case float() if value - value == 0:  # neither infinite nor NaN
            return value
        case list() | tuple():
            return [plain(one, room, depth + 1) for one in cast("list[object]", value)]
        case dict():
            rows = cast("dict[object, object]", value)
            if not all(isinstance(key, str) for key in rows):
                raise Unfit("the keys of a dict must be texts")
            return {str(plain(key, room, depth)): plain(one, room, depth + 1) for key, one in rows.items()}
        case int() | float():
            raise Unfit("a number that JSON does not have (NaN, infinite, or more than 64 bits); give it as text")
        case _:
            raise Unfit(f"a {_kind(value)} cannot be given; give text, numbers, lists and dicts")


def shown(value: object) -> object:
    """What the code came to: as data if it is, else described."""
    try:
        return plain(value, Room())
    except Unfit:
        pass
    if isinstance(value, list | tuple | dict | set | frozenset):
        held = cast("list[object]", value)
        return f"<{_kind(held)} of {len(held)}, and more than plain data; print what matters>"
    if isinstance(value, int):
        return f"<int of {value.bit_length()} bits>"
    if isinstance(value, float | datetime.date | datetime.time | datetime.timedelta):
        return str(value)
    return f"<{_kind(value)}>"


def _kind(value: object) -> str:
    return str(getattr(value, "name", ""))[:80] or type(value).__name__
