"""Background loop: an event loop in a thread of its own, for code that has none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from everturn.errors import ConfigError

T = TypeVar("T")


class BackgroundLoop:
    """An event loop in a daemon thread, started by the first call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, running."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="everturn-sync", daemon=True).start()
            return self._loop

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the background loop, and return its result.

        Raises:
            ConfigError: this thread already runs an event loop, which the call would block.
        """
        if _runs_loop():
            work.close()
            raise ConfigError(
                "a _sync method cannot be called while an event loop runs in this thread: await the method without _sync"
            )
        # Outside any `except`, so that an error of the work has no "no running event loop" in its traceback.
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()


def _runs_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


BACKGROUND = BackgroundLoop()
"""The loop of every call from code without an event loop."""
