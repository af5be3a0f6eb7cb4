"""Schedules: messages that start turns at planned times, the decision which of them are due, and their port. Pure.

"Write before doing" holds here as in a turn. A process that finds a schedule due first writes down which planned times
it starts (`firing`) and when the next one is (`due`), in one transaction; only then does it send the messages, and then
removes them from `firing`. Whoever takes over after a crash sends exactly the messages that were written down. Each has
an idempotency key of the schedule's id and its planned time, so a message that was sent before is not sent twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical_json import hash_values
from everturn.core.rate_limits import Priority
from everturn.core.tenants.accounts import LOCAL

CatchUp = Literal["skip", "once", "all"]
"""What becomes of planned times that passed while no process ran: nothing, one turn for all of them, one turn each."""
Overlap = Literal["queue", "skip"]
"""What a run does while a turn of its session is running: it waits for its place, or is left out."""
RunOutcome = Literal["started", "skipped", "refused"]
Origin = Literal["api", "config"]

LATE_AFTER: Final = 60.0  # seconds after its planned time at which a run counts as missed
MAX_CATCH_UP: Final = 100  # runs of one schedule that may be caught up on at once
KEPT_RUNS: Final = 20  # the last runs that a schedule remembers
MAX_TEXT: Final = 100_000  # characters


class ScheduleRun(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """A run of a schedule: its turn, or why there is none."""

    planned: float
    at: float = 0.0  # when it was started
    session: str = ""
    turn: str = ""
    outcome: RunOutcome = "started"
    problem: str = ""


class Schedule(Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """A message that is sent to an agent at planned times: of a cron expression, or once (`at`).

    Planned times of a cron expression are wall-clock times of a time zone. Without a `session` each run has a new one.
    """

    id: str  # unique in its tenant
    tenant: str = LOCAL
    text: str
    agent: str = ""
    session: str = ""
    cron: str = ""
    at: float = 0.0
    timezone: str = "UTC"
    catch_up: CatchUp = "once"
    max_catch_up: int = 10  # with catch_up "all": older ones are left out
    overlap: Overlap = "queue"
    until: float = 0.0  # no run is planned after it; 0: for ever
    metadata: dict[str, object] | None = None
    priority: Priority = "background"  # of its turns, where requests wait for a rate limit
    by: str = ""  # the user whose authority its turns have; "": nobody's
    created: float = 0.0
    origin: Origin = "api"
    is_paused: bool = False
    due: float = 0.0  # the next planned time; 0: none is left
    firing: tuple[float, ...] = ()  # planned times that are being started
    lease: float = 0.0  # until when a process is starting them; then another one does
    runs: tuple[ScheduleRun, ...] = ()  # the last ones, newest first
    started: int = 0  # runs that started a turn
    missed: int = 0  # planned times without a run

    @property
    def wake_at(self) -> float | None:
        """When a process has to look at it; None: not at all."""
        if self.firing:
            return self.lease
        return None if self.is_paused or not self.due else self.due


Next = Callable[[Schedule, float], float]
"""(schedule, time) -> its first planned time after that; 0: there is none."""
Latest = Callable[[Schedule, float, int], list[float]]
"""(schedule, now, most) -> its planned times from `due` to now, oldest first; the last so many."""


def begin_runs(schedule: Schedule, now: float, lease: float, next_after: Next, latest: Latest) -> Schedule:
    """Decide which runs a process starts now: what it writes down before it starts them."""
    if schedule.firing:  # of a process that did not finish
        return replace(schedule, lease=now + lease)
    most = schedule.max_catch_up if schedule.catch_up == "all" else 1
    planned = latest(schedule, now, min(most, MAX_CATCH_UP) + 1)
    missed = max(0, len(planned) - most)  # how many more there were is not counted
    planned = planned[-most:]
    if schedule.catch_up == "skip" and planned and now - planned[-1] > LATE_AFTER:
        planned, missed = [], missed + len(planned)
    due = next_after(schedule, now)
    return replace(
        schedule,
        due=due,
        firing=tuple(planned),
        lease=now + lease if planned else 0.0,
        missed=schedule.missed + missed,
    )


def finish_runs(schedule: Schedule, runs: list[ScheduleRun]) -> Schedule:
    """Record runs that were started, and take them off what is being started."""
    done = {run.planned for run in runs} & set(schedule.firing)
    if not done:
        return schedule  # another process has recorded them
    new = [run for run in runs if run.planned in done]
    firing = tuple(planned for planned in schedule.firing if planned not in done)
    return replace(
        schedule,
        firing=firing,
        lease=schedule.lease if firing else 0.0,
        runs=(*reversed(new), *schedule.runs)[:KEPT_RUNS],
        started=schedule.started + sum(run.outcome == "started" for run in new),
        missed=schedule.missed + sum(run.outcome != "started" for run in new),
    )


def run_key(schedule: Schedule, planned: float) -> str:
    """The idempotency key of a run."""
    return f"schedule.{schedule.id}.{planned:.3f}"


def run_session(schedule: Schedule, planned: float) -> str:
    """The session of a run: the schedule's own, or a new one that is the same in every process."""
    if schedule.session:
        return schedule.session
    name = hash_values("schedule", schedule.tenant, schedule.id, repr(schedule.created), f"{planned:.3f}")
    return f"session_{name[:32]}"


class ScheduleStore(Protocol):
    """Keeps schedules. Each method is one transaction."""

    async def add(self, schedule: Schedule) -> bool:
        """Add a schedule; False if its tenant has one with this id."""
        ...

    async def get(self, tenant: str, id: str) -> Schedule | None:
        """One schedule; None if there is none."""
        ...

    async def list(self, tenant: str, limit: int = 200, after: str = "") -> list[Schedule]:
        """The schedules of a tenant by id, those after an id."""
        ...

    async def count(self, tenant: str) -> int:
        """How many schedules a tenant has."""
        ...

    async def change(self, tenant: str, id: str, change: Callable[[Schedule], Schedule]) -> Schedule | None:
        """Apply a pure function to a schedule, and return the result; None if there is none."""
        ...

    async def delete(self, tenant: str, id: str) -> bool:
        """Delete a schedule; False if there is none."""
        ...

    async def claim(self, now: float, limit: int, begin: Callable[[Schedule], Schedule]) -> list[Schedule]:
        """Apply `begin` to schedules whose `wake_at` has passed, oldest first, and return them.

        Of processes that call this at once, one gets each schedule.
        """
        ...

    async def next_wake(self) -> float | None:
        """The earliest `wake_at` of all schedules; None if there is none."""
        ...
