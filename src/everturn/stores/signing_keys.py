"""Cached signing keys, on a table of keys; and the table of the memory store.

A node reads the keys of a name again after `CACHE_SECONDS`: that is how long a retired key is still accepted, and how long
a node may still sign with the key before the last. A token that no known key fits is a reason to look at once, because
another node may have signed it with a key that it has just added; but not more than once a second, whatever is sent.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

from everturn.core.tenants.signing_keys import KeyName, SigningKey, derive_key

CACHE_SECONDS: Final = 10.0
RECHECK_SECONDS: Final = 1.0


class KeyTable(Protocol):
    """Where the keys of a store are."""

    async def rows(self, name: str) -> list[SigningKey]:
        """The keys of a name, in any order."""
        ...

    async def create(self, name: str) -> None:
        """Store a first key, unless there is one."""
        ...

    async def add(self, name: str, now: float) -> None:
        """Store a further key."""
        ...

    async def delete_before(self, name: str, created: float) -> int:
        """Delete the keys that are older, and return how many."""
        ...


class CachedSigningKeys:
    """The signing keys of a store, and those of the configuration."""

    def __init__(self, table: KeyTable, now: Callable[[], float] = time.monotonic) -> None:
        self._table, self._now = table, now
        self.configured: tuple[str, ...] = ()
        self._cache: dict[KeyName, tuple[float, list[bytes]]] = {}

    async def first(self, name: KeyName) -> bytes:
        """The key that signs; the first call creates it."""
        return (await self.all(name))[0]

    async def all(self, name: KeyName) -> list[bytes]:
        """The keys that verify, the one that signs first."""
        return await self._read(name, CACHE_SECONDS)

    async def candidates(self, name: KeyName) -> AsyncIterator[bytes]:
        """The keys to verify with, one after the other; behind the known ones those added a moment ago."""
        known = await self.all(name)
        for key in known:
            yield key
        for key in await self._read(name, RECHECK_SECONDS):
            if key not in known:
                yield key

    async def stored(self, name: KeyName) -> list[SigningKey]:
        """The stored keys, newest first."""
        return sorted(await self._table.rows(name), key=lambda key: key.created, reverse=True)

    async def add(self, name: KeyName, now: float) -> None:
        """Store a new random key, in front of the others."""
        await self._table.create(name)  # what was signed before has a key that the new one follows
        await self._table.add(name, now)
        self._cache.pop(name, None)

    async def retire(self, name: KeyName, *, keeps_newest: bool = True) -> int:
        """Delete the stored keys: all but the newest, or all."""
        keys = await self.stored(name)
        self._cache.pop(name, None)
        if not keys:
            return 0
        return await self._table.delete_before(name, keys[0].created if keeps_newest else math.inf)

    async def _read(self, name: KeyName, max_age: float) -> list[bytes]:
        now = self._now()
        cached = self._cache.get(name)
        if cached is not None and now - cached[0] < max_age:
            return cached[1]
        keys = await self.stored(name)
        if not keys and not self.configured:
            await self._table.create(name)
            keys = await self.stored(name)
        found = [*(derive_key(key, name) for key in self.configured), *(key.value for key in keys)]
        self._cache[name] = now, found
        return found


class MemoryKeyTable:
    """The keys of one process; they end with it."""

    def __init__(self) -> None:
        self._keys: dict[str, list[SigningKey]] = {}

    async def rows(self, name: str) -> list[SigningKey]:
        """The keys of a name."""
        return list(self._keys.get(name, ()))

    async def create(self, name: str) -> None:
        """Store a first key, unless there is one."""
        self._keys.setdefault(name, [SigningKey(os.urandom(32))])

    async def add(self, name: str, now: float) -> None:
        """Store a further key."""
        self._keys.setdefault(name, []).append(SigningKey(os.urandom(32), now))

    async def delete_before(self, name: str, created: float) -> int:
        """Delete the keys that are older."""
        before = await self.rows(name)
        self._keys[name] = [key for key in before if key.created >= created]
        return len(before) - len(self._keys[name])
