"""What the tools know of files: four verbs that a folder and a session's own files both answer.

A path here has been read by `paths.read_name`: relative, with `/`, no `..`; "." is the root.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from msgspec import Struct

MOST_BYTES = 8 * 2**20  # of one file, read or written
MOST_ENTRIES = 10_000  # of one directory that are looked at

Kind = Literal["file", "directory", "link", "special"]
Make = Callable[[bytes | None], bytes | None]
"""What a file holds → what it is to hold. None: it is not there. It may refuse, by raising a ToolError."""

Check = Callable[[Callable[[str], bool]], None]
"""Given a function that says whether a path is there, refuse a change by raising; nobody else writes meanwhile."""

ABSENT = "absent"


class Entry(Struct, frozen=True, gc=False):
    """Something in a directory."""

    name: str
    kind: Kind
    size: int = 0


class FileSystem(Protocol):
    """Files beneath one root. What cannot be done raises a `ToolError` in words for the model."""

    async def stat(self, path: str) -> Entry | None:
        """What is there; None for nothing. A link is a link, and never what it leads to."""
        ...

    async def list(self, path: str) -> Sequence[Entry]:
        """What is in a directory, by name; no more than `MOST_ENTRIES`."""
        ...

    async def read(self, path: str) -> bytes:
        """The whole of a file."""
        ...

    async def change(self, path: str, make: Make, check: Check | None = None) -> tuple[bytes | None, bytes | None]:
        """Let a file hold what `make` says, whole or not at all, and give both contents. `check` may refuse it.

        Nothing is written where both are equal. Directories that are missing are made.
        """
        ...


def content_hash(data: bytes | None) -> str:
    """The name of a content; `ABSENT` for none."""
    return ABSENT if data is None else hashlib.sha256(data).hexdigest()
