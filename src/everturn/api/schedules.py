"""Schedules and their runs."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from everturn.api.base import Body, View
from everturn.core.rate_limits import Priority
from everturn.core.schedules import CatchUp, Origin, Overlap, RunOutcome


class ScheduleDefinition(Body, frozen=True, kw_only=True):
    """A message that is sent at the planned times of a cron expression, or once `at` a time (seconds since 1970)."""

    text: Annotated[str, Meta(min_length=1, max_length=100_000)]
    cron: Annotated[str, Meta(max_length=200)] = ""  # minute hour day month weekday, in wall-clock time of `timezone`
    at: Annotated[float, Meta(ge=0)] = 0.0
    timezone: Annotated[str, Meta(max_length=100)] = "UTC"  # an IANA name
    agent: Annotated[str, Meta(max_length=200)] = ""
    session: Annotated[str, Meta(max_length=1000)] = ""  # of all its turns; "": a new one for each
    catch_up: CatchUp = "once"  # of planned times that passed while no process ran
    max_catch_up: Annotated[int, Meta(ge=1, le=100)] = 10  # with catch_up "all"
    overlap: Overlap = "queue"  # while a turn of the session is running
    until: Annotated[float, Meta(ge=0)] = 0.0  # no run is planned after it; 0: for ever
    metadata: dict[str, Any] | None = None
    priority: Priority = "background"  # of its turns, where requests wait for a rate limit


class NewSchedule(ScheduleDefinition, frozen=True, kw_only=True):
    """A new schedule. The same `id` with the same definition is the same schedule."""

    id: Annotated[str, Meta(max_length=64)] = ""  # letters, digits, - and _; "": one is made


class PlanSchedule(Body, frozen=True, kw_only=True):
    """When a schedule is to run, to see its next planned times before it is stored."""

    cron: Annotated[str, Meta(min_length=1, max_length=200)]
    timezone: Annotated[str, Meta(max_length=100)] = "UTC"
    until: Annotated[float, Meta(ge=0)] = 0.0


class PlannedTimes(View, frozen=True, kw_only=True):
    """The next planned times, the first one first, or why there are none."""

    times: list[float]
    problem: str = ""


class ScheduleRunView(View, frozen=True, kw_only=True):
    """A run of a schedule: its turn, or why there is none."""

    planned: float
    at: float
    session: str
    turn: str
    outcome: RunOutcome
    problem: str


class ScheduleView(View, frozen=True, kw_only=True):
    """A schedule, its next planned time (`due`; 0: none) and its last runs, newest first."""

    id: str
    text: str
    cron: str
    at: float
    timezone: str
    agent: str
    session: str
    catch_up: CatchUp
    max_catch_up: int
    overlap: Overlap
    until: float
    metadata: dict[str, Any] | None
    priority: Priority
    by: str
    created: float
    origin: Origin
    is_paused: bool
    due: float
    started: int
    missed: int
    runs: list[ScheduleRunView]


class ScheduleList(View, frozen=True, kw_only=True):
    """A page of schedules, by id; `next` is the `after` of the next page ("": this is the last)."""

    schedules: list[ScheduleView]
    next: str = ""
