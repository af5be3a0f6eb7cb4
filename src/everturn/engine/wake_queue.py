"""Wake queue: combines wakes into few requests to the engine's server; per session one is in flight and one waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from everturn.core.ports import Clock
from everturn.errors import EngineUnavailable

CLOSED = "the engine was closed before its server accepted this wake-up; the message is stored; wake the session through another process"

Send = Callable[[str, float, str], Coroutine[Any, Any, None]]  # (session, seconds from now, key)


class WakeQueue:
    """Wakes of one process. A wake joins another one of its session that still waits to be sent."""

    def __init__(self, send: Send, clock: Clock) -> None:
        self._send, self._clock = send, clock
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._in_flight: dict[str, asyncio.Task[None]] = {}
        self._later: set[asyncio.Task[None]] = set()

    async def wake(self, session: str, at: float | None) -> None:
        """Return when the wake was accepted. The request that carries it is always sent after the call."""
        delay = 0.0 if at is None else at - self._clock.now()
        if delay > 0:
            task = asyncio.get_running_loop().create_task(self._send(session, delay, ""))
            self._later.add(task)
            task.add_done_callback(self._later.discard)
            task.add_done_callback(_retrieve_exception)
        else:
            task = self._waiting.get(session) or self._enqueue(session)
        # Shielded: other callers may wait for the same request, and one that is cancelled must not cancel it for them.
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if task.cancelled() and caller is not None and not caller.cancelling():
                raise EngineUnavailable(CLOSED) from None
            raise

    def _enqueue(self, session: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._send_after(session, self._in_flight.get(session)))
        self._waiting[session] = task
        task.add_done_callback(_retrieve_exception)
        return task

    async def _send_after(self, session: str, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        self._in_flight[session] = task = self._waiting.pop(session)
        try:
            await self._send(session, 0.0, "")
        finally:
            if self._in_flight.get(session) is task:
                del self._in_flight[session]

    async def aclose(self) -> None:
        """Cancel requests that were not accepted yet; their callers get an error."""
        tasks = {*self._waiting.values(), *self._in_flight.values(), *self._later}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _retrieve_exception(task: asyncio.Task[None]) -> None:
    """Retrieve the exception: the caller may be gone, and asyncio would warn about it."""
    if not task.cancelled():
        task.exception()
