"""Quotas of tenants: limits on requests, uploads, running turns and usage.

Requests and uploads are counted in this process; turns and usage in the store, for all nodes. A reading of the store is
used for a second, and turns that begin meanwhile are added to it. So several nodes together may overshoot by what they
begin in that second.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from everturn.access.context.agents import Agents, TenantLimits
from everturn.core.options import Budget, Spent
from everturn.core.ports import Clock
from everturn.core.store_ports import Store
from everturn.core.tenants.accounts import Accounts
from everturn.core.tenants.user_records import UserBudget
from everturn.errors import TooMuch

READING_SECONDS: Final = 1.0  # seconds for which a reading of the store is used
DAY: Final = 86_400.0
BURST: Final = 2.0  # seconds of requests that may come at once
TENANT_LIMIT: Final = 10_000  # tenants that are remembered
TURN_RETRY_AFTER: Final = 5.0  # seconds until a turn may be over
BUDGET_RETRY_AFTER: Final = 3600.0  # seconds; a budget without a period does not recover by itself


class _Bucket(Struct):
    level: float
    at: float


class _UsageReading(Struct):
    at: float
    turns: int
    spent: Spent
    started: int = 0  # turns started since the reading, on this node
    requests: int = 0  # requests outside of turns since the reading, on this node


class _UserReading(Struct):
    at: float
    budget: UserBudget
    spent: Spent
    begun: int = 0  # turns and other requests begun since the reading, on this node


class TenantMeter:
    """Counts what each tenant uses against its limits."""

    def __init__(self, store: Store, clock: Clock, agents: Agents, accounts: Accounts | None = None) -> None:
        self._store, self._clock, self._agents, self._accounts = store, clock, agents, accounts
        self._user_readings: dict[tuple[str, str], _UserReading] = {}
        self._buckets: dict[str, _Bucket] = {}
        self._readings: dict[str, _UsageReading] = {}
        self._uploads: dict[str, _Bucket] = {}  # of bytes

    def count_request(self, tenant: str) -> None:
        """Count a request.

        Raises:
            TooMuch: the rate limit is exceeded; `retry_after` says when to retry.
        """
        rate, now = self._agents.limits(tenant).requests, self._clock.now()
        if not rate:
            return
        capacity = max(1.0, rate * BURST)
        bucket = self._buckets.get(tenant)
        if bucket is None:
            if len(self._buckets) >= TENANT_LIMIT:
                self._buckets.clear()
            bucket = self._buckets[tenant] = _Bucket(capacity, now)
        # A clock that is set back must neither fill nor empty it.
        bucket.level = min(capacity, bucket.level + max(0.0, now - bucket.at) * rate)
        bucket.at = now
        if bucket.level < 1.0:
            raise TooMuch(f"too many requests; {rate:g} per second are allowed", (1.0 - bucket.level) / rate)
        bucket.level -= 1.0

    def count_upload(self, tenant: str, size: int) -> None:
        """Count the bytes of a file.

        Raises:
            TooMuch: the upload limit is exceeded.
        """
        capacity, now = self._agents.limits(tenant).uploaded, self._clock.now()
        if not capacity:
            return
        if len(self._uploads) >= TENANT_LIMIT:
            self._uploads.clear()
        bucket = self._uploads.setdefault(tenant, _Bucket(capacity, now))
        bucket.level = min(capacity, bucket.level + max(0.0, now - bucket.at) * capacity / DAY)
        bucket.at = now
        if bucket.level < size:
            wait = (min(size, capacity) - bucket.level) * DAY / capacity
            raise TooMuch(f"{capacity:,} bytes of files per day are allowed, and this upload exceeds them", wait)
        bucket.level -= size

    async def count_turn(self, tenant: str, user: str = "") -> None:
        """Count a turn that is about to begin, also against the budget of the user who starts it.

        Raises:
            TooMuch: too many turns are running, or a budget is used up.
        """
        await self._count_tenant_turn(tenant)
        if user and self._accounts is not None:
            await self._count_user_turn(self._accounts, tenant, user)

    async def count_request_outside_turns(self, tenant: str, user: str = "") -> None:
        """Count a request to a model that is about to be made outside of a turn, against the budgets of tenant and user.

        Raises:
            TooMuch: a budget is used up.
        """
        limits = self._agents.limits(tenant)
        reading = await self._tenant_reading(tenant, limits) if limits.budget != Budget() else None
        if reading is not None:
            _check_tenant_budget(limits, reading)
        if user and self._accounts is not None:
            await self._count_user_turn(self._accounts, tenant, user)
        if reading is not None:
            reading.requests += 1

    async def _count_user_turn(self, accounts: Accounts, tenant: str, user: str) -> None:
        (await self._user_reading(accounts, tenant, user)).begun += 1

    async def _user_reading(self, accounts: Accounts, tenant: str, user: str) -> _UserReading:
        """What a user has used; refused when that is the budget."""
        look = self._user_readings.get((tenant, user))
        if look is None or not 0 <= self._clock.now() - look.at < READING_SECONDS:
            if len(self._user_readings) >= TENANT_LIMIT:
                self._user_readings.clear()
            now, record = self._clock.now(), await accounts.records.record(tenant, user)
            spent = Spent()
            if record.budget.budget != Budget():
                spent = await self._store.user_spent(tenant, user, budget_start(record.budget, now))
            look = self._user_readings[tenant, user] = _UserReading(now, record.budget, spent)
        if over := _over(look.budget.budget, look.spent + Spent(look.begun)):
            wait = look.budget.period / 10 or BUDGET_RETRY_AFTER
            raise TooMuch(f"your budget is used up: {over}; an administrator can raise it", wait)
        return look

    async def _count_tenant_turn(self, tenant: str) -> None:
        limits = self._agents.limits(tenant)
        if not limits.turns and limits.budget == Budget():
            return
        look = await self._tenant_reading(tenant, limits)
        if limits.turns and look.turns + look.started >= limits.turns:
            raise TooMuch(
                f"{limits.turns} turns are running, which is the limit; wait until one ends", TURN_RETRY_AFTER
            )
        _check_tenant_budget(limits, look)
        look.started += 1

    async def _tenant_reading(self, tenant: str, limits: TenantLimits) -> _UsageReading:
        look = self._readings.get(tenant)
        if look is None or not 0 <= self._clock.now() - look.at < READING_SECONDS:
            if len(self._readings) >= TENANT_LIMIT:
                self._readings.clear()
            look = self._readings[tenant] = await self._read_usage(tenant, limits)
        return look

    async def _read_usage(self, tenant: str, limits: TenantLimits) -> _UsageReading:
        now = self._clock.now()
        turns = await self._store.count_active_turns(tenant) if limits.turns else 0
        spent = Spent()
        if limits.budget != Budget():
            since = now - limits.period if limits.period else 0.0
            spent = await self._store.spent(tenant=tenant, since=since)
        return _UsageReading(now, turns, spent)


def _check_tenant_budget(limits: TenantLimits, look: _UsageReading) -> None:
    # What was started since the reading has no recorded usage yet, and each will use a step.
    if over := _over(limits.budget, look.spent + Spent(look.started + look.requests)):
        raise TooMuch(f"the budget of this tenant is used up: {over}", limits.period / 10 or BUDGET_RETRY_AFTER)


def budget_start(budget: UserBudget, now: float) -> float:
    """Since when usage counts against a budget."""
    return now - budget.period if budget.period else 0.0


def _over(budget: Budget, spent: Spent) -> str:
    """Which limit is reached; "" if none."""
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
