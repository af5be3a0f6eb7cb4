"""Signing keys: what the server signs tokens with, as a list, so that a key can be replaced without an interruption.

The first key of a name signs and all of them verify. A rotation adds a key in front, and ends when the keys behind it are
retired: from then on, what they signed is refused. Pure.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncIterator
from typing import Final, Literal, Protocol, get_args

from msgspec import Struct

KeyName = Literal["callbacks", "csrf", "files", "oidc", "push", "webhooks"]
"""What is signed: callback tokens of external systems, CSRF tokens, handles of uploads, the state of a login with OpenID
Connect, requests to push services (by a key that is derived), and (through a secret that is derived for each) deliveries to webhooks."""

KEY_NAMES: Final[tuple[KeyName, ...]] = get_args(KeyName)

MIN_KEY_LENGTH: Final = 32  # characters of a configured key


class SigningKey(Struct, frozen=True):
    """A stored key."""

    value: bytes
    created: float = 0.0  # 0: before the first rotation


def derive_key(configured: str, name: KeyName) -> bytes:
    """The key of a name, from one of the configuration: each name has a key of its own."""
    return hmac.digest(configured.encode(), f"everturn signing key {name}".encode(), hashlib.sha256)


class SigningKeys(Protocol):
    """The port for signing keys. All nodes share the stored ones; the `configured` ones come before those."""

    configured: tuple[str, ...]

    async def first(self, name: KeyName) -> bytes:
        """The key that signs. If there is none, the call creates one, and every node reads the same afterwards."""
        ...

    async def all(self, name: KeyName) -> list[bytes]:
        """The keys that verify, the one that signs first."""
        ...

    def candidates(self, name: KeyName) -> AsyncIterator[bytes]:
        """The keys to verify with, one after the other, until one fits.

        Behind the known keys come those that another node has added a moment ago.
        """
        ...

    async def stored(self, name: KeyName) -> list[SigningKey]:
        """The stored keys, newest first."""
        ...

    async def add(self, name: KeyName, now: float) -> None:
        """Store a new random key, in front of the others."""
        ...

    async def retire(self, name: KeyName, *, keeps_newest: bool = True) -> int:
        """Delete the stored keys, all but the newest or all, and return how many. What they signed is refused."""
        ...
