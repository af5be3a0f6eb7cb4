"""Memory files: the memory of the user who started a turn, as its tools read and change it.

A change has the key of its call, so that a call that is run again after a crash changes nothing a second time, and the
marks of the conversation, so that what came from untrusted text stays untrusted in every session that reads it.
"""

from __future__ import annotations

from collections.abc import Sequence

from everturn.calls.recall import owner_of
from everturn.calls.suspend import ToolWait
from everturn.core.memory.user_memory import (
    MemoryChange,
    MemoryFile,
    MemoryFileInfo,
    MemoryMarks,
    MemoryOrigin,
    MemoryReceipt,
)


class TurnMemory:
    """The memory files of a turn's user."""

    def __init__(self, call: str, waiting: ToolWait) -> None:
        self._call, self._waiting = call, waiting

    async def files(self) -> Sequence[MemoryFileInfo]:
        """All files, by path."""
        run = self._waiting.run
        return await run.setup.store.user_memory.files(*owner_of(run, "memory"))

    async def file(self, path: str) -> MemoryFile | None:
        """One file; None if there is none."""
        run = self._waiting.run
        return await run.setup.store.user_memory.file(*owner_of(run, "memory"), path)

    async def change(self, change: MemoryChange, base: str = "") -> MemoryReceipt:
        """Make a change, once for this call."""
        run = self._waiting.run
        untrusted, sensitive = await run.taint()
        return await run.setup.store.user_memory.change(
            *owner_of(run, "memory"),
            change,
            at=run.now(),
            marks=MemoryMarks(untrusted, sensitive),
            base=base,
            origin=MemoryOrigin(run.session, self._call),
        )
