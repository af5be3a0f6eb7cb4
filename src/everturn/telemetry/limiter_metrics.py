"""Limiter metrics: counts the requests that wait for a provider's rate limit, and those that it refuses."""

from __future__ import annotations

from everturn.telemetry.metrics import METRICS, Metrics


class LimiterMetrics:
    """A `LimiterObserver` that counts in this process's metrics."""

    def __init__(self, metrics: Metrics = METRICS) -> None:
        self._metrics = metrics

    def waited(self, name: str, seconds: float) -> None:
        """A request waited this long."""
        self._metrics.observe("rate_limit_wait_seconds", seconds, name)

    def refused(self, name: str) -> None:
        """The provider refused a request because of its rate limit."""
        self._metrics.count("rate_limit_refused_total", name)

    def breaker(self, name: str, is_open: bool) -> None:
        """The circuit breaker opened or closed."""
        self._metrics.set("breaker_open", float(is_open), name)

    def queue(self, name: str, size: int) -> None:
        """So many requests wait."""
        self._metrics.set("rate_limit_waiting", float(size), name)
