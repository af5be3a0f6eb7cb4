"""Planned times of schedules: cron expressions as wall-clock times of an IANA time zone.

cronsim computes them as Debian's cron does. A time that the clocks skip in spring is planned at the end of the gap. A
time that the clocks show twice in autumn is planned once; an hourly job runs in both hours.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from math import floor
from zoneinfo import ZoneInfo

from everturn.core.schedules import Schedule
from everturn.errors import ConfigError

MAX_CRON = 200  # characters of an expression


@lru_cache(maxsize=256)
def time_zone(name: str) -> ZoneInfo:
    """A time zone by its IANA name.

    Raises:
        ConfigError: there is none.
    """
    try:
        if not name or len(name) > 100:
            raise ValueError(name)
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ConfigError(
            f"timezone={name[:100]!r}: this time zone is not known; write an IANA name such as Europe/Berlin or UTC "
            "(a machine without time zones needs the package tzdata: pip install tzdata)"
        ) from None


def check_cron(expression: str, timezone: str) -> None:
    """Check a cron expression.

    Raises:
        ConfigError: it is not one, or plans nothing.
    """
    from cronsim import CronSim, CronSimError

    advice = "minute hour day month weekday, as in '0 9 * * 1-5' (weekdays at nine)"
    if len(expression) > MAX_CRON or len(expression.split()) != 5:
        raise ConfigError(f"cron={expression[:MAX_CRON]!r}: a cron expression needs five fields: {advice}")
    try:
        next(CronSim(expression, datetime(2026, 1, 1, tzinfo=time_zone(timezone))))
    except CronSimError as error:
        raise ConfigError(f"cron={expression!r}: {error}; the five fields are {advice}") from None
    except StopIteration:
        raise ConfigError(f"cron={expression!r}: no such time occurs in the next fifty years") from None


def next_planned(schedule: Schedule, after: float) -> float:
    """The first planned time of a schedule after a time; 0: there is none."""
    if not schedule.cron:
        planned = schedule.at if schedule.at > after else 0.0
    else:
        from cronsim import CronSim

        planned = next(CronSim(schedule.cron, _local(after, schedule.timezone)), _NEVER).timestamp()
    return planned if planned and not 0 < schedule.until < planned else 0.0


def latest_planned(schedule: Schedule, now: float, most: int) -> list[float]:
    """The planned times of a schedule from `due` to now, oldest first; the last so many."""
    planned: list[float] = []
    if schedule.cron:
        from cronsim import CronSim

        # Backwards: after a month without a process, nobody wants 40,000 of them. A second later, as now counts.
        for found in CronSim(schedule.cron, _local(floor(now) + 1, schedule.timezone), reverse=True):
            if found.timestamp() < schedule.due or len(planned) == most:
                break
            if not 0 < schedule.until < found.timestamp():
                planned.append(found.timestamp())
    # The rules of a zone may have changed since `due` was computed: what was planned is kept.
    return planned[::-1] or ([schedule.due] if 0 < schedule.due <= now else [])


_NEVER = datetime.fromtimestamp(0, UTC)


def _local(at: float, timezone: str) -> datetime:
    return datetime.fromtimestamp(at, time_zone(timezone))
