"""Fair share of workers: limits how many runs one session has at once, so that the other sessions find free workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from everturn.errors import ToolError


class FairShare:
    """At most `each` runs at once per session; a run that waits longer than `timeout` seconds fails."""

    def __init__(self, each: int, timeout: float) -> None:
        self.each, self.timeout = each, timeout
        self._places: dict[tuple[asyncio.AbstractEventLoop, str], tuple[asyncio.Semaphore, list[None]]] = {}

    @asynccontextmanager
    async def acquire(self, owner: str, waits: Callable[[], None]) -> AsyncGenerator[None]:
        """Hold one slot of a session; `waits` is called if none is free at once. "" stands for no session, without a
        limit.

        Raises:
            ToolError: it took too long. The runs that hold the slots may well wait for this one.
        """
        if not owner:
            yield
            return
        key = asyncio.get_running_loop(), owner
        free, users = self._places.setdefault(key, (asyncio.Semaphore(self.each), []))
        users.append(None)
        try:
            if free.locked():
                waits()
            try:
                async with asyncio.timeout(self.timeout):
                    await free.acquire()
            except TimeoutError:
                raise ToolError(
                    f"{self.each} programs of this session are running, and none ended within {self.timeout:g} s; "
                    "run fewer at once, or try again later"
                ) from None
            try:
                yield
            finally:
                free.release()
        finally:
            users.pop()
            if not users:
                self._places.pop(key, None)
