"""`everturn schedules`: lists, shows, creates, pauses, resumes, runs and deletes schedules, in a store or at a server."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from everturn import api
from everturn.access.schedules import run_view, schedule_view
from everturn.cli.commands.sessions import as_json
from everturn.cli.config_options import open_store, require_existing_store, resolve_store
from everturn.cli.connect_token import load_connect_token
from everturn.cli.output import show_slow_operation
from everturn.client import Server
from everturn.config.schedules import parse_time
from everturn.core.schedules import Schedule, ScheduleRun, ScheduleStore
from everturn.errors import ConfigError, KeyConflict, UnknownSchedule
from everturn.schedules.planned_times import next_planned
from everturn.schedules.schedules import check_schedule, resumed, with_run
from everturn.terminal.text.screen import escape_unprintable

TEXT = 50  # characters of a message in the list


def schedules(options: argparse.Namespace) -> int:
    """List the schedules, or run a command on one."""
    with show_slow_operation("asking for the schedules"):
        lines = asyncio.run(_run(options))
    for line in lines:
        print(line)
    return 0


async def _run(options: argparse.Namespace) -> list[str]:
    async with _open(options) as place:
        match options.about:
            case "show":
                found = await place.schedule(options.id)
                return [as_json(found)] if options.json else _describe(found)
            case "create":
                made = await place.create_schedule(_definition(options))
                return [as_json(made) if options.json else f"{made.id}: next at {_local(made.due, made.timezone)}"]
            case "pause":
                return _changed(options, await place.pause_schedule(options.id))
            case "resume":
                return _changed(options, await place.resume_schedule(options.id))
            case "run":
                run = await place.run_schedule(options.id)
                started = (
                    f"session {run.session}, turn {run.turn}" if run.turn else "the process of the store starts it"
                )
                return [as_json(run) if options.json else f"{options.id}: {run.problem or started}"]
            case "delete":
                await place.delete_schedule(options.id)
                return []
            case _:
                return await _list(options, place)


async def _list(options: argparse.Namespace, place: ScheduleBackend) -> list[str]:
    rows: list[api.ScheduleView] = []
    page = await place.schedules()
    rows += page.schedules
    while page.next:
        page = await place.schedules(after=page.next)
        rows += page.schedules
    if options.json:
        return [as_json(row) for row in rows]
    if not rows:
        return ["no schedules yet; `everturn schedules create --help` has examples"]
    width = max(len(row.id) for row in rows)
    return [f"{row.id:<{width}}  {_state(row):<34}  {_when(row):<24}  {_short(row.text)}" for row in rows]


def _definition(options: argparse.Namespace) -> api.NewSchedule:
    return api.NewSchedule(
        id=options.id,
        text=options.text,
        cron=options.cron,
        at=parse_time("--at", options.at),
        timezone=options.timezone,
        agent=options.agent,
        session=options.session,
        catch_up=options.catch_up,
        max_catch_up=options.max_catch_up,
        overlap=options.overlap,
        until=parse_time("--until", options.until),
    )


def _changed(options: argparse.Namespace, row: api.ScheduleView) -> list[str]:
    return [as_json(row) if options.json else f"{row.id}: {_state(row)}"]


def _describe(row: api.ScheduleView) -> list[str]:
    lines = [f"{row.id}: {_state(row)}", f"  {_when(row)} ({row.timezone})", f"  {escape_unprintable(row.text)}"]
    lines += [
        f"  agent {escape_unprintable(row.agent or '(the first one)')}, started {row.started}, missed {row.missed}"
    ]
    for run in row.runs:
        detail = run.problem or f"session {run.session}"
        lines.append(f"  {_local(run.planned, row.timezone)}  {run.outcome}  {escape_unprintable(detail)}")
    return lines


def _state(row: api.ScheduleView) -> str:
    if row.is_paused:
        return "paused"
    return f"next {_local(row.due, row.timezone)}" if row.due else "over"


def _when(row: api.ScheduleView) -> str:
    return escape_unprintable(row.cron) if row.cron else f"once at {_local(row.at, row.timezone)}"


def _local(at: float, timezone: str) -> str:
    try:
        return datetime.fromtimestamp(at, ZoneInfo(timezone)).isoformat(sep=" ", timespec="minutes")
    except (KeyError, ValueError, OSError, OverflowError):
        return f"{at:.0f}"


def _short(text: str) -> str:
    line = escape_unprintable(" ".join(text.split()))
    return line if len(line) <= TEXT else f"{line[: TEXT - 3]}..."


class ScheduleBackend(Protocol):
    """Where schedules are: a store or a server, with the methods of `everturn.client.Server`."""

    async def schedules(self, limit: int = 200, after: str = "") -> api.ScheduleList: ...

    async def schedule(self, id: str) -> api.ScheduleView: ...

    async def create_schedule(self, schedule: api.NewSchedule) -> api.ScheduleView: ...

    async def pause_schedule(self, id: str) -> api.ScheduleView: ...

    async def resume_schedule(self, id: str) -> api.ScheduleView: ...

    async def run_schedule(self, id: str) -> api.ScheduleRunView: ...

    async def delete_schedule(self, id: str) -> None: ...


@asynccontextmanager
async def _open(options: argparse.Namespace) -> AsyncGenerator[ScheduleBackend]:
    if options.connect:
        if options.store:
            raise ConfigError("--store names a local file, and --connect a server; use one of them")
        async with Server(options.connect, load_connect_token(options)) as server:
            yield server
        return
    store = await open_store(options, require_existing_store(resolve_store(options)))
    try:
        yield ScheduleStoreBackend(store.schedules, options.tenant)
    finally:
        await store.aclose()


class ScheduleStoreBackend:
    """Schedules in a store of this machine. The process that serves the store notices a change within seconds."""

    def __init__(self, store: ScheduleStore, tenant: str) -> None:
        self._store, self._tenant = store, tenant

    async def schedules(self, limit: int = 200, after: str = "") -> api.ScheduleList:
        found = await self._store.list(self._tenant, limit, after)
        return api.ScheduleList(
            schedules=[schedule_view(row) for row in found], next=found[-1].id if len(found) == limit else ""
        )

    async def schedule(self, id: str) -> api.ScheduleView:
        return schedule_view(_found(await self._store.get(self._tenant, id), id))

    async def create_schedule(self, schedule: api.NewSchedule) -> api.ScheduleView:
        fields = {name: getattr(schedule, name) for name in api.ScheduleDefinition.__struct_fields__}
        now = time.time()
        new = Schedule(id=schedule.id or f"schedule_{secrets.token_hex(8)}", tenant=self._tenant, created=now, **fields)
        check_schedule(new)
        new = replace(new, due=next_planned(new, now))
        if not new.due:
            raise ConfigError("--at or --until is in the past: this schedule would never run")
        if not await self._store.add(new):
            raise KeyConflict(f"a schedule {new.id!r} already exists; `everturn schedules delete {new.id}` deletes it")
        return schedule_view(new)

    async def pause_schedule(self, id: str) -> api.ScheduleView:
        return await self._change(id, lambda row: replace(row, is_paused=True))

    async def resume_schedule(self, id: str) -> api.ScheduleView:
        now = time.time()
        return await self._change(id, lambda row: resumed(row, now))

    async def run_schedule(self, id: str) -> api.ScheduleRunView:
        planned = round(time.time(), 3)
        await self._change(id, lambda row: with_run(row, planned, planned))  # whoever drives the store starts it
        return run_view(ScheduleRun(planned))

    async def delete_schedule(self, id: str) -> None:
        if not await self._store.delete(self._tenant, id):
            _found(None, id)

    async def _change(self, id: str, change: Callable[[Schedule], Schedule]) -> api.ScheduleView:
        return schedule_view(_found(await self._store.change(self._tenant, id, change), id))


def _found(schedule: Schedule | None, id: str) -> Schedule:
    if schedule is None:
        raise UnknownSchedule(f"there is no schedule {id!r} here; `everturn schedules` lists them")
    return schedule
