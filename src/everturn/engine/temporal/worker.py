"""Temporal worker: runs activities of Temporal as drives in this process, and beats while they run.

The beat comes from the event loop that drives, without a thread: a loop that is blocked stops it, and Temporal gives the
session to another worker after the heartbeat timeout. If Temporal gives a drive up, it is cancelled here, because another one
is on its way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from everturn.engine.temporal.workflow import ACTIVITY, SessionWorkflow
from everturn.errors import SessionQuarantined, Stale

log = logging.getLogger(__name__)

BEATS = 3  # heartbeats per timeout, so that one or two may be late
AT_ONCE = 500  # sessions driven at once in one process
STOP_TIMEOUT = 5.0  # seconds in which a stopping worker must have given its work back
RETRY_NOW = timedelta(milliseconds=20)
# Seconds that a workflow task waits for the worker that has the workflow in memory, before any worker may take it. Temporal's
# default is ten, for which the sessions of a dead worker could not be woken.
STICKY_TIMEOUT = timedelta(seconds=2)
DRAIN = timedelta(days=1)  # we end drives ourselves, see `aclose`

Drive = Callable[[str], Awaitable[None]]


class TemporalWorker:
    """Runs what Temporal sends as drives in this process."""

    def __init__(self, client: Client, task_queue: str, heartbeat_timeout: float, drive: Drive) -> None:
        self._drive, self._interval = drive, heartbeat_timeout / BEATS
        self._driving: dict[str, asyncio.Task[None]] = {}
        self._is_closing = False
        self._worker = Worker(
            client,
            task_queue=task_queue,
            workflows=[SessionWorkflow],
            activities=[self.attempt],
            max_concurrent_activities=AT_ONCE,
            # Without this the SDK sends one heartbeat per 0.8 timeouts, however often it is told to.
            max_heartbeat_throttle_interval=timedelta(seconds=self._interval),
            sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
            graceful_shutdown_timeout=DRAIN,
        )
        self._running: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to ask for work."""
        self._running = asyncio.get_running_loop().create_task(self._worker.run())

    def leave(self) -> None:
        """Ask for no more work; running drives continue."""
        if self._running is not None and self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self._worker.shutdown())

    async def aclose(self) -> None:
        """Stop: running drives are cancelled, and given back to Temporal at once when they have ended."""
        self._is_closing = True
        self.leave()
        while self._driving:
            tasks = list(self._driving.values())
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await asyncio.sleep(0)
        if self._running is None or self._stopping is None:
            return
        _, late = await asyncio.wait({self._stopping, self._running}, timeout=STOP_TIMEOUT)
        if late:
            log.warning(
                "Temporal did not take back the tasks of this worker within %g s; this worker ends anyway", STOP_TIMEOUT
            )
        for task in late:
            task.cancel()
        await asyncio.gather(self._stopping, self._running, return_exceptions=True)

    @activity.defn(name=ACTIVITY)
    async def attempt(self, session: str) -> None:
        """One attempt of an activity."""
        while (before := self._driving.get(session)) is not None:
            # Temporal gave it up, or there would be no second one; it has to end first.
            before.cancel()
            await asyncio.wait({before})
        if self._is_closing:
            raise _leaving()
        task = asyncio.get_running_loop().create_task(self._drive_once(session))
        self._driving[session] = task
        task.add_done_callback(lambda ended: self._forget(session, ended))
        try:
            while not task.done():
                activity.heartbeat()
                await asyncio.wait({task}, timeout=self._interval)
        finally:
            task.cancel()  # Temporal has given this attempt up
        if task.cancelled():
            raise _leaving()
        if (error := task.exception()) is not None:
            # Only the type: an error text may contain what people wrote, and Temporal stores what it gets.
            raise ApplicationError(f"the drive failed: {type(error).__name__}")

    def _forget(self, session: str, task: asyncio.Task[None]) -> None:
        if self._driving.get(session) is task:
            del self._driving[session]

    async def _drive_once(self, session: str) -> None:
        try:
            await self._drive(session)
        except (Stale, SessionQuarantined) as error:
            # Another process drives it, or it must not be driven: a retry would help neither.
            log.warning("%s: %s", session, error)
        except Exception:
            log.exception("driving session %s failed; Temporal will retry it", session)
            raise


def _leaving() -> ApplicationError:
    return ApplicationError("this worker is shutting down", next_retry_delay=RETRY_NOW)
