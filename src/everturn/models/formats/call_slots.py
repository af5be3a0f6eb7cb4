"""Call slots: assigns the pieces of streamed tool calls to calls, also where the vendor numbers them badly.

Observed: no index, the same index for all, an index that starts at 1, no id, a blank one, the name in every piece.
"""

from __future__ import annotations

from everturn.core.canonical_json import parse_object

CHECK_LIMIT = 8192  # characters of arguments up to which completeness is checked


class _SlotCall:
    __slots__ = ("id", "is_named", "pieces", "size")

    def __init__(self) -> None:
        self.id = ""
        self.is_named = False
        self.pieces: list[str] = []
        self.size = 0

    def grow(self, arguments: str) -> None:
        if self.size <= CHECK_LIMIT:
            self.size += len(arguments)
            self.pieces.append(arguments)

    @property
    def is_whole(self) -> bool:
        return self.size <= CHECK_LIMIT and parse_object("".join(self.pieces)) is not None


class CallSlots:
    """The calls of one answer, numbered from 0."""

    def __init__(self) -> None:
        self._calls: list[_SlotCall] = []
        self._by_index: dict[int, int] = {}
        self._by_id: dict[str, int] = {}

    def __len__(self) -> int:
        """Return the number of calls."""
        return len(self._calls)

    def find(self, index: int | None, id: str, name: str, arguments: str) -> int:
        """Return the number of the call that this piece belongs to; it may be a new one."""
        if index is not None and not id and not name:  # the common case
            slot = self._by_index.get(index)
            if slot is not None:
                self._calls[slot].grow(arguments)
                return slot
        slot = self._known(index, id, bool(name and arguments))
        if slot is None:
            slot = len(self._calls)
            self._calls.append(_SlotCall())
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
            # Some servers give every call of a tool the same id; then the index distinguishes them.
            is_another = index is not None and index not in self._by_index and may_begin and self._calls[slot].is_whole
            return None if is_another else slot
        if index is not None:
            slot = self._by_index.get(index)
        else:
            slot = len(self._calls) - 1 if self._calls else None
        if slot is None:
            return None
        call = self._calls[slot]
        if id and call.id:  # another id: all calls have the same index, or none has one
            return None
        if may_begin and not id and call.is_named and call.is_whole:
            return None
        return slot
