"""The engine of one process: a task per awake session, nothing for a sleeping one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from everturn.core.ports import Clock, Timer
from everturn.errors import SessionStuck, Stale, StoreUnavailable

log = logging.getLogger(__name__)

TRIES = 3  # a drive that fails this often in a row is left alone; its log is intact
LONGEST = 30.0  # seconds between two tries while the store does not answer
BACKOFF = 0.5  # seconds before the second try, doubled before the third


class InlineEngine:
    """Drives sessions in this process; `on_lost` is told of one that could not be driven."""

    is_durable = False

    def __init__(self, clock: Clock, on_lost: Callable[[str, BaseException], None] | None = None) -> None:
        self._clock = clock
        self._on_lost = on_lost
        self._drive: Callable[[str], Awaitable[None]] | None = None
        self._driving: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._timers: dict[str, tuple[float, Timer]] = {}  # session -> when it is woken, at the earliest
        self._is_closed = self._is_leaving = False

    async def serve(self, drive: Callable[[str], Awaitable[None]]) -> None:
        """Give the engine the function that drives."""
        self._drive = drive

    async def wake(self, session: str, at: float | None = None, *, is_reminder: bool = False) -> None:
        """Ask that a session be driven, at once or at a time. Many wakes are as good as one."""
        if self._is_closed:
            return
        delay = 0.0 if at is None else at - self._clock.now()
        if at is not None and delay > 0:
            self._later(at, delay, session)
        else:
            self._start(session)

    def _later(self, at: float, delay: float, session: str) -> None:
        def fire() -> None:
            del self._timers[session]
            self._start(session)

        if (waiting := self._timers.get(session)) is not None:
            if waiting[0] <= at:
                return  # whoever drives then has it woken again
            waiting[1].cancel()
        self._timers[session] = at, self._clock.call_later(delay, fire)

    def _start(self, session: str) -> None:
        if session in self._driving:
            self._again.add(session)
        elif not self._is_closed and not self._is_leaving:
            task = asyncio.get_running_loop().create_task(self._keep_driving(session))
            task.add_done_callback(_say_how_it_ended)
            self._driving[session] = task

    async def _keep_driving(self, session: str) -> None:
        assert self._drive is not None, "serve(drive) comes before wake"
        failures = away = 0
        try:
            while True:
                self._again.discard(session)
                began = self._clock.now()
                try:
                    await self._drive(session)
                    failures = away = 0
                except (Stale, SessionStuck) as error:
                    log.warning("%s: %s", session, error)
                    self._lose(session, error)
                    return
                except StoreUnavailable as error:  # not the session's fault, and it passes
                    log.warning("%s waits for its store: %s", session, error)
                    away = 1 if self._clock.now() - began > LONGEST else away + 1  # it went well for a while
                    if away == TRIES:  # those who wait for it may do something else; it is tried for ever all the same
                        self._lose(session, error)
                    await self._pause(min(BACKOFF * 2**away, LONGEST))
                    continue
                except Exception as error:
                    failures = 1 if self._clock.now() - began > LONGEST else failures + 1
                    log.exception("driving %s failed (%d of %d)", session, failures, TRIES)
                    if failures < TRIES:
                        await self._pause(BACKOFF * 2 ** (failures - 1))
                        continue
                    self._lose(session, error)
                    failures = 0  # whoever woke it meanwhile has three tries of their own
                if session not in self._again or self._is_leaving:
                    return
        finally:
            del self._driving[session]

    def _lose(self, session: str, error: BaseException) -> None:
        if self._on_lost is not None:
            self._on_lost(session, error)

    async def _pause(self, seconds: float) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end() -> None:
            if not over.done():
                over.set_result(None)

        timer = self._clock.call_later(seconds, end)
        try:
            await over
        finally:
            timer.cancel()

    async def leave(self) -> None:
        """Begin nothing new; whoever starts next finds what is left."""
        self._is_leaving = True

    async def aclose(self) -> None:
        """Stop driving. What was under way stays in the log and goes on elsewhere."""
        self._is_closed = True
        for _, timer in self._timers.values():
            timer.cancel()
        tasks = list(self._driving.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _say_how_it_ended(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical("driving ended with %r", error)
