"""The files that a session keeps in its log, as a file system: no disk is touched, and they go where the session goes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from everturn.core.parts import FileChange
from everturn.core.ports import Blobs, Files, ToolContext
from everturn.errors import ConfigError, ToolError
from everturn.tools.files.diffs import count_lines
from everturn.tools.files.paths import join, shown
from everturn.tools.files.system import MOST_BYTES, MOST_ENTRIES, Check, Entry, Make
from everturn.tools.files.trees import Leaf, Tree, changes, read_tree, write_tree


class Virtual:
    """The files of the session that a call belongs to."""

    def __init__(self, files: Files, blobs: Blobs) -> None:
        self._files, self._blobs = files, blobs

    @classmethod
    def of(cls, context: ToolContext) -> Virtual:
        """Those of the session of a call.

        Raises:
            ConfigError: this runtime keeps none.
        """
        if context.files is None or context.blobs is None:
            raise ConfigError("nothing here keeps the files of a session; use files(root) on a folder instead")
        return cls(context.files, context.blobs)

    async def stat(self, path: str) -> Entry | None:
        """What is there."""
        if path == ".":
            return Entry(".", "directory")
        tree = await self._tree()
        name = path.rpartition("/")[2]
        if leaf := tree.get(path):
            return Entry(name, "file", leaf.size)
        return Entry(name, "directory") if any(other.startswith(path + "/") for other in tree) else None

    async def list(self, path: str) -> Sequence[Entry]:
        """What is in a directory; one is there as long as there is a file in it."""
        tree = await self._tree()
        if path in tree:
            raise ToolError(f"{shown(path)}: a part of it is a file, and not a directory")
        found: dict[str, Entry] = {}
        begin = join(path, "")
        for other, leaf in tree.items():
            if other.startswith(begin):
                name, slash, _ = other[len(begin) :].partition("/")
                found[name] = Entry(name, "directory") if slash else Entry(name, "file", leaf.size)
        if not found and path != ".":
            raise ToolError(f"there is no {shown(path)}")
        return [found[name] for name in sorted(found)][:MOST_ENTRIES]

    async def read(self, path: str) -> bytes:
        """The whole of a file."""
        data = await self._content(await self._tree(), path)
        if data is None:
            raise ToolError(f"there is no {shown(path)}")
        return data

    async def change(self, path: str, make: Make, check: Check | None = None) -> tuple[bytes | None, bytes | None]:
        """Put another content in the place of a file's; nobody else changes any file of the session meanwhile."""
        came: list[tuple[bytes | None, bytes | None]] = []

        async def put(name: str) -> tuple[str, Sequence[FileChange]]:
            came.clear()
            tree = await self._read(name)
            old = await self._content(tree, path)
            new = await asyncio.to_thread(make, old)
            came.append((old, new))
            if new == old:
                return name, ()
            if check is not None:
                check(lambda other: any(one == other or one.startswith(f"{other}/") for one in tree))
            after = await self._with(tree, path, new)
            added, removed = await asyncio.to_thread(count_lines, old, new)
            rows = [replace(row, added=added, removed=removed) for row in changes(tree, after)]
            return await self._blobs.put(write_tree(after)), rows

        await self._files.change(put)
        return came[0]

    async def _with(self, tree: Tree, path: str, data: bytes | None) -> Tree:
        """The tree with another content at a path."""
        if data is None:
            return {other: leaf for other, leaf in tree.items() if other != path}
        if len(data) > MOST_BYTES:
            raise ToolError(f"{shown(path)} was not written: a file has at most {MOST_BYTES // 2**20} MiB")
        after = {**tree, path: Leaf("", len(data))}
        write_tree(after)  # refuses what is too much before anything is kept
        return {**after, path: Leaf(await self._blobs.put(data), len(data))}

    async def _tree(self) -> Tree:
        return await self._read(await self._files.tree())

    async def _read(self, name: str) -> Tree:
        data = await self._blobs.get(name) if name else b""
        return await asyncio.to_thread(read_tree, data)

    async def _content(self, tree: Tree, path: str) -> bytes | None:
        if path == "." or any(other.startswith(path + "/") for other in tree):
            raise ToolError(f"{shown(path)} is a directory; list_directory says what is in it")
        parts = path.split("/")
        if any("/".join(parts[:size]) in tree for size in range(1, len(parts))):
            raise ToolError(f"{shown(path)}: a part of it is a file, and not a directory")
        leaf = tree.get(path)
        return None if leaf is None else await self._blobs.get(leaf.blob)
