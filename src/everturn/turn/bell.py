"""A bell that can be rung before anybody listens: whoever heard `n` strokes waits for the next one."""

from __future__ import annotations

import asyncio


class Bell:
    """Counts its strokes, and wakes everyone who waits for one."""

    def __init__(self) -> None:
        self.strokes = 0
        self._waiters: list[asyncio.Future[None]] = []

    def ring(self) -> None:
        """Strike once."""
        self.strokes += 1
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def after(self, heard: int) -> None:
        """Return once there were more strokes than `heard`."""
        while self.strokes <= heard:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
