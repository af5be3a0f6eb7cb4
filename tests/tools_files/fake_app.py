"""What a runtime gives to file tools, in memory; and the tools, called by name."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

from everturn.core.parts import FileChange, Output
from everturn.core.ports import Preview, ToolContext
from everturn.tools.files import PROTECTED, Folder, ProtectedPaths, files, virtual_files
from everturn.tools.files.base import FileTool, FileToolScope, WriteFileTool
from everturn.tools.groups import ToolGroup


class MemoryBlobs:
    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}

    async def put(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        self.data[name] = data
        return name

    async def get(self, name: str) -> bytes:
        return self.data[name]


class MemoryFiles:
    def __init__(self) -> None:
        self.now = ""
        self.changes: list[FileChange] = []
        self.writes = 0
        self._one = asyncio.Lock()

    async def tree(self) -> str:
        return self.now

    async def change(self, make: Callable[[str], Awaitable[tuple[str, Sequence[FileChange]]]]) -> str:
        async with self._one:
            after, changes = await make(self.now)
            if after != self.now:
                self.writes += 1
            self.now = after
            self.changes += changes
            return after


class Desk:
    """Five tools, and where they work."""

    def __init__(self, group: ToolGroup, root: Path | None = None) -> None:
        self.tools: dict[str, FileTool[Any]] = {tool.spec.name: cast("FileTool[Any]", tool) for tool in group.tools}
        self.root = root
        self.files, self.blobs = MemoryFiles(), MemoryBlobs()
        self.kept: list[str] = []

    def context(self, base_version: str = "", saved_state: str = "") -> ToolContext:
        return ToolContext(
            session="session",
            turn="turn",
            call="call",
            key="key",
            progress=lambda text: None,
            base_version=base_version,
            saved_state=saved_state,
            save_state=self.kept.append,
            files=self.files,
            blobs=self.blobs,
        )

    async def call(self, name: str, *, base_version: str = "", saved_state: str = "", **arguments: Any) -> Output:
        tool = self.tools[name]
        checked = tool.validate(arguments)
        return await tool.run(checked, self.context(base_version, saved_state))

    async def text(self, name: str, **arguments: Any) -> str:
        return (await self.call(name, **arguments)).text

    async def preview(self, name: str, **arguments: Any) -> Preview:
        tool = cast("WriteFileTool[Any]", self.tools[name])
        found = await tool.preview(tool.validate(arguments), self.context())
        assert found is not None
        return found

    async def put(self, path: str, content: str | bytes) -> None:
        """Let somebody else put a file there."""
        data = content if isinstance(content, bytes) else content.encode()
        await self.system().change(path, lambda old: data)

    async def get(self, path: str) -> bytes:
        return await self.system().read(path)

    def system(self) -> Any:
        return self.place().open(self.context())

    def place(self) -> FileToolScope:
        return self.tools["read_file"]._place


def folder_desk(root: Path, *, in_one: bool | None = None, **more: Any) -> Desk:
    desk = Desk(files(root, **more), root)
    if in_one is not None:
        folder = Folder(root, in_one=in_one)
        protect: ProtectedPaths = more.get("protect", PROTECTED)
        place = FileToolScope(lambda context: folder, protect, more.get("hidden", False))
        for tool in desk.tools.values():
            tool._place = place
    return desk


def virtual_desk(**more: Any) -> Desk:
    return Desk(virtual_files(**more))
