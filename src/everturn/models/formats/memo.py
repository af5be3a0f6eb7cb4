"""Memo: caches values that are computed from immutable objects, by the identity of the object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Memo(Generic[T]):
    """Computed values by the id of their source. When there are too many, all are dropped."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: dict[int, tuple[object, T]] = {}  # with the source object: otherwise its id could be reused

    def get(self, thing: object, make: Callable[[Any], T]) -> T:
        """Return the value for this object; compute it on the first call."""
        entry = self._entries.get(id(thing))
        if entry is not None:
            return entry[1]
        if len(self._entries) >= self._limit:
            self._entries.clear()
        value = make(thing)
        self._entries[id(thing)] = thing, value
        return value
