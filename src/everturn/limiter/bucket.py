"""Bucket: the queue of one rate limit in one process, and its reports to the state that all processes share.

A report is sent when a request must wait, when the lease runs out, and while requests wait. A request that finds a
lease costs no I/O. While the store does not answer, this process schedules by itself with its share of the limit, so
that a database that is away stops no requests and opens no floodgate.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from everturn.core.ports import Clock
from everturn.core.rate_limit_state import Allowance, Head, Report, SharedLimit, update_limit
from everturn.core.rate_limits import (
    NOTHING,
    Amounts,
    BreakerPolicy,
    ProviderLimits,
    RateLimit,
    RateLimitStore,
    Sender,
)
from everturn.errors import StoreUnavailable
from everturn.limiter.ticket import LeasedPermit, QueuedTicket

log = logging.getLogger(__name__)

MOST_HEADS: Final = 24  # waiting requests of a process that the shared state knows; more where the limit is high
SHORTEST_PAUSE: Final = 0.02  # seconds between two reports, for each process that reports
LONGEST_PAUSE: Final = 0.25  # the same while requests wait
LEASE_LIFETIME: Final = 2.0  # seconds in which a lease can be used
LEARNED_LIFETIME: Final = 600.0  # seconds for which requests ask after a response that told limits
REFUSED_LIFETIME: Final = 60.0  # the same after a refusal that told none
FRESH: Final = 1.0  # seconds for which it counts what a response said of the rest
TYPICAL_OUTPUT: Final = 500.0  # tokens, before any answer has been counted


class LimiterObserver(Protocol):
    """Counts what a limiter does."""

    def waited(self, name: str, seconds: float) -> None:
        """A request waited this long."""
        ...

    def refused(self, name: str) -> None:
        """The provider refused a request because of its rate limit."""
        ...

    def breaker(self, name: str, is_open: bool) -> None:
        """The circuit breaker opened or closed."""
        ...

    def queue(self, name: str, size: int) -> None:
        """So many requests wait."""
        ...


class RateLimitBucket:
    """A bucket of one process."""

    def __init__(
        self,
        key: str,
        name: str,
        limit: RateLimit | None,
        process: str,
        store: RateLimitStore,
        clock: Clock,
        breaker: BreakerPolicy,
        observer: LimiterObserver | None,
    ) -> None:
        self._key, self._name, self._limit, self._process = key, name, limit, process
        self._store, self.clock, self._breaker, self._observer = store, clock, breaker, observer
        self._is_configured = limit is not None and any(limit.per_minute)
        self._active_until = 0.0  # of what was learned
        self._queue: dict[int, QueuedTicket] = {}
        self._left: dict[int, Amounts] = {}  # requests that stopped waiting, and that may be granted nevertheless
        self._last_id = 0
        self._lease, self._lease_until = list(NOTHING), 0.0
        self._next = Report(process=process)  # what the next report says
        self._allowance = Allowance()
        self._allowed_at = self._told_at = 0.0
        self._was_open = False
        self._has_failed = False  # lately, as far as this process knows
        self._outputs, self._input_factor = TYPICAL_OUTPUT, 1.0
        self._task: asyncio.Task[None] | None = None
        self._waker: asyncio.Future[None] | None = None
        self._alone: SharedLimit | None = None  # while the store does not answer

    @property
    def limit(self) -> RateLimit | None:
        """The configured limit."""
        return self._limit

    @limit.setter
    def limit(self, limit: RateLimit) -> None:
        self._limit, self._is_configured = limit, any(limit.per_minute)

    # What models see -------------------------------------------------------------------------------------------------

    @property
    def is_limited(self) -> bool:
        """Whether requests have to ask."""
        return self._is_configured or (self._active_until > 0 and self.clock.now() < self._active_until)

    @property
    def has_token_limit(self) -> bool:
        """Whether tokens are limited, and not only requests."""
        return any(self._allowance.rate[1:]) or (self._limit is not None and any(self._limit.per_minute[1:]))

    @property
    def is_open(self) -> bool:
        """Whether the circuit breaker is open."""
        return self._allowed_at + self._allowance.open_for > self.clock.now()

    @property
    def room(self) -> float:
        """The share of the limits that is free, from 1 to 0; below 0: the seconds that a request would wait."""
        waits = [ticket.seconds for ticket in self._queue.values()]
        passed = self.clock.now() - self._allowed_at
        blocked = max(self._allowance.blocked_for, self._allowance.open_for) - passed
        longest = max([*waits, blocked, 0.0])
        if longest > 0:
            return -longest
        return min(1.0, max(0.0, self._allowance.room) + passed / 60)

    @property
    def usual_output(self) -> float:
        """The mean output tokens of a request."""
        return self._outputs

    @property
    def input_factor(self) -> float:
        """The tokens that the provider counts for one estimated token of input."""
        return self._input_factor

    def try_take(self, cost: Amounts) -> LeasedPermit | None:
        """Take a permission out of the lease; None: the request has to wait its turn."""
        if self._queue or self.clock.now() >= self._lease_until:
            return None
        lease, rate = self._lease, self._allowance.rate
        if any(limit and amount > held for limit, amount, held in zip(rate, cost, lease, strict=True)):
            return None
        for at, amount in enumerate(cost):
            lease[at] -= amount
        if self._observer is not None:
            self._observer.waited(self._name, 0.0)
        return LeasedPermit(self, cost)

    def enqueue(self, sender: Sender, cost: Amounts) -> QueuedTicket:
        """Add a request to the queue."""
        self._last_id += 1
        head = Head(
            self._last_id, sender.tenant, sender.weight, sender.priority == "background", self.clock.now(), cost
        )
        ticket = self._queue[head.id] = QueuedTicket(self, head, self._leave)
        if self._allowance.blocked_for or self._allowance.open_for:
            ticket.expect(max(0.0, -self.room), self.is_open)
        self._count_queue()
        self._next = replace(self._next, wants_lease=True)
        self.report()
        return ticket

    def count_failure(self) -> None:
        """Record that the provider failed."""
        self._has_failed = True
        self._next = replace(self._next, failures=self._next.failures + 1)
        self.report()

    def count_success(self) -> None:
        """Record that the provider answered."""
        if self._has_failed:
            self._has_failed = False
            self._next = replace(self._next, has_succeeded=True, failures=0)
            self.report()

    def observe(self, provider: ProviderLimits | None, refused_for: float | None) -> None:
        """Learn from a response."""
        self._told_at = self.clock.now()
        lifetime = LEARNED_LIFETIME if provider is not None else REFUSED_LIFETIME
        self._active_until = max(self._active_until, self._told_at + lifetime)
        if provider is not None:
            self._next = replace(self._next, provider=provider)
        if refused_for is not None:
            self._drop_lease()
            self._next = replace(self._next, refused_for=max(refused_for, self._next.refused_for or 0.0))
            if self._observer is not None:
                self._observer.refused(self._name)
            self.report()
        elif not any(self._allowance.rate) or self._is_low(provider):
            self.report()

    def _is_low(self, provider: ProviderLimits | None) -> bool:
        """Whether the provider has less left than this process may send by itself."""
        return provider is not None and any(
            0 <= left < held for left, held in zip(provider.remaining, self._lease, strict=True)
        )

    # What tickets call -----------------------------------------------------------------------------------------------

    def give_back(self, cost: Amounts) -> None:
        """Return amounts that were granted and not used."""
        self._next = replace(self._next, unused=_plus(self._next.unused, cost))
        self.report()

    def correct(self, cost: Amounts, input_tokens: int, cached_tokens: int, output_tokens: int) -> None:
        """Replace an estimate by what was used; it is told with the next report."""
        self._outputs += (output_tokens - self._outputs) / 8
        if cost[2] > 0:
            factor = self._input_factor * input_tokens / cost[2]
            self._input_factor += (min(max(factor, 0.1), 10.0) - self._input_factor) / 8
        used = (cost[0], float(input_tokens + output_tokens), float(input_tokens - cached_tokens), float(output_tokens))
        if any(cost[1:]):
            self._next = replace(self._next, used_more=_plus(self._next.used_more, used, cost))

    def _leave(self, id: int) -> None:
        if (ticket := self._queue.pop(id, None)) is not None:
            self._left[id] = ticket.head.cost
            self._count_queue()
            self.report()

    def _count_queue(self) -> None:
        if self._observer is not None:
            self._observer.queue(self._name, len(self._queue))

    # Reports ---------------------------------------------------------------------------------------------------------

    def report(self) -> None:
        """Report soon."""
        if self._task is None:
            # In a context of its own: the request's may restrict reads to one tenant.
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._run(), context=contextvars.Context())
        elif self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    async def aclose(self) -> None:
        """Stop, and return what is not used."""
        if (task := self._task) is not None:
            task.cancel()
            await asyncio.wait({task})
        self._drop_lease()
        if any(self._next.unused):
            self._queue.clear()
            try:
                async with asyncio.timeout(1.0):
                    await self._exchange()
            except (StoreUnavailable, TimeoutError):
                pass

    async def _run(self) -> None:
        try:
            while True:
                await self._exchange()
                if not (pause := self._pause()):
                    return
                await self._sleep(pause)
                early = self._allowed_at + SHORTEST_PAUSE * self._allowance.members - self.clock.now()
                if early > 0:
                    await self._sleep(early, can_wake=False)
        finally:
            self._task = None

    def _pause(self) -> float:
        """Seconds until the next report; 0: none is needed."""
        waits = [ticket.seconds for ticket in self._queue.values()]
        shortest = SHORTEST_PAUSE * self._allowance.members
        if waits:
            return max(shortest, min(min(waits), LONGEST_PAUSE))
        if self._next.unused != NOTHING or self._next.failures or self._next.has_succeeded:
            return shortest
        return max(0.0, self._lease_until - self.clock.now()) if any(self._lease) else 0.0

    async def _sleep(self, seconds: float, can_wake: bool = True) -> None:
        waker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waker = waker if can_wake else None
        timer = self.clock.call_later(seconds, lambda: None if waker.done() else waker.set_result(None))
        try:
            await waker
        finally:
            timer.cancel()
            self._waker = None

    async def _exchange(self) -> None:
        """Send a report, and take what it returns."""
        if self._queue or self.clock.now() >= self._lease_until:
            self._drop_lease()
        base, self._next = self._next, Report(process=self._process)
        if base.provider is not None and self.clock.now() - self._told_at > FRESH:
            base = replace(base, provider=ProviderLimits(base.provider.per_minute))
        report = replace(base, heads=self._heads(), limit=self._limit, breaker=self._breaker)
        left = set(self._left)
        result: list[Allowance] = []

        def change(data: bytes, now: float) -> bytes:
            state = msgspec.json.decode(data, type=SharedLimit) if data else SharedLimit()
            skew = now - self.clock.now()
            heads = tuple(replace(head, since=head.since + skew) for head in report.heads)
            result[:] = [update_limit(state, now, replace(report, heads=heads))]
            return msgspec.json.encode(state)

        try:
            await self._store.update(self._key, change)
            self._alone = None
        except StoreUnavailable as error:
            if self._alone is None:
                log.warning(
                    "the store does not answer; until it does, each process limits only its own requests: %s", error
                )
                self._alone = SharedLimit()
            share = None if self._limit is None else _share(self._limit, self._allowance.members)
            members = self._allowance.members
            allowed = update_limit(self._alone, self.clock.now(), replace(report, limit=share))
            result[:] = [replace(allowed, members=members)]
        except asyncio.CancelledError:
            self._next = base  # it may be told again with the last report
            raise
        self._apply(result[0])
        for id in left:
            self._left.pop(id, None)

    def _apply(self, allowance: Allowance) -> None:
        self._allowance, self._allowed_at = allowance, self.clock.now()
        if any(allowance.lease):
            self._lease, self._lease_until = list(allowance.lease), self._allowed_at + LEASE_LIFETIME
        for id in allowance.granted:
            ticket = self._queue.pop(id, None)
            if ticket is None:
                if (cost := self._left.pop(id, None)) is not None:
                    self._next = replace(self._next, unused=_plus(self._next.unused, cost))
                continue
            ticket.grant()
            if self._observer is not None:
                self._observer.waited(self._name, self._allowed_at - ticket.began)
        is_open = allowance.open_for > 0
        longest = max(allowance.waits.values(), default=0.0)
        for at, (id, ticket) in enumerate(self._queue.items()):
            ticket.expect(allowance.waits.get(id, longest * (1 + at / MOST_HEADS)), is_open)
        if is_open != self._was_open and self._observer is not None:
            self._observer.breaker(self._name, is_open)
        self._was_open = is_open
        self._count_queue()

    def _heads(self) -> tuple[Head, ...]:
        """The requests that are reported: the oldest ones, of as many tenants as possible."""
        most = max(MOST_HEADS, int(self._allowance.rate[0] * LONGEST_PAUSE))
        if len(self._queue) <= most:
            return tuple(ticket.head for ticket in self._queue.values())
        counts: dict[str, int] = {}
        ranked: list[tuple[bool, int, Head]] = []
        for ticket in self._queue.values():
            head = ticket.head
            counts[head.tenant] = counts.get(head.tenant, 0) + 1
            ranked.append((head.is_background, counts[head.tenant], head))
        return tuple(entry[2] for entry in sorted(ranked, key=lambda entry: entry[:2])[:most])

    def _drop_lease(self) -> None:
        if any(amount > 0 for amount in self._lease):
            unused = (
                max(0.0, self._lease[0]),
                max(0.0, self._lease[1]),
                max(0.0, self._lease[2]),
                max(0.0, self._lease[3]),
            )
            self._next = replace(self._next, unused=_plus(self._next.unused, unused))
        self._lease, self._lease_until = list(NOTHING), 0.0


def _plus(first: Amounts, second: Amounts, minus: Amounts = NOTHING) -> Amounts:
    return (
        first[0] + second[0] - minus[0],
        first[1] + second[1] - minus[1],
        first[2] + second[2] - minus[2],
        first[3] + second[3] - minus[3],
    )


def _share(limit: RateLimit, members: int) -> RateLimit:
    return replace(
        limit,
        requests_per_minute=limit.requests_per_minute / members,
        tokens_per_minute=limit.tokens_per_minute / members,
        input_tokens_per_minute=limit.input_tokens_per_minute / members,
        output_tokens_per_minute=limit.output_tokens_per_minute / members,
    )
