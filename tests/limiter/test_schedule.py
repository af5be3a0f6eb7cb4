"""The shared state of a rate limit: what it grants, to whom first, and what a lost process costs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from everturn.core.rate_limit_state import MEMBER_SECONDS, Allowance, Head, Report, SharedLimit, update_limit
from everturn.core.rate_limits import NOTHING, Amounts, BreakerPolicy, ProviderLimits, RateLimit

ONE: Amounts = (1.0, 0.0, 0.0, 0.0)
NOON = 1_700_000_000.0
SIXTY = RateLimit(requests_per_minute=60, burst_seconds=3)


def head(
    id: int, tenant: str = "a", *, since: float = NOON, cost: Amounts = ONE, weight: float = 1.0, late: bool = False
) -> Head:
    return Head(id, tenant, weight, late, since, cost)


def heads(count: int, tenant: str = "a", start: int = 1, **more: float) -> tuple[Head, ...]:
    return tuple(head(start + at, tenant, since=NOON + at / 1000, **more) for at in range(count))  # pyright: ignore[reportArgumentType]


class Bucket:
    """A state, and processes that report to it."""

    def __init__(self, limit: RateLimit | None = SIXTY) -> None:
        self.state, self.limit, self.now = SharedLimit(), limit, NOON
        self.waiting: dict[str, list[Head]] = {}

    def report(self, process: str = "p", *, heads: Sequence[Head] | None = None, **more: Any) -> Allowance:
        waiting = self.waiting.setdefault(process, [])
        if heads is not None:
            waiting[:] = heads
        # Through JSON, as a store keeps it.
        self.state = msgspec.json.decode(msgspec.json.encode(self.state), type=SharedLimit)
        report = Report(process=process, limit=self.limit, heads=tuple(waiting), **more)
        allowed = update_limit(self.state, self.now, report)
        waiting[:] = [head for head in waiting if head.id not in allowed.granted]
        return allowed


def test_no_minute_has_more_requests_than_the_limit() -> None:
    bucket, sent, last = Bucket(), list[float](), 0
    for _ in range(200):
        bucket.now += 0.5
        bucket.report(heads=[head(last + at) for at in range(1, 8)])
        allowed = bucket.report(heads=[])
        sent += [bucket.now] * len(allowed.granted)
        last += 100
    for start in sent:
        assert sum(start <= at < start + 60 for at in sent) <= 60


def test_the_whole_limit_can_be_used_over_time() -> None:
    bucket, count = Bucket(), 0
    bucket.report(heads=heads(24))
    for at in range(200):
        bucket.now += 1
        count += len(bucket.report(heads=heads(24, start=1000 * at)).granted)
    assert count >= 200 * 0.94  # a burst of 3 s has its price: 57 in a minute


def test_tenants_share_what_there_is_and_a_flood_does_not_delay_the_other() -> None:
    bucket, grants = Bucket(), Counter[str]()
    last = 0
    for _ in range(150):
        bucket.now += 0.1
        last += 100
        for process in ("p", "q", "r"):  # one tenant floods from everywhere, the other sends from one process
            queue = [head(last + at, "big") for at in range(6)]
            if process == "p":
                queue.append(head(last + 50, "small"))
            names = {each.id: each.tenant for each in queue}
            grants.update(names[id] for id in bucket.report(process, heads=queue).granted if id in names)
    assert grants["small"] >= 0.45 * grants.total()


def test_weights_divide_the_limit() -> None:
    bucket, grants = Bucket(), Counter[str]()
    for at in range(120):
        bucket.now += 1
        queue = [head(at * 10 + 1, "a", weight=3.0), head(at * 10 + 2, "a", weight=3.0), head(at * 10 + 3, "b")]
        grants.update("b" if id % 10 == 3 else "a" for id in bucket.report(heads=queue).granted)
    assert 2.5 <= grants["a"] / grants["b"] <= 3.5


def test_a_tenant_that_was_idle_gets_no_arrears() -> None:
    bucket = Bucket()
    for at in range(60):
        bucket.now += 1
        bucket.report(heads=[head(at, "a")])
    bucket.report(heads=[])
    order: list[int] = []
    queue = [
        *(head(1000 + at, "a", since=bucket.now) for at in range(10)),
        *(head(2000 + at, "b", since=bucket.now) for at in range(10)),
    ]
    bucket.waiting["p"] = queue
    for _ in range(40):
        order += bucket.report().granted
        bucket.now += 1
    first = [id // 1000 for id in order[:10]]
    assert first.count(1) == first.count(2) == 5


def test_people_go_before_background_turns_unless_those_have_waited_long() -> None:
    bucket = Bucket()
    bucket.report(heads=heads(3))  # the burst
    bucket.report(heads=[head(10, late=True), head(11, late=True), head(12, since=NOON + 1)])
    bucket.now += 1.1
    assert bucket.report().granted == (12,)
    bucket.now += 70  # now the older of the others is as good as any
    bucket.report(heads=[])
    bucket.state.level[0] = 0.0
    bucket.report(heads=[head(10, late=True), head(20, since=bucket.now)])
    bucket.now += 1.1
    assert bucket.report().granted == (10,)


def test_a_large_request_is_not_overtaken_and_goes_when_the_bucket_is_full() -> None:
    bucket = Bucket(RateLimit(tokens_per_minute=60_000, burst_seconds=3))
    bucket.report(heads=[head(1, cost=(1.0, 3000.0, 0.0, 0.0))])
    bucket.report(heads=[head(2, cost=(1.0, 50_000.0, 0.0, 0.0)), head(3, since=NOON + 1, cost=(1.0, 10.0, 0.0, 0.0))])
    bucket.now += 1.0
    assert bucket.report().granted == ()
    bucket.now += 3.0
    assert bucket.report().granted == (2,)
    allowed = bucket.report()
    assert allowed.waits[3] == pytest.approx(50.0, abs=3.0)  # it is in debt


def test_waits_are_estimated() -> None:
    bucket = Bucket()
    bucket.report(heads=heads(3))
    allowed = bucket.report(heads=heads(5, start=10))
    assert [allowed.waits[id] for id in range(10, 15)] == pytest.approx([1 / 0.95 * n for n in range(1, 6)], rel=0.05)


def test_what_a_lost_process_did_not_collect_returns_to_the_bucket() -> None:
    bucket = Bucket()
    bucket.report("gone", heads=heads(3))  # collected: lost with it
    bucket.report("gone", heads=heads(2, start=10))
    bucket.now += 0.9
    bucket.state.level[0] = 2.0
    bucket.report("here", heads=[])  # schedules the two for the other process
    assert [head.id for head in bucket.state.members["gone"].scheduled] == [10, 11]
    bucket.now += MEMBER_SECONDS + 0.1
    before = bucket.state.level[0] + 0.95 * (MEMBER_SECONDS + 0.1)
    bucket.report("here", heads=[])
    assert "gone" not in bucket.state.members
    assert bucket.state.level[0] == pytest.approx(min(3.0, before + 2), abs=0.2)


def test_a_lease_is_at_most_a_second_of_the_limit_and_only_while_nobody_waits() -> None:
    bucket = Bucket(RateLimit(requests_per_minute=6000, burst_seconds=3))
    allowed = bucket.report(heads=[head(1)], wants_lease=True)
    assert allowed.granted == (1,)
    assert 1 <= allowed.lease[0] <= 6000 / 60
    bucket.report("q", heads=[head(at) for at in range(2, 400)])
    assert bucket.report(wants_lease=True).lease == NOTHING


def test_what_is_given_back_can_be_used_and_never_exceeds_the_capacity() -> None:
    bucket = Bucket()
    bucket.report(heads=heads(3))
    bucket.report(unused=(2.0, 0.0, 0.0, 0.0))
    assert bucket.state.level[0] == pytest.approx(2.0)
    bucket.report(unused=(200.0, 0.0, 0.0, 0.0))
    assert bucket.state.level[0] == pytest.approx(3.0)


def test_limits_are_learned_and_the_lower_one_counts() -> None:
    bucket = Bucket(None)
    limits = ProviderLimits((50.0, 0.0, 0.0, 0.0), (7.0, -1.0, -1.0, -1.0))
    bucket.report(provider=limits)
    assert len(bucket.report(heads=heads(20)).granted) == 7  # as many as are left there
    configured = Bucket(RateLimit(requests_per_minute=1000))
    configured.report(provider=limits)
    assert len(configured.report(heads=heads(20)).granted) == 7
    bucket.now += 700  # nothing was told for long
    assert len(bucket.report(heads=heads(200, start=100)).granted) == 200


def test_a_refusal_blocks_all_processes_and_an_unknown_limit_is_found_slowly() -> None:
    bucket = Bucket(None)
    bucket.report(refused_for=10.0)
    allowed = bucket.report("q", heads=heads(50))
    assert allowed.granted == ()
    assert allowed.waits[1] >= 10.0
    sent = 0
    for _ in range(20):
        bucket.now += 1
        sent += len(bucket.report("q").granted)
    assert 5 <= sent < 50


def test_the_breaker_opens_lets_one_request_try_and_closes() -> None:
    bucket, breaker = Bucket(), BreakerPolicy(failures=3, seconds=30)
    bucket.report(failures=2, breaker=breaker)
    assert bucket.report(heads=[head(1)], breaker=breaker).granted == (1,)
    bucket.report(failures=1, breaker=breaker)
    allowed = bucket.report("q", heads=[head(2), head(3)], breaker=breaker)
    assert (allowed.granted, allowed.open_for) == ((), 30.0)
    bucket.now += 31
    assert bucket.report("q", breaker=breaker).granted == (2,)  # one only
    bucket.report("q", failures=1, breaker=breaker)
    assert bucket.report("q", breaker=breaker).open_for == 60.0  # twice as long
    bucket.now += 61
    assert bucket.report("q", breaker=breaker).granted == (3,)
    bucket.report("q", has_succeeded=True, breaker=breaker)
    assert len(bucket.report("q", heads=heads(2, start=10), breaker=breaker).granted) == 2


@pytest.mark.parametrize("seed", range(3))
def test_random_reports_keep_the_bucket_in_bounds_and_grant_nothing_twice(seed: int) -> None:
    chance, bucket, granted, last = random.Random(seed), Bucket(), list[tuple[str, int]](), 0
    for _ in range(400):
        bucket.now += chance.random() / 5
        process = chance.choice("pqr")
        waiting = bucket.waiting.setdefault(process, [])
        if chance.random() < 0.5:
            last += 1
            waiting.append(head(last, chance.choice("ab"), since=bucket.now, late=chance.random() < 0.3))
        elif waiting and chance.random() < 0.3:
            waiting.remove(chance.choice(waiting))
        granted += [(process, id) for id in bucket.report(process, wants_lease=chance.random() < 0.2).granted]
        assert all(
            level <= capacity + 1e-9 for level, capacity in zip(bucket.state.level, bucket.state.capacity, strict=True)
        )
    assert len(granted) == len(set(granted))
