"""Scheduler: starts the runs that are due. Every process of an app has one; the store gives each schedule to one of them.

A claim is a lease of a few seconds. A process that is killed loses it, and another one starts what was written down; a
process that is only slow may be overtaken, and then both send the same message with the same key, which is one turn.
"""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from everturn.chat.unattended import unattended_chat, user_problem
from everturn.core.options import TurnOptions
from everturn.core.schedules import (
    LATE_AFTER,
    RunOutcome,
    Schedule,
    ScheduleRun,
    ScheduleStore,
    begin_runs,
    finish_runs,
    run_key,
    run_session,
)
from everturn.errors import (
    ConfigError,
    EngineUnavailable,
    EverturnError,
    KeyConflict,
    SessionBusy,
    StoreBusy,
    StoreUnavailable,
)
from everturn.failpoints import hit_failpoint
from everturn.schedules.planned_times import latest_planned, next_planned

if TYPE_CHECKING:
    from everturn.base_app import BaseApp

log = logging.getLogger(__name__)

LEASE: Final = 3.0  # seconds in which a process starts what it has claimed; then another one does
BATCH: Final = 50  # schedules that a process claims at once
POLL_INTERVAL: Final = 1.0  # seconds between two looks at a store that several processes drive
FILE_POLL_INTERVAL: Final = 5.0  # the same for a store of this process alone: only a command line changes it
ERROR_PAUSE: Final = 2.0  # seconds after a look that failed
AGENT_WAIT: Final = LATE_AFTER  # seconds in which a process that knows the agent may come
MAX_PROBLEM: Final = 500  # characters


class Scheduler:
    """Starts the runs of the schedules in a store, in the background."""

    def __init__(self, app: BaseApp) -> None:
        self._app = app
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def _store(self) -> ScheduleStore:
        return self._app.store.schedules

    def start(self) -> None:
        """Start, if there is a schedule or other processes may add one; a turn does not wait for that."""
        if self._task is None and not self._app.is_closing:
            self._task = asyncio.get_running_loop().create_task(self._run_if_used())

    async def _run_if_used(self) -> None:
        with suppress(ConfigError):  # a store without schedules
            try:
                is_used = not self._app.is_in_memory or await self._store.next_wake() is not None
            except StoreUnavailable:
                is_used = True  # look again
            if is_used or self._changed.is_set():
                await self._run()

    def notify(self) -> None:
        """Look at the store at once: a schedule was added or changed."""
        self._changed.set()
        if (self._task is None or self._task.done()) and not self._app.is_closing:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def aclose(self) -> None:
        """Stop. What was claimed and not started is started by another process."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            try:
                wake = await self._store.next_wake()
                while wake is not None and wake <= self._app.clock.now() and await self.run_due():
                    wake = await self._store.next_wake()
                pause = None if wake is None else max(0.0, wake - self._app.clock.now())
                if not self._app.is_in_memory:  # other processes may change the store
                    interval = POLL_INTERVAL if self._app.engine.is_durable else FILE_POLL_INTERVAL
                    poll = interval * random.uniform(0.5, 1.0)
                    pause = poll if pause is None else min(pause, poll)
            except Exception as error:
                log.warning("the search for due schedules failed; trying again: %s", error)
                pause = ERROR_PAUSE
            await self._wait(pause)

    async def _wait(self, seconds: float | None) -> None:
        """Wait until a schedule changes, or (with seconds) so long."""
        if seconds is None:
            await self._changed.wait()
            return
        timer = self._app.clock.call_later(seconds, self._changed.set)
        try:
            await self._changed.wait()
        finally:
            timer.cancel()

    async def run_due(self) -> int:
        """Start what is due now, and return the number of schedules that were claimed."""
        now = self._app.clock.now()
        claimed = await self._store.claim(
            now, BATCH, lambda schedule: begin_runs(schedule, now, LEASE, next_planned, latest_planned)
        )
        if claimed:
            hit_failpoint("schedule.claimed")
        await asyncio.gather(*(self.start_runs(schedule) for schedule in claimed if schedule.firing))
        return len(claimed)

    async def start_runs(self, schedule: Schedule) -> None:
        """Start the planned runs of a claimed schedule, one after another, and record them."""
        runs: list[ScheduleRun] = []
        for planned in schedule.firing:
            try:
                run = await self._start_run(schedule, planned)
            except (StoreUnavailable, StoreBusy, EngineUnavailable) as error:
                log.warning("schedule %s waits for the store: %s", schedule.id, error)
                break
            if run is None:
                break
            runs.append(run)
        hit_failpoint("schedule.started")
        if runs:
            await self._store.change(schedule.tenant, schedule.id, lambda current: finish_runs(current, runs))

    async def _start_run(self, schedule: Schedule, planned: float) -> ScheduleRun | None:
        """Start one run; None: it is left to another process, or to later."""
        app, session, now = self._app, run_session(schedule, planned), self._app.clock.now()

        def ended(outcome: RunOutcome, problem: object) -> ScheduleRun:
            log.warning("schedule %s of %s: the run was %s: %s", schedule.id, schedule.tenant, outcome, problem)
            text = str(problem)[:MAX_PROBLEM]
            return ScheduleRun(planned, at=now, session=session, outcome=outcome, problem=text)

        if schedule.agent and schedule.agent not in app.agents and now - planned <= AGENT_WAIT:
            return None
        if refusal := await user_problem(app, schedule.tenant, schedule.by):
            return ended("refused", refusal)
        key = run_key(schedule, planned)
        try:
            options = TurnOptions(by=schedule.by, priority=schedule.priority)
            turn = await unattended_chat(app, schedule.agent, session, schedule.tenant, options).send(
                schedule.text,
                key=key,
                agent=schedule.agent or None if schedule.session else None,
                alone=schedule.overlap == "skip",
                metadata={**(schedule.metadata or {}), "schedule": schedule.id, "planned": planned},
            )
            return ScheduleRun(planned, at=now, session=session, turn=turn.id)
        except SessionBusy as error:
            return ended("skipped", error)
        except KeyConflict:  # it was started before, and the schedule was changed since
            started = await app.store.turn_of_command(session, key)
            return ScheduleRun(planned, at=now, session=session, turn=started)
        except (StoreUnavailable, StoreBusy, EngineUnavailable):
            raise
        except EverturnError as error:
            return None if app.is_closing else ended("refused", error)
