"""File trees of a session: encodes the list of its files as canonical JSON, and compares two trees. Pure.

Equal files make equal bytes, so the hash of a tree identifies all that is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import encode_canonical
from everturn.core.parts import FileChange
from everturn.errors import ToolError
from everturn.tools.files.file_system import MAX_FILE_BYTES
from everturn.tools.files.paths import path_problem

MOST_FILES = 10_000
MAX_TOTAL_BYTES = 64 * 2**20  # bytes


class FileEntry(Struct, frozen=True, gc=False):
    """One file: the name of its blob, and its size."""

    blob: str
    size: int


FileTree = Mapping[str, FileEntry]


@lru_cache(8)
def read_tree(data: bytes) -> FileTree:
    """The files of a tree; none for no bytes.

    Raises:
        ToolError: the data is not a valid tree, or has paths in it that these tools refuse.
    """
    if not data:
        return {}
    try:
        tree = msgspec.json.decode(data, type=dict[str, FileEntry])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ToolError(f"the list of the files of this session cannot be read: {error}") from None
    for path in tree:
        if path_problem(path) or "//" in path or path.endswith("/") or "." in path.split("/"):
            raise ToolError(f"the list of the files of this session has a path in it that is none: {path!r}"[:300])
    _check(tree)
    return tree


def write_tree(tree: FileTree) -> bytes:
    """The bytes of a tree.

    Raises:
        ToolError: there are too many files in it, or too large ones.
    """
    _check(tree)
    return encode_canonical(dict(tree)).encode()


def _check(tree: FileTree) -> None:
    if len(tree) > MOST_FILES:
        raise ToolError(f"a session keeps at most {MOST_FILES:,} files; delete some first")
    if any(not 0 <= leaf.size <= MAX_FILE_BYTES for leaf in tree.values()):
        raise ToolError(f"a file of a session has at most {MAX_FILE_BYTES // 2**20} MiB; write less, or several files")
    if sum(leaf.size for leaf in tree.values()) > MAX_TOTAL_BYTES:
        raise ToolError(f"a session keeps at most {MAX_TOTAL_BYTES // 2**20} MiB of files in total; shorten some first")


def diff_trees(old: FileTree, new: FileTree) -> tuple[FileChange, ...]:
    """The differences between two trees, by path."""
    differences: list[FileChange] = []
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        if before is None:
            differences.append(FileChange(path, "added"))
        elif after is None:
            differences.append(FileChange(path, "deleted"))
        elif before != after:
            differences.append(FileChange(path, "modified"))
    return tuple(differences)
