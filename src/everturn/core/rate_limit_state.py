"""Shared state of a rate limit, and the schedule of the requests that wait for it. Pure.

A process reports what it did and which requests wait (`Report`); the state changes, and the process gets back what it
may send (`Allowance`). Any report schedules the requests of all processes, so whoever reports next collects what is
his. Three things bound what a killed process can cost: nothing is scheduled for a process that is silent for a second,
what was scheduled for it and not collected returns to the bucket, and a lease is at most a second of the limit.

Order: interactive requests before those of background turns (unless these have waited long), then by start-time fair
queueing among tenants: each tenant has a virtual time that advances by the cost of its requests over its weight, and
the tenant that is furthest behind is next. A request that does not fit is not overtaken, or a large one would starve.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from msgspec import Struct, field

from everturn.core.rate_limits import DIMENSIONS, NOTHING, Amounts, BreakerPolicy, ProviderLimits, RateLimit

MEMBER_SECONDS: Final = 5.0  # after which a process that does not report has left
SILENT_SECONDS: Final = 1.0  # after which nothing is scheduled for it
LEASE_SECONDS: Final = 1.0  # of a limit that one process may hold in advance
LEARNED_SECONDS: Final = 600.0  # for which a limit from a response's headers counts
BACKGROUND_PATIENCE: Final = 60.0  # seconds after which a background request is treated as an interactive one
REFUSAL_SECONDS: Final = 1.0  # of a pause after a refusal that names no time
PACE_START: Final = 1.0  # requests a second after a refusal by a provider whose limit is not known
PACE_DOUBLING: Final = 5.0  # seconds in which that pace doubles without another refusal
PACE_END: Final = 200.0
PROBE_SECONDS: Final = 60.0  # in which the one request of a half-open breaker must be answered
MOST_ESTIMATES: Final = 512
_ALL: Final = range(len(DIMENSIONS))


class Head(Struct, array_like=True):
    """A request that waits, at the head of the queue of its process."""

    id: int
    tenant: str
    weight: float
    is_background: bool
    since: float
    cost: Amounts


class Member(Struct, omit_defaults=True, repr_omit_defaults=True):
    """A process that uses the bucket."""

    seen: float
    heads: list[Head] = []
    scheduled: list[Head] = []  # may be sent, and not collected yet


class SharedLimit(Struct, omit_defaults=True, repr_omit_defaults=True):
    """The state of a bucket."""

    at: float = 0.0
    rate: list[float] = field(default_factory=lambda: [*NOTHING])  # per second; 0: no limit
    capacity: list[float] = field(default_factory=lambda: [*NOTHING])
    level: list[float] = field(default_factory=lambda: [*NOTHING])
    learned: Amounts = NOTHING  # per minute
    learned_until: float = 0.0
    pace: float = 0.0  # requests a second after a refusal, where no limit is known
    blocked_until: float = 0.0
    failures: int = 0  # in a row
    opened: int = 0  # times in a row
    open_until: float = 0.0
    probe_until: float = 0.0
    virtual_time: float = 0.0
    finish_times: dict[str, float] = {}  # tenant -> when its last request ends in virtual time, if that is ahead
    members: dict[str, Member] = {}


class Report(Struct, frozen=True, kw_only=True):
    """What a process did since its last report, and what waits there."""

    process: str
    limit: RateLimit | None = None
    breaker: BreakerPolicy = BreakerPolicy()
    heads: tuple[Head, ...] = ()
    unused: Amounts = NOTHING  # of its lease, and of requests that were cancelled
    used_more: Amounts = NOTHING  # than was estimated
    provider: ProviderLimits | None = None
    refused_for: float | None = None  # seconds; 0: the provider did not say
    failures: int = 0
    has_succeeded: bool = False
    wants_lease: bool = False


class Allowance(Struct, frozen=True):
    """What a process may send, and what it should know."""

    granted: tuple[int, ...] = ()
    lease: Amounts = NOTHING
    waits: dict[int, float] = {}  # the requests that wait -> the estimated seconds
    room: float = 1.0
    rate: Amounts = NOTHING
    blocked_for: float = 0.0
    open_for: float = 0.0
    members: int = 1


def update_limit(state: SharedLimit, now: float, report: Report) -> Allowance:
    """Change the state by a report, and return what the process may send."""
    _refill(state, now)
    if report.provider is not None:
        _learn(state, now, report.provider)
    _set_rates(state, now, report.limit)
    if report.provider is not None:
        _cap(state, report.provider)
    _add(state, report.unused, 1.0)
    _add(state, report.used_more, -1.0)
    if report.refused_for is not None:
        _refuse(state, now, report.refused_for)
    _judge(state, now, report)
    _drop_members(state, now)
    member = state.members.setdefault(report.process, Member(now))
    member.seen, member.heads = (
        now,
        [head for head in report.heads if all(head.id != scheduled.id for scheduled in member.scheduled)],
    )
    queue = _Queue(state, now)
    _schedule(state, now, queue, report.breaker)
    collected = tuple(head.id for head in member.scheduled)
    member.scheduled = []
    waits = _estimate(state, now, queue, {head.id for head in member.heads}, report)
    is_free = not any(other.heads for other in state.members.values() if now - other.seen <= SILENT_SECONDS)
    lease = _lease(state, now) if report.wants_lease and is_free else NOTHING
    state.finish_times = {name: at for name, at in state.finish_times.items() if at > state.virtual_time}
    return Allowance(
        collected,
        lease,
        waits,
        _room(state),
        _amounts(state.rate),
        max(0.0, state.blocked_until - now),
        max(0.0, state.open_until - now),
        len(state.members),
    )


def _amounts(values: list[float]) -> Amounts:
    return (values[0], values[1], values[2], values[3])


def _refill(state: SharedLimit, now: float) -> None:
    passed = max(0.0, now - state.at) if state.at else 0.0
    state.at = max(now, state.at)
    if state.pace:
        state.pace *= 2 ** (passed / PACE_DOUBLING)
        if state.pace > PACE_END:
            state.pace = 0.0
    for at in _ALL:
        state.level[at] = min(state.capacity[at], state.level[at] + state.rate[at] * passed)


def _learn(state: SharedLimit, now: float, provider: ProviderLimits) -> None:
    if any(provider.per_minute):
        state.learned, state.learned_until = provider.per_minute, now + LEARNED_SECONDS


def _set_rates(state: SharedLimit, now: float, limit: RateLimit | None) -> None:
    """Set rates and capacities: the configured limit, or the provider's where that is lower or alone."""
    configured = limit.per_minute if limit is not None else NOTHING
    learned = state.learned if now < state.learned_until else NOTHING
    for at in _ALL:
        least = 1.0 if at == 0 else 0.0
        if configured[at] and (not learned[at] or configured[at] <= learned[at]):
            burst = limit.burst_seconds if limit is not None else 0.0
            # Together at most the limit in any minute, whatever the provider's window looks like.
            capacity = max(least, min(configured[at] * burst / 60, configured[at] / 2))
            rate = max(configured[at] - capacity, configured[at] / 2) / 60
        elif learned[at]:
            capacity, rate = max(least, learned[at]), learned[at] / 60  # its headers say how much is left
        elif at == 0 and state.pace:
            capacity, rate = 1.0, state.pace
        else:
            capacity = rate = 0.0
        is_new = rate > 0 and not state.rate[at]
        state.level[at] = capacity if is_new else min(state.level[at], capacity)
        state.capacity[at], state.rate[at] = capacity, rate


