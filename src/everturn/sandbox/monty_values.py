"""Values from untrusted code: converts them to JSON data, if they are that and not too large."""

from __future__ import annotations

import datetime
from typing import Final, cast

DEPTH: Final = 32
VALUES: Final = 20_000  # walking so many takes up to 50 ms
SIZE: Final = 1_000_000  # characters


class NotJson(Exception):
    """A value that is not JSON, or too large."""


class ValueBudget:
    """How many values and characters may still be converted."""

    def __init__(self) -> None:
        self.values, self.size = VALUES, SIZE

    def spend(self, size: int) -> None:
        """Count one value."""
        self.values -= 1
        self.size -= size
        if self.values < 0 or self.size < 0:
            raise NotJson(f"the value is too large; at most {VALUES} values and {SIZE} characters can be passed")


def to_json_value(value: object, room: ValueBudget, depth: int = 0) -> object:
    """A value of the code as JSON data. A value that occurs twice counts twice, so that a small bomb is detected.

    Raises:
        NotJson: the value is not JSON, or too large.
    """
    if depth > DEPTH:
        raise NotJson(f"lists and dicts can be nested at most {DEPTH} levels deep, and cannot contain themselves")
    room.spend(len(value) if isinstance(value, str) else 0)
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
            return [to_json_value(item, room, depth + 1) for item in cast("list[object]", value)]
        case dict():
            rows = cast("dict[object, object]", value)
            if not all(isinstance(key, str) for key in rows):
                raise NotJson("the keys of a dict must be strings")
            return {
                str(to_json_value(key, room, depth)): to_json_value(item, room, depth + 1) for key, item in rows.items()
            }
        case int() | float():
            raise NotJson("a number that JSON does not have (NaN, infinite, or more than 64 bits); pass it as a string")
        case _:
            raise NotJson(f"a {_kind(value)} cannot be passed; use strings, numbers, lists and dicts")


def describe_value(value: object) -> object:
    """The result of the code: as data if possible, else described."""
    try:
        return to_json_value(value, ValueBudget())
    except NotJson:
        pass
    if isinstance(value, list | tuple | dict | set | frozenset):
        container = cast("list[object]", value)
        return f"<{_kind(container)} of {len(container)}, and more than plain data; print what matters>"
    if isinstance(value, int):
        return f"<int of {value.bit_length()} bits>"
    if isinstance(value, float | datetime.date | datetime.time | datetime.timedelta):
        return str(value)
    return f"<{_kind(value)}>"


def _kind(value: object) -> str:
    return str(getattr(value, "name", ""))[:80] or type(value).__name__
