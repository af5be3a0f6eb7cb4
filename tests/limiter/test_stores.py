"""The shared state of rate limits in stores: changed by one at a time, seen by all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from everturn.clock import SystemClock
from everturn.core.rate_limits import LimiterHandle, RateLimit, RateLimitStore, Sender
from everturn.errors import StoreUnavailable
from everturn.limiter import RateLimiter
from everturn.stores.memory import MemoryStore
from everturn.stores.sql.postgres import Postgres
from everturn.stores.sql.store import SqlStore
from everturn.testing import FakeClock
from tests.helpers.schema_pool import borrowed_schema
from tests.helpers.stores import ALL, URL


@pytest.fixture(params=ALL)
async def two(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[tuple[RateLimitStore, RateLimitStore]]:
    """Two stores on the same data, as two processes have them."""
    if request.param == "memory":
        store = MemoryStore()
        yield store.rate_limits, store.rate_limits
    elif request.param == "sqlite":
        first, second = SqlStore.sqlite(tmp_path / "a.db"), SqlStore.sqlite(tmp_path / "a.db")
        yield first.rate_limits, second.rate_limits
        await first.aclose()
        await second.aclose()
    else:
        async with borrowed_schema() as schema:
            stores = [SqlStore(Postgres(URL, schema)) for _ in range(2)]
            yield stores[0].rate_limits, stores[1].rate_limits
            for each in stores:
                await each.aclose()


async def test_no_change_is_lost(two: tuple[RateLimitStore, RateLimitStore]) -> None:
    def one_more(data: bytes, now: float) -> bytes:
        assert now > 1_700_000_000
        return b"%d" % (int(data or b"0") + 1)

    async def some(store: RateLimitStore) -> None:  # a process has one update under way at a time
        for _ in range(8):
            await store.update("k", one_more)

    await asyncio.gather(*(some(store) for store in two))
    seen: list[bytes] = []
    await two[0].update("k", lambda data, _: seen.append(data))
    assert seen == [b"16"]


async def test_processes_share_a_limit(two: tuple[RateLimitStore, RateLimitStore]) -> None:
    limit, sent = RateLimit(requests_per_minute=6, burst_seconds=30), 0  # 3 at once, then one in 20 seconds
    limiters = [RateLimiter(store, SystemClock(), name) for store, name in zip(two, "pq", strict=True)]
    tickets = [
        limiter.bucket("k", "m", limit).enqueue(Sender(LimiterHandle(limiter), "t"), (1.0, 0.0, 0.0, 0.0))
        for _ in range(6)
        for limiter in limiters
    ]
    for _ in range(2000):
        await asyncio.sleep(0.01)
        sent = sum(ticket.is_granted for ticket in tickets)
        if sent >= 3:
            break
    assert 3 <= sent <= 5  # and not three for each
    for ticket in tickets:
        ticket.close()
    for limiter in limiters:
        await limiter.aclose()


class Away:
    """A store that does not answer."""

    async def update(self, key: str, change: object) -> None:
        raise StoreUnavailable("the database is away")


async def test_while_the_store_is_away_the_process_keeps_the_limit_by_itself() -> None:
    clock = FakeClock()
    limiter = RateLimiter(Away(), clock, "p")
    bucket = limiter.bucket("k", "m", RateLimit(requests_per_minute=60, burst_seconds=0))
    tickets = [bucket.enqueue(Sender(LimiterHandle(limiter), "t"), (1.0, 0.0, 0.0, 0.0)) for _ in range(5)]
    granted: list[int] = []
    for _ in range(30):
        for _ in range(20):
            await asyncio.sleep(0)
        granted.append(sum(ticket.is_granted for ticket in tickets))
        clock.advance(0.1)
    assert granted[0] == 1
    assert granted[-1] in (3, 4)  # about one a second
    for ticket in tickets:
        ticket.close()
    await limiter.aclose()
