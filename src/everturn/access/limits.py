"""How much a tenant asks for → whether it may ask for more: requests, turns under way, and what they use.

Requests are counted in this process, everything else in the store, for all nodes; a look there is good for a second, and
what is begun meanwhile is counted beside it. So several nodes together may overshoot, by what they begin in that second.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from everturn.access.agents import Agents, TenantLimits
from everturn.core.options import Budget, Spent
from everturn.core.ports import Clock, Store
from everturn.errors import TooMuch

FRESH: Final = 1.0  # seconds for which a look at the store is good
DAY: Final = 86_400.0
BURST: Final = 2.0  # seconds of requests that may come at once
SOME: Final = 10_000  # tenants that are remembered
WAIT: Final = 5.0  # seconds until a turn may be over
LONG_WAIT: Final = 3600.0  # seconds; a budget without a period does not come back by itself


class _Bucket(Struct):
    level: float
    at: float


class _Look(Struct):
    at: float
    turns: int
    spent: Spent
    begun: int = 0  # since then, here


class Meter:
    """What the tenants of a house ask for."""

    def __init__(self, store: Store, clock: Clock, agents: Agents) -> None:
        self._store, self._clock, self._agents = store, clock, agents
        self._buckets: dict[str, _Bucket] = {}
        self._looks: dict[str, _Look] = {}
        self._uploads: dict[str, _Bucket] = {}  # of bytes

    def count(self, tenant: str) -> None:
        """Count a request.

        Raises:
            TooMuch: there were too many; `retry_after` says when the next is welcome.
        """
        rate, now = self._agents.limits(tenant).requests, self._clock.now()
        if not rate:
            return
        most = max(1.0, rate * BURST)
        bucket = self._buckets.get(tenant)
        if bucket is None:
            if len(self._buckets) >= SOME:
                self._buckets.clear()
            bucket = self._buckets[tenant] = _Bucket(most, now)
        # A clock that is set back must neither fill nor empty it.
        bucket.level = min(most, bucket.level + max(0.0, now - bucket.at) * rate)
        bucket.at = now
        if bucket.level < 1.0:
            raise TooMuch(f"too many requests; {rate:g} in a second are welcome", (1.0 - bucket.level) / rate)
        bucket.level -= 1.0

    def upload(self, tenant: str, size: int) -> None:
        """Count the bytes of a file.

        Raises:
            TooMuch: there were too many of late.
        """
        most, now = self._agents.limits(tenant).uploaded, self._clock.now()
        if not most:
            return
        if len(self._uploads) >= SOME:
            self._uploads.clear()
        bucket = self._uploads.setdefault(tenant, _Bucket(most, now))
        bucket.level = min(most, bucket.level + max(0.0, now - bucket.at) * most / DAY)
        bucket.at = now
        if bucket.level < size:
            wait = (min(size, most) - bucket.level) * DAY / most
            raise TooMuch(f"{most:,} bytes of files are welcome in a day, and these are more", wait)
        bucket.level -= size

    async def work(self, tenant: str) -> None:
        """Count what is about to begin a turn.

        Raises:
            TooMuch: so many turns are under way, or so much was used, that it may not.
        """
        limits = self._agents.limits(tenant)
        if not limits.turns and limits.budget == Budget():
            return
        look = self._looks.get(tenant)
        if look is None or not 0 <= self._clock.now() - look.at < FRESH:
            if len(self._looks) >= SOME:
                self._looks.clear()
            look = self._looks[tenant] = await self._look(tenant, limits)
        if limits.turns and look.turns + look.begun >= limits.turns:
            raise TooMuch(f"{limits.turns} turns are under way, and that is the most at once", WAIT)
        # What was begun since then has used nothing that is written yet, and each will use a step.
        if over := _over(limits.budget, look.spent + Spent(look.begun)):
            raise TooMuch(f"the budget of this tenant is used up: {over}", limits.period / 10 or LONG_WAIT)
        look.begun += 1

    async def _look(self, tenant: str, limits: TenantLimits) -> _Look:
        now = self._clock.now()
        turns = await self._store.under_way(tenant) if limits.turns else 0
        spent = Spent()
        if limits.budget != Budget():
            since = now - limits.period if limits.period else 0.0
            spent = await self._store.spent(tenant=tenant, since=since)
        return _Look(now, turns, spent)


def _over(budget: Budget, spent: Spent) -> str:
    """Which limit is reached; "": none."""
    used = spent.usage
    for name, limit, value in (
        ("steps", budget.steps, spent.steps),
        ("calls", budget.calls, spent.calls),
        ("tokens", budget.tokens, used.input + used.output),
        ("cost", budget.cost, used.cost or 0.0),
    ):
        if limit and value >= limit:
            return f"{value:g} of {limit:g} {'US dollars' if name == 'cost' else name}"
    return ""
