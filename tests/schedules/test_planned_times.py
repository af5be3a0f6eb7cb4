"""Planned times: DST gaps and folds in four zones, months without a process, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.core.schedules import Schedule
from everturn.errors import ConfigError
from everturn.schedules.planned_times import check_cron, latest_planned, next_planned, time_zone


def planned(cron: str, zone: str, start: str, count: int) -> list[str]:
    """The next planned times after a local time, as local times with their offsets."""
    schedule, tz = Schedule(id="s", text="x", cron=cron, timezone=zone), ZoneInfo(zone)
    at, found = datetime.fromisoformat(start).replace(tzinfo=tz).timestamp(), list[str]()
    for _ in range(count):
        at = next_planned(schedule, at)  # each from the last alone, as a process that starts again does
        found.append(datetime.fromtimestamp(at, tz).isoformat(timespec="minutes"))
    return found


GAPS = [  # the clocks go forward: a time that does not exist is planned at the end of the gap
    ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", ["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]),
    ("30 2 * * *", "America/New_York", "2026-03-07T12:00", ["2026-03-08T03:00-04:00", "2026-03-09T02:30-04:00"]),
    ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", ["2026-10-04T02:30+11:00", "2026-10-05T02:15+11:00"]),
    ("30 0 * * *", "Africa/Cairo", "2026-04-23T12:00", ["2026-04-24T01:00+03:00", "2026-04-25T00:30+03:00"]),
]
FOLDS = [  # the clocks go back: a time that exists twice is planned once
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]),
    ("15 1 * * *", "America/New_York", "2026-10-31T12:00", ["2026-11-01T01:15-04:00", "2026-11-02T01:15-05:00"]),
    ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00", ["2026-04-05T01:45+11:00", "2026-04-06T01:45+10:30"]),
    ("30 23 * * *", "Africa/Cairo", "2026-10-29T12:00", ["2026-10-29T23:30+03:00", "2026-10-30T23:30+02:00"]),
]


@pytest.mark.parametrize(("cron", "zone", "start", "expected"), [*GAPS, *FOLDS])
def test_a_daily_time_is_planned_once_a_day(cron: str, zone: str, start: str, expected: list[str]) -> None:
    assert planned(cron, zone, start, 2) == expected


def test_an_hourly_job_runs_in_both_hours_of_a_fold_and_in_none_of_a_gap() -> None:
    assert planned("0 * * * *", "Europe/Berlin", "2026-10-25T00:30", 4) == [
        *("2026-10-25T01:00+02:00", "2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00", "2026-10-25T03:00+01:00"),
    ]
    assert planned("0 * * * *", "Europe/Berlin", "2026-03-29T00:30", 2) == [
        "2026-03-29T01:00+01:00",
        "2026-03-29T03:00+02:00",
    ]


@given(
    st.sampled_from(("30 2 * * *", "15 1 * * *", "*/20 1-3 * * *", "0 */2 * * *", "0 0 1 * *")),
    st.sampled_from(("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata")),
    st.integers(0, 365 * 24 * 60),
    st.integers(1, 6),
)
def test_what_is_planned_backwards_is_what_was_planned_forwards(cron: str, zone: str, minute: int, most: int) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC).timestamp() + 60 * minute
    schedule = Schedule(id="s", text="x", cron=cron, timezone=zone)
    times, at = list[float](), start
    for _ in range(8):
        at = next_planned(schedule, at)
        times.append(at)
    due = Schedule(id="s", text="x", cron=cron, timezone=zone, due=times[0])
    assert latest_planned(due, times[-1], most) == times[-most:]
    assert latest_planned(due, times[-1] + 0.5, most) == times[-most:]
    assert latest_planned(due, times[-1] - 0.5, most) == times[:-1][-most:]


def test_a_month_without_a_process_is_not_counted_out() -> None:
    schedule = Schedule(id="s", text="x", cron="* * * * *", due=60.0)
    assert latest_planned(schedule, 30 * 86_400.0, 2) == [30 * 86_400.0 - 60, 30 * 86_400.0]


def test_nothing_is_planned_after_the_end() -> None:
    until = datetime(2026, 1, 2, 9, 30, tzinfo=UTC).timestamp()
    schedule = Schedule(id="s", text="x", cron="0 9 * * *", until=until)
    first = next_planned(schedule, datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp())
    assert datetime.fromtimestamp(first, UTC) == datetime(2026, 1, 2, 9, tzinfo=UTC)
    assert next_planned(schedule, first) == 0.0


def test_a_single_time_is_planned_once() -> None:
    schedule = Schedule(id="s", text="x", at=100.0, due=100.0)
    assert (next_planned(schedule, 99.0), next_planned(schedule, 100.0)) == (100.0, 0.0)
    assert latest_planned(schedule, 100.0, 5) == [100.0]


@pytest.mark.parametrize(
    ("cron", "message"),
    [
        ("* * * * * *", "five fields"),
        ("@daily", "five fields"),
        ("61 * * * *", "Bad minute"),
        ("0 0 30 2 *", "Bad day-of-month"),
        ("0 9 * * mon-", "Bad day-of-week"),
        ("x" * 300, "five fields"),
    ],
)
def test_an_expression_that_is_none_is_refused_with_an_example(cron: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        check_cron(cron, "UTC")
    assert "0 9 * * 1-5" in str(error.value)


@pytest.mark.parametrize("name", ["Europe/Berlim", "", "../etc/passwd", "CEST5", "x" * 1000, "Europe/\0"])
def test_a_zone_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="IANA"):
        time_zone(name)
