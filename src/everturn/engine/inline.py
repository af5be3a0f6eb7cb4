"""Inline engine: drives sessions in one process, with a task per awake session and nothing for a sleeping one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from everturn.core.ports import Clock, Timer
from everturn.errors import SessionQuarantined, Stale, StoreUnavailable

log = logging.getLogger(__name__)

TRIES = 3  # a drive that fails this often in a row is given up; its log is intact
MAX_RETRY_DELAY = 30.0  # seconds between two tries while the store does not answer
BACKOFF = 0.5  # seconds before the second try, doubled before the third


class InlineEngine:
    """Drives sessions in this process; it calls `on_lost` for a session that could not be driven."""

    is_durable = False

    def __init__(self, clock: Clock, on_lost: Callable[[str, BaseException], None] | None = None) -> None:
        self._clock = clock
        self._on_lost = on_lost
        self._drive: Callable[[str], Awaitable[None]] | None = None
        self._driving: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._timers: dict[str, tuple[float, Timer]] = {}  # session -> its earliest wake-up
        self._is_closed = self._is_leaving = False

    async def serve(self, drive: Callable[[str], Awaitable[None]]) -> None:
        """Set the function that drives a session."""
        self._drive = drive

    async def wake(self, session: str, at: float | None = None, *, is_reminder: bool = False) -> None:
        """Have a session driven, at once or at a time. Several wakes have the effect of one."""
        if self._is_closed:
            return
        delay = 0.0 if at is None else at - self._clock.now()
        if at is not None and delay > 0:
            self._wake_later(at, delay, session)
        else:
            self._start(session)

    def _wake_later(self, at: float, delay: float, session: str) -> None:
        def fire() -> None:
            del self._timers[session]
            self._start(session)

        if (scheduled := self._timers.get(session)) is not None:
            if scheduled[0] <= at:
                return  # the earlier drive schedules the next wake
            scheduled[1].cancel()
        self._timers[session] = at, self._clock.call_later(delay, fire)

    def _start(self, session: str) -> None:
        if session in self._driving:
            self._again.add(session)
        elif not self._is_closed and not self._is_leaving:
            task = asyncio.get_running_loop().create_task(self._keep_driving(session))
            task.add_done_callback(_log_failure)
            self._driving[session] = task

    async def _keep_driving(self, session: str) -> None:
        assert self._drive is not None, "serve(drive) comes before wake"
        failures = outages = 0
        try:
            while True:
                self._again.discard(session)
                began = self._clock.now()
                try:
                    await self._drive(session)
                    failures = outages = 0
                except (Stale, SessionQuarantined) as error:
                    log.warning("%s: %s", session, error)
                    self._report_lost(session, error)
                    return
                except StoreUnavailable as error:  # temporary, and not caused by the session
                    log.warning("session %s waits for the store: %s", session, error)
                    outages = (
                        1 if self._clock.now() - began > MAX_RETRY_DELAY else outages + 1
                    )  # the store was available for a while
                    if (
                        outages == TRIES
                    ):  # callers who wait for the session may do something else; it is still retried for ever
                        self._report_lost(session, error)
                    await self._pause(min(BACKOFF * 2**outages, MAX_RETRY_DELAY))
                    continue
                except Exception as error:
                    failures = 1 if self._clock.now() - began > MAX_RETRY_DELAY else failures + 1
                    log.exception("driving session %s failed (attempt %d of %d)", session, failures, TRIES)
                    if failures < TRIES:
                        await self._pause(BACKOFF * 2 ** (failures - 1))
                        continue
                    self._report_lost(session, error)
                    failures = 0  # a wake that came meanwhile has three tries of its own
                if session not in self._again or self._is_leaving:
                    return
        finally:
            del self._driving[session]

    def _report_lost(self, session: str, error: BaseException) -> None:
        if self._on_lost is not None:
            self._on_lost(session, error)

    async def _pause(self, seconds: float) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def finish() -> None:
            if not done.done():
                done.set_result(None)

        timer = self._clock.call_later(seconds, finish)
        try:
            await done
        finally:
            timer.cancel()

    async def stop_accepting(self) -> None:
        """Start no new drives; the next process finds what remains."""
        self._is_leaving = True

    async def aclose(self) -> None:
        """Stop driving. Running turns stay in the log and continue in another process."""
        self._is_closed = True
        for _, timer in self._timers.values():
            timer.cancel()
        tasks = list(self._driving.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical("the drive ended with %r", error)
