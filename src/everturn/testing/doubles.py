"""Test doubles for time and ids: a clock that a test advances, and ids in a predictable order."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable


class _Timer:
    def __init__(self, at: float, callback: Callable[[], None]) -> None:
        self.at, self.callback = at, callback
        self.is_cancelled = False

    def cancel(self) -> None:
        """Cancel the timer."""
        self.is_cancelled = True


class FakeClock:
    """A clock that stands still until `advance` is called."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._order = itertools.count()
        self._timers: list[tuple[float, int, _Timer]] = []

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._now

    def call_later(self, delay: float, callback: Callable[[], None]) -> _Timer:
        """Call back once the clock was advanced by `delay` seconds."""
        timer = _Timer(self._now + delay, callback)
        heapq.heappush(self._timers, (timer.at, next(self._order), timer))
        return timer

    @property
    def waiting(self) -> int:
        """How many timers are still to fire."""
        return sum(not timer.is_cancelled for _, _, timer in self._timers)

    def advance(self, seconds: float) -> None:
        """Let time pass, and fire the timers that are due, in order."""
        end = self._now + seconds
        while self._timers and self._timers[0][0] <= end:
            at, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, at)
            if not timer.is_cancelled:
                timer.callback()
        self._now = end


class CountingIds:
    """Ids in the order of the calls: `turn_1`, `msg_2`, …"""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._count = itertools.count(1)

    def new(self, kind: str) -> str:
        """A new id."""
        return f"{kind}_{self._prefix}{next(self._count)}"
