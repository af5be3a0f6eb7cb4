"""Limiter of requests to model providers: they wait here for a rate limit that all processes share.

- `limiter`: the buckets of a process
- `bucket`: one bucket: its queue, its lease, and its reports to the shared state
- `ticket`: a request that waits
"""

from __future__ import annotations

from everturn.limiter.limiter import LimiterObserver, RateLimiter

__all__ = ["LimiterObserver", "RateLimiter"]
