"""Memory files of a user."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from everturn.api.base import Body, View


class PutMemory(Body, frozen=True, kw_only=True):
    """Write a whole memory file of the caller. `base` is the hash that was read, `none` for a new file; "": any."""

    path: Annotated[str, Meta(min_length=1, max_length=1000)]
    text: Annotated[str, Meta(max_length=70_000)]
    base: Annotated[str, Meta(max_length=64)] = ""
    untrusted: bool | None = None  # whether it has text of third parties; None: as it was


class MemoryInfoView(View, frozen=True, kw_only=True):
    """A memory file in a list. The path is relative to `/memories`."""

    path: str
    size: int  # bytes
    hash: str
    updated: float
    untrusted: bool = False  # it has text of third parties


class MemoryList(View, frozen=True, kw_only=True):
    """The memory files of the caller, by path, and how many bytes all of them, and one of them, may have."""

    files: list[MemoryInfoView]
    limit: int
    file_limit: int


class MemoryFileView(View, frozen=True, kw_only=True):
    """A memory file."""

    file: MemoryInfoView
    text: str
