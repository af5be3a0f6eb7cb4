"""Rows of a keyring, and where they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class KeyRow(Struct, frozen=True, omit_defaults=True):
    """A row of a keyring: a wrapped key, or when it was destroyed."""

    name: str
    master: str = ""  # fingerprint of the master key
    wrapped: bytes = b""
    destroyed: float = 0.0


class KeyringStorage(Protocol):
    """Where the rows of a keyring are. Every change is durable when it returns."""

    async def rows(self, names: Sequence[str] | None = None) -> list[KeyRow]:
        """Return the rows of these names, or all."""
        ...

    async def add(self, row: KeyRow) -> KeyRow:
        """Add a row unless there is one of this name, and return the one that is there."""
        ...

    async def replace(self, row: KeyRow) -> bool:
        """Replace a row, and leave nothing of the old one; False if that was destroyed. Without one, it is added."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...
