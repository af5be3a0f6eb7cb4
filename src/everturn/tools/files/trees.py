"""A list of files ⇄ canonical JSON, and what became of them from one list to the next. Pure.

Equal files make equal bytes, so the name of a tree says all that is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec
from msgspec import Struct

from everturn.core.canonical import canonical
from everturn.core.parts import FileChange
from everturn.errors import ToolError
from everturn.tools.files.paths import trouble_with
from everturn.tools.files.system import MOST_BYTES

MOST_FILES = 10_000
MOST_IN_ALL = 64 * 2**20  # bytes


class Leaf(Struct, frozen=True, gc=False):
    """One file: the name of the blob that it holds, and how long that is."""

    blob: str
    size: int


Tree = Mapping[str, Leaf]


@lru_cache(8)
def read_tree(data: bytes) -> Tree:
    """The files of a tree; none for no bytes.

    Raises:
        ToolError: it is not a tree, or there are paths in it that nobody could have written here.
    """
    if not data:
        return {}
    try:
        tree = msgspec.json.decode(data, type=dict[str, Leaf])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ToolError(f"the list of the files of this session cannot be read: {error}") from None
    for path in tree:
        if trouble_with(path) or "//" in path or path.endswith("/") or "." in path.split("/"):
            raise ToolError(f"the list of the files of this session has a path in it that is none: {path!r}"[:300])
    _check(tree)
    return tree


def write_tree(tree: Tree) -> bytes:
    """The bytes of a tree.

    Raises:
        ToolError: there is too much in it.
    """
    _check(tree)
    return canonical(dict(tree)).encode()


def _check(tree: Tree) -> None:
    if len(tree) > MOST_FILES:
        raise ToolError(f"a session keeps at most {MOST_FILES:,} files; remove some first")
    if any(not 0 <= leaf.size <= MOST_BYTES for leaf in tree.values()):
        raise ToolError(f"a file of a session has at most {MOST_BYTES // 2**20} MiB; write less, or several files")
    if sum(leaf.size for leaf in tree.values()) > MOST_IN_ALL:
        raise ToolError(f"a session keeps at most {MOST_IN_ALL // 2**20} MiB of files in all; make some shorter first")


def changes(old: Tree, new: Tree) -> tuple[FileChange, ...]:
    """What is not as it was, by path."""
    found: list[FileChange] = []
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        if before is None:
            found.append(FileChange(path, "added"))
        elif after is None:
            found.append(FileChange(path, "deleted"))
        elif before != after:
            found.append(FileChange(path, "modified"))
    return tuple(found)
