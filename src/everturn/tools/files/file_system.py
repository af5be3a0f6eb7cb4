"""File system protocol: the four operations of the file tools, on a folder or on the files of a session.

A path here was normalized by `paths.normalize_path`: relative, with `/`, no `..`; "." is the root.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from msgspec import Struct

MAX_FILE_BYTES = 8 * 2**20  # of one file, read or written
MAX_DIRECTORY_ENTRIES = 10_000  # of one directory that are read

EntryKind = Literal["file", "directory", "link", "special"]
ContentChange = Callable[[bytes | None], bytes | None]
"""Computes the new content of a file from the old one. None: no such file. It may refuse by raising a `ToolError`."""

ChangeCheck = Callable[[Callable[[str], bool]], None]
"""Refuses a change by raising; it gets a function that says whether a path exists. There is no other writer meanwhile.
"""

ABSENT = "absent"


class DirectoryEntry(Struct, frozen=True, gc=False):
    """An entry of a directory."""

    name: str
    kind: EntryKind
    size: int = 0


class FileSystem(Protocol):
    """Files below one root. Operations that fail raise a `ToolError` with a message for the model."""

    async def stat(self, path: str) -> DirectoryEntry | None:
        """The entry at a path; None if there is none. A link is reported as a link, never as its target."""
        ...

    async def list(self, path: str) -> Sequence[DirectoryEntry]:
        """The entries of a directory, by name; no more than `MOST_ENTRIES`."""
        ...

    async def read(self, path: str) -> bytes:
        """The whole content of a file."""
        ...

    async def change(
        self, path: str, make: ContentChange, check: ChangeCheck | None = None
    ) -> tuple[bytes | None, bytes | None]:
        """Replace the content of a file by what `make` returns, atomically, and return both contents. `check` may
        refuse it.

        Nothing is written where both are equal. Missing directories are created.
        """
        ...


def content_hash(data: bytes | None) -> str:
    """The SHA-256 of a content; `ABSENT` for no file."""
    return ABSENT if data is None else hashlib.sha256(data).hexdigest()
