"""Limiter: the buckets of one process."""

from __future__ import annotations

from collections.abc import Callable

from everturn.core.ports import Clock
from everturn.core.rate_limits import BreakerPolicy, ProviderLimits, RateLimit, RateLimitStore
from everturn.limiter.bucket import LimiterObserver, RateLimitBucket

__all__ = ["LimiterObserver", "RateLimiter"]


class RateLimiter:
    """The limiter of a process. `process` is its name in the shared state; no other process may have it."""

    def __init__(
        self,
        store: RateLimitStore,
        clock: Clock,
        process: str,
        *,
        learns: bool = True,
        breaker: BreakerPolicy | None = None,
        observer: Callable[[], LimiterObserver] | None = None,
    ) -> None:
        self._store, self._clock, self._process, self._learns = store, clock, process, learns
        self._breaker, self._observer = breaker or BreakerPolicy(), observer
        self._buckets: dict[str, RateLimitBucket] = {}

    def bucket(self, key: str, name: str, limit: RateLimit | None = None) -> RateLimitBucket:
        """A bucket by its key; its limit is the last one that was given."""
        bucket = self._buckets.get(key)
        if bucket is None:
            observer = None if self._observer is None else self._observer()
            bucket = self._buckets[key] = RateLimitBucket(
                key, name, limit, self._process, self._store, self._clock, self._breaker, observer
            )
        elif limit is not None and limit is not bucket.limit:
            bucket.limit = limit
        return bucket

    def observe(self, key: str, name: str, limits: ProviderLimits | None, refused_for: float | None) -> None:
        """Learn from a response."""
        if self._learns or refused_for is not None:
            self.bucket(key, name).observe(limits if self._learns else None, refused_for)

    async def aclose(self) -> None:
        """Return what was not used, and stop."""
        for bucket in self._buckets.values():
            await bucket.aclose()
