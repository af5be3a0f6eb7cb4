"""In-memory `ScheduleStore`: the reference implementation.

No method awaits anything between its first read and its last write, so each is one transaction.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable

from everturn.core.schedules import Schedule


class DictSchedules:
    """The schedules of one process; they end with it."""

    def __init__(self) -> None:
        self._schedules: dict[tuple[str, str], Schedule] = {}

    async def add(self, schedule: Schedule) -> bool:
        """Add a schedule; False if its tenant has one with this id."""
        place = (schedule.tenant, schedule.id)
        return self._schedules.setdefault(place, schedule) is schedule

    async def get(self, tenant: str, id: str) -> Schedule | None:
        """Return one schedule."""
        return self._schedules.get((tenant, id))

    async def list(self, tenant: str, limit: int = 200, after: str = "") -> builtins.list[Schedule]:
        """Return the schedules of a tenant by id, those after an id."""
        own = (row for place, row in self._schedules.items() if place[0] == tenant and place[1] > after)
        return sorted(own, key=lambda row: row.id)[:limit]

    async def count(self, tenant: str) -> int:
        """Count the schedules of a tenant."""
        return sum(place[0] == tenant for place in self._schedules)

    async def change(self, tenant: str, id: str, change: Callable[[Schedule], Schedule]) -> Schedule | None:
        """Apply a function to a schedule."""
        if (found := self._schedules.get((tenant, id))) is None:
            return None
        self._schedules[tenant, id] = changed = change(found)
        return changed

    async def delete(self, tenant: str, id: str) -> bool:
        """Delete a schedule."""
        return self._schedules.pop((tenant, id), None) is not None

    async def claim(self, now: float, limit: int, begin: Callable[[Schedule], Schedule]) -> builtins.list[Schedule]:
        """Apply `begin` to schedules that are due, and return them."""
        waiting = [(at, place) for place, row in self._schedules.items() if (at := row.wake_at) is not None]
        claimed: builtins.list[Schedule] = []
        for at, place in sorted(waiting)[:limit]:
            if at <= now:
                self._schedules[place] = schedule = begin(self._schedules[place])
                claimed.append(schedule)
        return claimed

    async def next_wake(self) -> float | None:
        """Return the earliest time at which a schedule is due."""
        return min((at for row in self._schedules.values() if (at := row.wake_at) is not None), default=None)
