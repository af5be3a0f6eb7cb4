"""`app.schedules`: creates, lists, pauses, resumes, runs and deletes schedules."""

from __future__ import annotations

import builtins
import re
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, get_args

from msgspec.structs import replace

from everturn.chat.validation import timestamp, validate_params
from everturn.core.rate_limits import Priority
from everturn.core.schedules import (
    MAX_CATCH_UP,
    MAX_TEXT,
    CatchUp,
    Origin,
    Overlap,
    Schedule,
    ScheduleRun,
)
from everturn.core.tenants.accounts import LOCAL
from everturn.errors import ConfigError, KeyConflict, UnknownSchedule
from everturn.schedules.planned_times import check_cron, next_planned, time_zone
from everturn.schedules.scheduler import LEASE, Scheduler

if TYPE_CHECKING:
    from everturn.base_app import BaseApp

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_DEFINITION: Final = (
    *(
        "text",
        "agent",
        "session",
        "cron",
        "at",
        "timezone",
        "catch_up",
        "max_catch_up",
        "overlap",
        "until",
        "metadata",
        "priority",
    ),
)
_TIMES: Final = ("cron", "at", "timezone", "until")


class Schedules:
    """The schedules of an app."""

    def __init__(self, app: BaseApp) -> None:
        self._app = app
        self.scheduler = Scheduler(app)

    async def create(
        self,
        text: str,
        *,
        id: str | None = None,
        cron: str = "",
        at: datetime | float | None = None,
        timezone: str = "UTC",
        agent: str = "",
        session: str = "",
        catch_up: CatchUp = "once",
        max_catch_up: int = 10,
        overlap: Overlap = "queue",
        until: datetime | float | None = None,
        metadata: Mapping[str, Any] | None = None,
        priority: Priority = "background",
        by: str = "",
        tenant: str = LOCAL,
    ) -> Schedule:
        """Send a message at the planned times of a cron expression, or once `at` a time.

        `cron` is five fields, in wall-clock time of `timezone` (an IANA name). Each run is one turn, started once,
        whichever process is alive. `session` is the session of all its turns; without it each has a new one. `catch_up`
        says what becomes of planned times that passed while no process ran: `skip` them, start one turn for all of them
        (`once`), or one for each (`all`, the last `max_catch_up`). `overlap` is for runs that come while a turn of the
        session is running: `queue` or `skip`. `priority` is that of its turns where requests wait for a
        provider's rate limit. The same `id` with the same definition is the same schedule.

        Raises:
            ConfigError: something of it is not valid; the text says what is.
            KeyConflict: the tenant has another schedule with this id.
        """
        schedule = self._new(
            id=f"schedule_{secrets.token_hex(8)}" if id is None else id,
            tenant=tenant,
            text=text,
            agent=agent,
            session=session,
            cron=cron,
            at=0.0 if at is None else timestamp(at),
            timezone=timezone,
            catch_up=catch_up,
            max_catch_up=max_catch_up,
            overlap=overlap,
            until=0.0 if until is None else timestamp(until),
            metadata=None if metadata is None else dict(validate_params(metadata)),
            priority=priority,
            by=by,
        )
        await self._app.start()
        if not schedule.due:
            raise ConfigError("`at` or `until` is in the past: this schedule would never run")
        if not await self._app.store.schedules.add(schedule):
            existing = await self.get(schedule.id, tenant=tenant)
            if not _is_same(existing, schedule):
                raise KeyConflict(
                    f"a schedule {schedule.id!r} with another definition already exists; delete it, or use put"
                )
            return existing
        self.scheduler.notify()
        return schedule

    def _new(self, **fields: Any) -> Schedule:
        schedule = Schedule(created=self._app.clock.now(), **fields)
        check_schedule(schedule)
        if schedule.agent:
            self._app.binding(schedule.agent)
        return replace(schedule, due=next_planned(schedule, schedule.created))

    def plan(self, cron: str, timezone: str = "UTC", until: float = 0.0, most: int = 5) -> builtins.list[float]:
        """The next planned times of a cron expression, without a schedule.

        Raises:
            ConfigError: it is not one, or there is no such time zone.
        """
        time_zone(timezone)
        check_cron(cron, timezone)
        schedule = Schedule(id="plan", text="", cron=cron, timezone=timezone, until=until)
        times, after = builtins.list[float](), self._app.clock.now()
        while len(times) < most and (after := next_planned(schedule, after)):
            times.append(after)
        return times

    async def put(self, schedule: Schedule) -> Schedule:
        """Create a schedule, or replace the definition of the one with this id; its runs and its pause are kept."""
        fields = {name: getattr(schedule, name) for name in (*_DEFINITION, "id", "tenant", "by", "origin")}
        wanted = self._new(**fields)
        await self._app.start()
        store = self._app.store.schedules

        def change(current: Schedule) -> Schedule:
            has_same_times = all(getattr(current, name) == getattr(wanted, name) for name in _TIMES)
            kept = {name: getattr(wanted, name) for name in (*_DEFINITION, "by", "origin")}
            return replace(current, **kept, due=current.due if has_same_times else wanted.due)

        while True:
            if (changed := await store.change(wanted.tenant, wanted.id, change)) is not None:
                break
            if await store.add(wanted):
                changed = wanted
                break
        self.scheduler.notify()
        return changed

    async def list(self, *, tenant: str = LOCAL, limit: int = 200, after: str = "") -> builtins.list[Schedule]:
        """The schedules of a tenant by id, those after an id."""
        return await self._app.store.schedules.list(tenant, limit, after)

    async def get(self, id: str, *, tenant: str = LOCAL) -> Schedule:
        """One schedule, with its last runs.

        Raises:
            UnknownSchedule: there is none.
        """
        return _found(await self._app.store.schedules.get(tenant, id), id)

    async def pause(self, id: str, *, tenant: str = LOCAL) -> Schedule:
        """Start no more runs until `resume`."""
        changed = await self._app.store.schedules.change(tenant, id, lambda row: replace(row, is_paused=True))
        return _found(changed, id)

    async def resume(self, id: str, *, tenant: str = LOCAL) -> Schedule:
        """Continue with the next planned time; those of the pause are left out."""
        await self._app.start()
        now = self._app.clock.now()
        changed = await self._app.store.schedules.change(tenant, id, lambda row: resumed(row, now))
        changed = _found(changed, id)
        self.scheduler.notify()
        return changed

    async def run_now(self, id: str, *, tenant: str = LOCAL) -> ScheduleRun:
        """Start a run now, also of a paused schedule; its planned times stay as they are.

        Raises:
            UnknownSchedule: there is none.
            ConfigError: its agent is not known here.
        """
        await self._app.start()
        now = self._app.clock.now()
        planned = round(now, 3)
        schedule = await self.get(id, tenant=tenant)
        if schedule.agent:
            self._app.binding(schedule.agent)
        changed = await self._app.store.schedules.change(tenant, id, lambda row: with_run(row, planned, now + LEASE))
        changed = _found(changed, id)
        await self.scheduler.start_runs(replace(changed, firing=(planned,)))
        self.scheduler.notify()
        for run in (await self.get(id, tenant=tenant)).runs:
            if run.planned == planned:
                return run
        return ScheduleRun(planned)  # another process starts it, or this one when the store answers

    async def delete(self, id: str, *, tenant: str = LOCAL) -> None:
        """Delete a schedule. Turns that it has started go on.

        Raises:
            UnknownSchedule: there is none.
        """
        if not await self._app.store.schedules.delete(tenant, id):
            raise UnknownSchedule(f"there is no schedule {id[:80]!r}")

    async def replace_configured(self, wanted: builtins.list[Schedule]) -> None:
        """Make the schedules of a configuration those that there are; schedules of the API are not touched."""
        origin: Origin = "config"
        for schedule in wanted:
            await self.put(replace(schedule, origin=origin))
        keep = {(schedule.tenant, schedule.id) for schedule in wanted}
        for tenant in {LOCAL, *(row.id for row in await self._app.store.accounts.tenants())}:
            after = ""
            while page := await self.list(tenant=tenant, after=after):
                after = page[-1].id
                for row in page:
                    if row.origin == origin and (tenant, row.id) not in keep:
                        await self._app.store.schedules.delete(tenant, row.id)


