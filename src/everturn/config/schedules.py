"""Configured schedules: reads `[[schedules]]`, and makes them the schedules of a store."""

from __future__ import annotations

from datetime import datetime

from everturn.config.decode import ConfigDecoder
from everturn.config.errors import nearest
from everturn.config.schema import Config, ScheduleTable
from everturn.core.schedules import Schedule
from everturn.core.tenants.accounts import LOCAL
from everturn.errors import ConfigError
from everturn.schedules.schedules import Schedules, check_schedule

TIME = "a time with its offset from UTC, such as 2026-12-01T09:00:00+01:00"


def read_schedule(table: ScheduleTable) -> Schedule:
    """Return the schedule of a table.

    Raises:
        ConfigError: something of it is not valid.
    """
    schedule = Schedule(
        id=table.id,
        tenant=table.tenant,
        text=table.text,
        agent=table.agent,
        session=table.session,
        cron=table.cron,
        at=parse_time("at", table.at),
        timezone=table.timezone,
        catch_up=table.catch_up,
        max_catch_up=table.max_catch_up,
        overlap=table.overlap,
        until=parse_time("until", table.until),
        metadata=table.metadata or None,
        priority=table.priority,
        by=table.by,
        origin="config",
    )
    check_schedule(schedule)
    return schedule


def check_schedules(config: Config, reader: ConfigDecoder) -> None:
    """Check all tables; problems are added to the decoder."""
    seen: set[tuple[str, str]] = set()
    for at, table in enumerate(config.schedules):
        path = ("schedules", at)
        try:
            read_schedule(table)
        except ConfigError as error:
            reader.add_problem(path, str(error))
        if table.agent and config.agents and table.agent not in config.agents:
            reader.add_problem(
                (*path, "agent"), f"there is no agent {table.agent!r}; {nearest(table.agent, config.agents)}"
            )
        if table.tenant not in (LOCAL, *config.tenants):
            tenants = (LOCAL, *config.tenants)
            reader.add_problem(
                (*path, "tenant"), f"there is no tenant {table.tenant!r}; {nearest(table.tenant, tenants)}"
            )
        if (place := (table.tenant, table.id)) in seen:
            reader.add_problem((*path, "id"), f"two schedules of a tenant have the id {table.id!r}")
        seen.add(place)


async def apply_schedules(schedules: Schedules, config: Config, before: Config | None = None) -> None:
    """Make the configured schedules those of the store; schedules that were made by the API are not touched."""
    if before is None or before.schedules != config.schedules:
        await schedules.replace_configured([read_schedule(table) for table in config.schedules])


def parse_time(name: str, text: str) -> float:
    """Parse a time with an offset; "" is 0.

    Raises:
        ConfigError: it is no such time.
    """
    if not text:
        return 0.0
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{name}={text!r}: write {TIME}") from None
    if time.tzinfo is None:
        raise ConfigError(f"{name}={text!r}: write {TIME}")
    return time.timestamp()
