"""Dependency scope: the dependencies of one turn in one process, closed when the last of their users lets them go.

The drive of a turn is a user, and so is each of its tools: a tool may outlive the drive that started it. They are opened
and closed in one task, as clients that are built on cancel scopes demand.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager
from typing import Any

log = logging.getLogger(__name__)


class DependencyScope:
    """Dependencies of one turn, and the number of their users."""

    def __init__(self, opened: AbstractAsyncContextManager[Any]) -> None:
        self._opened, self._users = opened, 1
        self._is_unused = asyncio.Event()
        self.value: Any = None

    async def open(self) -> None:
        """Make the dependencies; raises what the factory raises."""
        ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._task = asyncio.get_running_loop().create_task(self._hold(ready))
        try:
            self.value = await ready
        except asyncio.CancelledError:
            self._task.cancel()
            raise

    async def _hold(self, ready: asyncio.Future[Any]) -> None:
        try:
            async with self._opened as value:
                if not ready.done():
                    ready.set_result(value)
                await self._is_unused.wait()
        except Exception as error:
            if ready.done():
                log.exception("dependencies of a turn could not be closed")
            else:
                ready.set_exception(error)

    def acquire(self) -> None:
        """Count one more user."""
        self._users += 1

    async def release(self) -> None:
        """Count one user less; the last one closes, and waits for that."""
        self._users -= 1
        if self._users == 0:
            self._is_unused.set()
            await asyncio.shield(asyncio.wait({self._task}))
