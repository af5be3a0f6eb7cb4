"""Pieces of calls → which call each belongs to, also where the vendor numbers them badly or not at all.

Seen in life: no index, the same index for all, an index that starts at 1, no id, a blank one, the name in every piece.
"""

from __future__ import annotations

from everturn.core.canonical import parse_object

LOOK = 8192  # characters of arguments worth looking at to see whether a call is whole


class _Call:
    __slots__ = ("id", "is_named", "pieces", "size")

    def __init__(self) -> None:
        self.id = ""
        self.is_named = False
        self.pieces: list[str] = []
        self.size = 0

    def grow(self, arguments: str) -> None:
        if self.size <= LOOK:
            self.size += len(arguments)
            self.pieces.append(arguments)

    @property
    def is_whole(self) -> bool:
        return self.size <= LOOK and parse_object("".join(self.pieces)) is not None


class Slots:
    """The calls of one answer, numbered by us from 0."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, int] = {}
        self._by_id: dict[str, int] = {}

    def __len__(self) -> int:
        """How many calls there are."""
        return len(self._calls)

    def find(self, index: int | None, id: str, name: str, arguments: str) -> int:
        """The number of the call this piece belongs to, which may be a new one."""
        if index is not None and not id and not name:  # what nearly every piece is like
            slot = self._by_index.get(index)
            if slot is not None:
                self._calls[slot].grow(arguments)
                return slot
        slot = self._known(index, id, bool(name and arguments))
        if slot is None:
            slot = len(self._calls)
            self._calls.append(_Call())
        call = self._calls[slot]
        if index is not None:
            self._by_index[index] = slot
        if id and not call.id:
            call.id = id
            self._by_id[id] = slot
        call.is_named = call.is_named or bool(name)
        call.grow(arguments)
        return slot

    def _known(self, index: int | None, id: str, may_begin: bool) -> int | None:
        if id in self._by_id:
            slot = self._by_id[id]
            # Some give every call of a tool the same id; then its number tells them apart.
            is_another = index is not None and index not in self._by_index and may_begin and self._calls[slot].is_whole
            return None if is_another else slot
        if index is not None:
            slot = self._by_index.get(index)
        else:
            slot = len(self._calls) - 1 if self._calls else None
        if slot is None:
            return None
        call = self._calls[slot]
        if id and call.id:  # another id: all calls carry the same index, or none does
            return None
        if may_begin and not id and call.is_named and call.is_whole:
            return None
        return slot