def _cap(state: SharedLimit, provider: ProviderLimits) -> None:
    """Believe the provider if it says that less is left than we think: others may use the same key."""
    for at in _ALL:
        if provider.remaining[at] >= 0 and state.rate[at]:
            state.level[at] = min(state.level[at], provider.remaining[at])


def _add(state: SharedLimit, amounts: Amounts, sign: float) -> None:
    for at in _ALL:
        if state.rate[at]:
            state.level[at] = min(state.capacity[at], state.level[at] + sign * amounts[at])


def _refuse(state: SharedLimit, now: float, seconds: float) -> None:
    state.blocked_until = max(state.blocked_until, now + (seconds or REFUSAL_SECONDS))
    if state.pace:
        state.pace = max(state.pace / 2, PACE_START / 4)
    elif not any(state.rate):
        state.pace = PACE_START
        state.rate[0] = state.pace
        state.capacity[0] = 1.0
    state.level[0] = min(state.level[0], 0.0)


def _judge(state: SharedLimit, now: float, report: Report) -> None:
    """Open or close the circuit breaker."""
    if report.has_succeeded:
        state.failures = state.opened = 0
        state.open_until = state.probe_until = 0.0
    if not report.failures:
        return
    state.failures += report.failures
    if state.failures >= report.breaker.failures and now >= state.open_until:
        pause = min(report.breaker.seconds * 2 ** min(state.opened, 10), report.breaker.max_seconds)
        state.opened += 1
        state.open_until, state.probe_until = now + pause, 0.0


def _drop_members(state: SharedLimit, now: float) -> None:
    for name, member in list(state.members.items()):
        if now - member.seen > MEMBER_SECONDS:
            for head in member.scheduled:  # never collected, so never sent
                _add(state, head.cost, 1.0)
            del state.members[name]


