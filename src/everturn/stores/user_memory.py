"""In-memory `UserMemory`: the reference implementation of the memory files of users.

No method awaits anything between its first read and its last write, so each is one transaction.
"""

from __future__ import annotations

from msgspec.structs import replace

from everturn.core.memory.user_memory import (
    NO_MARKS,
    MemoryChange,
    MemoryFile,
    MemoryFileInfo,
    MemoryMarks,
    MemoryOrigin,
    MemoryReceipt,
    apply_memory_change,
    memory_base,
)
from everturn.errors import HashMismatch

MEMORY_CHANGED = "the memory changed since it was read; read it again, and make the change anew"


class DictUserMemory:
    """The memory files of the users of one process; they end with it."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], dict[str, MemoryFile]] = {}
        self._receipts: dict[tuple[str, str], MemoryReceipt] = {}  # by session and key

    async def files(self, tenant: str, user: str) -> list[MemoryFileInfo]:
        """Return all files of a user, by path."""
        return sorted((file.info for file in self._of(tenant, user).values()), key=lambda info: info.path)

    async def file(self, tenant: str, user: str, path: str) -> MemoryFile | None:
        """Return one file; None if there is none."""
        return self._of(tenant, user).get(path)

    async def change(
        self,
        tenant: str,
        user: str,
        change: MemoryChange,
        *,
        at: float,
        marks: MemoryMarks = NO_MARKS,
        base: str = "",
        origin: MemoryOrigin | None = None,
    ) -> MemoryReceipt:
        """Make a change, once for each origin."""
        if origin is not None and (earlier := self._receipts.get((origin.session, origin.key))) is not None:
            return earlier
        files = self._of(tenant, user)
        infos = {path: file.info for path, file in files.items()}
        if base and memory_base(infos, change.path) != base:
            raise HashMismatch(MEMORY_CHANGED)
        current = files.get(change.path)
        edit = apply_memory_change(change, infos, current.text if current is not None else None, at=at, marks=marks)
        if edit.written is not None:
            files[edit.written.info.path] = edit.written
        for path in edit.removed:
            del files[path]
        for path, to in edit.moved:
            file = files.pop(path)
            files[to] = MemoryFile(replace(file.info, path=to, updated=at, marks=file.info.marks | marks), file.text)
        self._files[tenant, user] = files
        if origin is not None:
            self._receipts[origin.session, origin.key] = edit.receipt
        return edit.receipt

    async def erase(self, tenant: str, user: str) -> int:
        """Erase all files of a user, and return their number."""
        return len(self._files.pop((tenant, user), {}))

    def forget_session(self, session: str) -> None:
        """Remove the receipts of an erased session: its calls are not run again."""
        self._receipts = {key: receipt for key, receipt in self._receipts.items() if key[0] != session}

    def _of(self, tenant: str, user: str) -> dict[str, MemoryFile]:
        return self._files.get((tenant, user), {})