def check_schedule(schedule: Schedule) -> None:
    """Check what can be checked without an app.

    Raises:
        ConfigError: something of it is not valid; the text says what is.
    """
    if not _ID.fullmatch(schedule.id):
        raise ConfigError(f"id={schedule.id[:80]!r}: up to 64 letters, digits, - and _")
    if not schedule.text.strip() or len(schedule.text) > MAX_TEXT:
        raise ConfigError(f"text: a message of 1 to {MAX_TEXT:,} characters")
    if bool(schedule.cron) == bool(schedule.at):
        raise ConfigError("a schedule needs either `cron` or `at`: cron='0 9 * * 1-5', or at=datetime(…)")
    time_zone(schedule.timezone)
    if schedule.cron:
        check_cron(schedule.cron, schedule.timezone)
    for name, kind in (("catch_up", CatchUp), ("overlap", Overlap), ("priority", Priority)):
        if (value := getattr(schedule, name)) not in get_args(kind):
            raise ConfigError(f"{name}={value!r}: one of {', '.join(get_args(kind))}")
    if not 1 <= schedule.max_catch_up <= MAX_CATCH_UP:
        raise ConfigError(f"max_catch_up={schedule.max_catch_up}: 1 to {MAX_CATCH_UP}")


def resumed(schedule: Schedule, now: float) -> Schedule:
    """A paused schedule that continues with its next planned time."""
    return replace(schedule, is_paused=False, due=next_planned(schedule, now)) if schedule.is_paused else schedule


def with_run(schedule: Schedule, planned: float, lease: float) -> Schedule:
    """A schedule with a run beside its planned ones, which its writer starts until the lease ends."""
    others = tuple(moment for moment in schedule.firing if moment != planned)
    return replace(schedule, firing=(*others, planned), lease=lease)


def _is_same(existing: Schedule, wanted: Schedule) -> bool:
    return all(getattr(existing, name) == getattr(wanted, name) for name in (*_DEFINITION, "by"))


def _found(schedule: Schedule | None, id: str) -> Schedule:
    if schedule is None:
        raise UnknownSchedule(f"there is no schedule {id[:80]!r}")
    return schedule
