"""Memory access: the caller's own memory files, and the erasure of those of a user of the tenant.

Nobody reads the files of another user, whatever their role.
"""

from __future__ import annotations

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess, check_user_id
from everturn.access.mcp.logins import erase_logins
from everturn.core.memory.user_memory import (
    MAX_MEMORY_BYTES,
    MAX_MEMORY_FILE_BYTES,
    PROMPT_OWNER_PREFIX,
    MemoryDelete,
    MemoryFile,
    MemoryFileInfo,
    MemoryPut,
    check_memory_text,
    normalize_memory_path,
)
from everturn.errors import ConfigError, ToolError, UnknownFile


class MemoryAccess:
    """Access to memory files."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("viewer")
    async def list(self) -> api.MemoryList:
        """The caller's files, by path."""
        with self.scope.tenant_scope():
            files = await self.scope.store.user_memory.files(*self._owner)
        return api.MemoryList(
            files=[_info_view(info) for info in files], limit=MAX_MEMORY_BYTES, file_limit=MAX_MEMORY_FILE_BYTES
        )

    @needs("viewer")
    async def read(self, path: str) -> api.MemoryFileView:
        """One of the caller's files."""
        with self.scope.tenant_scope():
            file = await self.scope.store.user_memory.file(*self._owner, _path(path))
        if file is None:
            raise UnknownFile("there is no such file")
        return _file_view(file)

    @needs("member")
    async def write(self, put: api.PutMemory) -> api.MemoryFileView:
        """Write a whole file of the caller. With `base`, only if it still has that hash.

        Raises:
            HashMismatch: the file has changed since it was read.
        """
        memory, now, path = self.scope.store.user_memory, self.scope.server_context.app.clock.now(), _path(put.path)
        try:
            check_memory_text(put.text, "text")
            await memory.change(*self._owner, MemoryPut(path, put.text, put.untrusted), at=now, base=put.base)
        except ToolError as error:
            raise ConfigError(str(error)) from None
        return await self.read(path)

    @needs("member")
    async def delete(self, path: str) -> None:
        """Delete a file of the caller, or a directory with its files."""
        memory, now = self.scope.store.user_memory, self.scope.server_context.app.clock.now()
        change = MemoryDelete(_path(path))
        if not change.path:
            raise ConfigError("name a file; an owner erases all files of a user")
        try:
            await memory.change(*self._owner, change, at=now)
        except ToolError:
            raise UnknownFile("there is no such file") from None

    @needs("owner")
    async def erase_user(self, user: str) -> None:
        """Erase all memory files, saved prompts, instructions and logins to MCP servers of a user of the tenant, unread."""
        check_user_id(user, "the id of a user")
        await self.scope.audit_action("memory.erase", user)
        for owner in (user, PROMPT_OWNER_PREFIX + user):
            await self.scope.store.user_memory.erase(self.scope.principal.tenant, owner)
        await erase_logins(self.scope, user)

    @property
    def _owner(self) -> tuple[str, str]:
        return self.scope.principal.tenant, self.scope.principal.user


def _path(text: str) -> str:
    try:
        return normalize_memory_path(text)
    except ToolError as error:
        raise ConfigError(str(error)) from None


def _info_view(info: MemoryFileInfo) -> api.MemoryInfoView:
    return api.MemoryInfoView(
        path=info.path, size=info.size, hash=info.hash, updated=info.updated, untrusted=info.marks.untrusted
    )


def _file_view(file: MemoryFile) -> api.MemoryFileView:
    return api.MemoryFileView(file=_info_view(file.info), text=file.text)
