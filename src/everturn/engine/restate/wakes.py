"""Wakes into requests, as few as will do: per session one on its way and one that waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from everturn.core.ports import Clock
from everturn.errors import EngineUnavailable

CLOSED = "the engine was closed before Restate took this wake; what was admitted is safe, send it again elsewhere"

Send = Callable[[str, float, str], Coroutine[Any, Any, None]]  # (session, seconds from now, key)


class Wakes:
    """Wakes of one process. A wake that finds another waiting to be sent is that one."""

    def __init__(self, send: Send, clock: Clock) -> None:
        self._send, self._clock = send, clock
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._flying: dict[str, asyncio.Task[None]] = {}
        self._later: set[asyncio.Task[None]] = set()

    async def wake(self, session: str, at: float | None) -> None:
        """Return once it was accepted; what it was for is never older than the request that carries it."""
        delay = 0.0 if at is None else at - self._clock.now()
        if delay > 0:
            task = asyncio.get_running_loop().create_task(self._send(session, delay, ""))
            self._later.add(task)
            task.add_done_callback(self._later.discard)
            task.add_done_callback(_look_at)
        else:
            task = self._waiting.get(session) or self._enqueue(session)
        # Shielded: others may wait for the same request, and a caller that leaves does not take it away from them.
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if task.cancelled() and caller is not None and not caller.cancelling():
                raise EngineUnavailable(CLOSED) from None
            raise

    def _enqueue(self, session: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._in_turn(session, self._flying.get(session)))
        self._waiting[session] = task
        task.add_done_callback(_look_at)
        return task

    async def _in_turn(self, session: str, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        self._flying[session] = task = self._waiting.pop(session)
        try:
            await self._send(session, 0.0, "")
        finally:
            if self._flying.get(session) is task:
                del self._flying[session]

    async def aclose(self) -> None:
        """Let go of what was not accepted yet; whoever waits for it is told so."""
        tasks = {*self._waiting.values(), *self._flying.values(), *self._later}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _look_at(task: asyncio.Task[None]) -> None:
    """Whoever waited has left, and nobody else will ask how it ended."""
    if not task.cancelled():
        task.exception()