class _Queue:
    """All requests that wait, in the order of the schedule."""

    def __init__(self, state: SharedLimit, now: float) -> None:
        self._virtual_time, self._finish_times = state.virtual_time, dict(state.finish_times)
        self._rate = state.rate
        self._next: str | None = None  # the tenant of the next request, once it was looked for
        self._classes: tuple[dict[str, deque[tuple[Head, Member]]], ...] = ({}, {})
        present = [member for member in state.members.values() if now - member.seen <= SILENT_SECONDS]
        heads = [(head, member) for member in present for head in member.heads]
        for head, member in sorted(heads, key=lambda pair: pair[0].since):
            is_late = head.is_background and now - head.since < BACKGROUND_PATIENCE
            self._classes[is_late].setdefault(head.tenant, deque()).append((head, member))

    def first(self) -> tuple[Head, Member] | None:
        """The next request."""
        tenants = self._classes[0] or self._classes[1]
        if not tenants:
            return None
        if self._next is None:
            self._next = min(tenants, key=lambda name: (self._start(name), tenants[name][0][0].since))
        return tenants[self._next][0]

    def pop(self) -> None:
        """Take the next request off, and advance its tenant's virtual time."""
        tenants = self._classes[0] or self._classes[1]
        name, self._next = self._next, None
        assert name is not None
        head, _ = tenants[name].popleft()
        if not tenants[name]:
            del tenants[name]
        start = self._start(name)
        # In seconds of the limit of which it takes the most.
        seconds = max((head.cost[at] / self._rate[at] for at in _ALL if self._rate[at]), default=0.0)
        self._virtual_time = start
        self._finish_times[name] = start + seconds / max(head.weight, 1e-6)

    def save(self, state: SharedLimit) -> None:
        """Write the virtual times into the state."""
        state.virtual_time, state.finish_times = self._virtual_time, dict(self._finish_times)

    def _start(self, tenant: str) -> float:
        return max(self._virtual_time, self._finish_times.get(tenant, 0.0))


def _missing(level: list[float], rate: list[float], capacity: list[float], cost: Amounts) -> float:
    """The seconds until there is enough for a request; one that is larger than the capacity needs a full bucket."""
    return max(
        (max(0.0, min(cost[at], capacity[at]) - level[at]) / rate[at] for at in _ALL if rate[at] and cost[at]),
        default=0.0,
    )


def _schedule(state: SharedLimit, now: float, queue: _Queue, breaker: BreakerPolicy) -> None:
    """Schedule what can be sent now."""
    is_failing = state.failures >= breaker.failures
    if now < state.blocked_until or (is_failing and now < max(state.open_until, state.probe_until)):
        return
    while (first := queue.first()) is not None:
        head, member = first
        if _missing(state.level, state.rate, state.capacity, head.cost) > 1e-9:
            break
        queue.pop()
        _add(state, head.cost, -1.0)
        member.heads = [other for other in member.heads if other is not head]
        member.scheduled.append(head)
        if is_failing:  # one request finds out whether the provider works again
            state.probe_until = now + PROBE_SECONDS
            break
    queue.save(state)


def _estimate(state: SharedLimit, now: float, queue: _Queue, wanted: set[int], report: Report) -> dict[int, float]:
    """Estimate the waits of a process's requests: continue the schedule in the future."""
    waits: dict[int, float] = {}
    passed = max(0.0, state.blocked_until - now)
    if state.failures >= report.breaker.failures:
        passed = max(passed, state.open_until - now, state.probe_until - now)
    level = [level + rate * passed for level, rate in zip(state.level, state.rate, strict=True)]
    own = {id(head) for head in state.members[report.process].heads}
    for _ in range(MOST_ESTIMATES):
        if not wanted or (first := queue.first()) is None:
            break
        head = first[0]
        more = _missing(level, state.rate, state.capacity, head.cost)
        passed += more
        queue.pop()
        for at in _ALL:
            level[at] += state.rate[at] * more - (head.cost[at] if state.rate[at] else 0.0)
        if id(head) in own:
            waits[head.id] = passed
            wanted.discard(head.id)
    return waits


def _lease(state: SharedLimit, now: float) -> Amounts:
    """Give a process a part of the bucket in advance, if nobody waits and there is enough."""
    if now < state.blocked_until or state.failures or state.pace:
        return NOTHING
    share = [
        min(state.level[at] / 2 / len(state.members), state.rate[at] * LEASE_SECONDS) if state.rate[at] else 0.0
        for at in _ALL
    ]
    share[0] = float(int(share[0]))
    if any(state.rate[at] and share[at] < 1 for at in _ALL):
        return NOTHING
    lease = _amounts(share)
    _add(state, lease, -1.0)
    return lease


def _room(state: SharedLimit) -> float:
    return min((state.level[at] / state.capacity[at] for at in _ALL if state.rate[at]), default=1.0)
