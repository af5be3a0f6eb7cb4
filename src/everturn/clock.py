"""System clock and random ids: the production adapters of the `Clock` and `IdSource` ports."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

from everturn.core.ports import Timer


class SystemClock:
    """The wall clock, and the event loop's timers."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call back after `delay` seconds."""
        return asyncio.get_running_loop().call_later(delay, callback)


class RandomIds:
    """Ids that sort by the second of their creation and cannot be guessed."""

    def new(self, kind: str) -> str:
        """A new unique id."""
        return f"{kind}_{int(time.time()):08x}{os.urandom(8).hex()}"
