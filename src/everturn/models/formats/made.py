"""What was made of a thing that does not change → the same again, without making it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Made(Generic[T]):
    """Things made of others, found by what they were made of. When there are too many, it begins anew."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._made: dict[int, tuple[object, T]] = {}  # with what it was made of, or its id could mean another by now

    def get(self, thing: object, make: Callable[[Any], T]) -> T:
        """What was made of this very thing, or is made now."""
        found = self._made.get(id(thing))
        if found is not None:
            return found[1]
        if len(self._made) >= self._limit:
            self._made.clear()
        made = make(thing)
        self._made[id(thing)] = thing, made
        return made
