"""Rate limits in memory: the shared state of buckets for one process, or for the apps that share a `MemoryStore`."""

from __future__ import annotations

import time
from collections.abc import Callable


class MemoryRateLimits:
    """A `RateLimitStore` in a dictionary."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._states: dict[str, bytes] = {}

    async def update(self, key: str, change: Callable[[bytes, float], bytes | None]) -> None:
        """Replace the state of a bucket."""
        changed = change(self._states.get(key, b""), self._now())
        if changed is not None:
            self._states[key] = changed
