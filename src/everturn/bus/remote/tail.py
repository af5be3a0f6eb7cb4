"""Remote tail: a reader in this process of a turn that another process drives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CoroutineType
from typing import Any

from everturn.bus.remote.inbound import InboundTurn
from everturn.core.deltas import Frame
from everturn.core.ports import LiveTail


class RemoteTail:
    """The local tail of a turn; when it is closed, the bus is told that this reader has left."""

    def __init__(self, inbound: InboundTurn, tail: LiveTail, remove_reader: Callable[[InboundTurn], None]) -> None:
        self._inbound, self._tail, self._remove_reader = inbound, tail, remove_reader
        self._has_left = False

    def __aiter__(self) -> RemoteTail:
        return self

    def __anext__(self) -> CoroutineType[Any, Any, Sequence[Frame]]:
        return self._tail.__anext__()  # not awaited here: a layer less for every batch

    async def aclose(self) -> None:
        """Stop reading."""
        await self._tail.aclose()
        if not self._has_left:
            self._has_left = True
            self._remove_reader(self._inbound)
