"""File system on the files of a session, which are kept in its log: no disk is touched, and the files move with the
session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from everturn.core.parts import FileChange
from everturn.core.ports import BlobStorage, FileStorage, ToolContext
from everturn.errors import ConfigError, ToolError
from everturn.tools.files.diffs import count_lines
from everturn.tools.files.file_system import (
    MAX_DIRECTORY_ENTRIES,
    MAX_FILE_BYTES,
    ChangeCheck,
    ContentChange,
    DirectoryEntry,
)
from everturn.tools.files.paths import join_path, quote_path
from everturn.tools.files.trees import FileEntry, FileTree, diff_trees, read_tree, write_tree


class SessionFileSystem:
    """The files of the session that a call belongs to."""

    def __init__(self, files: FileStorage, blobs: BlobStorage) -> None:
        self._files, self._blobs = files, blobs

    @classmethod
    def for_call(cls, context: ToolContext) -> SessionFileSystem:
        """The file system of a call's session.

        Raises:
            ConfigError: this runtime stores no session files.
        """
        if context.files is None or context.blobs is None:
            raise ConfigError(
                "files of a session are not available in this context; use files(root) on a folder instead"
            )
        return cls(context.files, context.blobs)

    async def stat(self, path: str) -> DirectoryEntry | None:
        """The entry at a path."""
        if path == ".":
            return DirectoryEntry(".", "directory")
        tree = await self._tree()
        name = path.rpartition("/")[2]
        if leaf := tree.get(path):
            return DirectoryEntry(name, "file", leaf.size)
        return DirectoryEntry(name, "directory") if any(other.startswith(path + "/") for other in tree) else None

    async def list(self, path: str) -> Sequence[DirectoryEntry]:
        """The entries of a directory; a directory exists as long as there is a file in it."""
        tree = await self._tree()
        if path in tree:
            raise ToolError(f"{quote_path(path)}: a part of it is a file, and not a directory")
        entries: dict[str, DirectoryEntry] = {}
        begin = join_path(path, "")
        for other, leaf in tree.items():
            if other.startswith(begin):
                name, slash, _ = other[len(begin) :].partition("/")
                entries[name] = DirectoryEntry(name, "directory") if slash else DirectoryEntry(name, "file", leaf.size)
        if not entries and path != ".":
            raise ToolError(f"there is no {quote_path(path)}")
        return [entries[name] for name in sorted(entries)][:MAX_DIRECTORY_ENTRIES]

    async def read(self, path: str) -> bytes:
        """The whole content of a file."""
        data = await self._content(await self._tree(), path)
        if data is None:
            raise ToolError(f"there is no {quote_path(path)}")
        return data

    async def change(
        self, path: str, make: ContentChange, check: ChangeCheck | None = None
    ) -> tuple[bytes | None, bytes | None]:
        """Replace the content of a file; there is no other writer in the session meanwhile."""
        contents: list[tuple[bytes | None, bytes | None]] = []

        async def put(name: str) -> tuple[str, Sequence[FileChange]]:
            contents.clear()
            tree = await self._read(name)
            old = await self._content(tree, path)
            new = await asyncio.to_thread(make, old)
            contents.append((old, new))
            if new == old:
                return name, ()
            if check is not None:
                check(lambda other: any(existing == other or existing.startswith(f"{other}/") for existing in tree))
            after = await self._with(tree, path, new)
            added, removed = await asyncio.to_thread(count_lines, old, new)
            rows = [replace(row, added=added, removed=removed) for row in diff_trees(tree, after)]
            return await self._blobs.put(write_tree(after)), rows

        await self._files.change(put)
        return contents[0]

    async def _with(self, tree: FileTree, path: str, data: bytes | None) -> FileTree:
        """The tree with another content at a path."""
        if data is None:
            return {other: leaf for other, leaf in tree.items() if other != path}
        if len(data) > MAX_FILE_BYTES:
            raise ToolError(f"{quote_path(path)} was not written: a file has at most {MAX_FILE_BYTES // 2**20} MiB")
        after = {**tree, path: FileEntry("", len(data))}
        write_tree(after)  # refuses too much data before anything is stored
        return {**after, path: FileEntry(await self._blobs.put(data), len(data))}

    async def _tree(self) -> FileTree:
        return await self._read(await self._files.tree())

    async def _read(self, name: str) -> FileTree:
        data = await self._blobs.get(name) if name else b""
        return await asyncio.to_thread(read_tree, data)

    async def _content(self, tree: FileTree, path: str) -> bytes | None:
        if path == "." or any(other.startswith(path + "/") for other in tree):
            raise ToolError(f"{quote_path(path)} is a directory; list_directory shows its content")
        parts = path.split("/")
        if any("/".join(parts[:size]) in tree for size in range(1, len(parts))):
            raise ToolError(f"{quote_path(path)}: a part of it is a file, and not a directory")
        leaf = tree.get(path)
        return None if leaf is None else await self._blobs.get(leaf.blob)
