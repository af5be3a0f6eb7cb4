"""Notifier: a counting notification. A waiter passes the count it has seen, so that no notification is missed."""

from __future__ import annotations

import asyncio


class Notifier:
    """Counts notifications, and wakes every waiter."""

    def __init__(self) -> None:
        self.count = 0
        self._waiters: list[asyncio.Future[None]] = []

    def notify(self) -> None:
        """Notify: increase the count and wake all waiters."""
        self.count += 1
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def wait_beyond(self, seen: int) -> None:
        """Return once there were more notifications than `seen`."""
        while self.count <= seen:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
