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
        """Run a coroutine there, and return its result.

        Raises:
            ConfigError: this thread has an event loop, which would stand still meanwhile.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run_coroutine_threadsafe(work, self.loop).result()
        work.close()
        raise ConfigError("there is an event loop here, and it would stand still: await the method without _sync")


BACKGROUND = BackgroundLoop()
"""The loop of everything that is called without one."""
