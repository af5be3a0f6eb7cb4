"""Who wants a worker → when they may have one: no more than a share at once for each, so that all others find some."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from everturn.errors import ToolError


class Shares:
    """At most `each` at once for everybody; who waits longer than `patience` seconds is told so."""

    def __init__(self, each: int, patience: float) -> None:
        self.each, self.patience = each, patience
        self._places: dict[tuple[asyncio.AbstractEventLoop, str], tuple[asyncio.Semaphore, list[None]]] = {}

    @asynccontextmanager
    async def one(self, who: str, waits: Callable[[], None]) -> AsyncGenerator[None]:
        """Have one of them for a while; `waits` is called if it takes some time to get it. Nobody ("") has no share.

        Raises:
            ToolError: it took too long. Who holds them may well wait for this very one.
        """
        if not who:
            yield
            return
        key = asyncio.get_running_loop(), who
        free, users = self._places.setdefault(key, (asyncio.Semaphore(self.each), []))
        users.append(None)
        try:
            if free.locked():
                waits()
            try:
                async with asyncio.timeout(self.patience):
                    await free.acquire()
            except TimeoutError:
                raise ToolError(
                    f"{self.each} programs of this session are under way, and none has ended in {self.patience:g} s; do "
                    "with fewer at once, or try again later"
                ) from None
            try:
                yield
            finally:
                free.release()
        finally:
            users.pop()
            if not users:
                self._places.pop(key, None)
