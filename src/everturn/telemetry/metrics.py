"""Metrics: counters, gauges and histograms of this process, rendered in Prometheus' text format.

    metrics.count("deliveries_total", "session")
    metrics.observe("http_request_seconds", 0.012, "/api/me")
    metrics.render()

Labels are passed in the order of `metric_families.ALL`. An unknown name, or labels that do not fit, raise an error: that
is a programming mistake, and the first test finds it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from math import isfinite, isnan
from threading import RLock

from everturn.errors import ConfigError
from everturn.telemetry.metric_families import ALL, MOST_SERIES, MOST_VALUE, PROCESS, MetricFamily
from everturn.telemetry.process import process_values

OTHER = "other"
TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "everturn_"

Labels = tuple[str, ...]


class _Histogram:
    """The histogram of one series: the count of each bucket, and the sum."""

    __slots__ = ("counts", "sum")

    def __init__(self, buckets: int) -> None:
        self.counts, self.sum = [0] * (buckets + 1), 0.0


class Metrics:
    """All metrics of this process. Threads may count too: a lock keeps increments at the same moment from being lost."""

    def __init__(self, families: Iterable[MetricFamily] = ALL) -> None:
        self._lock = RLock()  # a finalizer may count while this thread holds it
        self._families = {family.name.removeprefix(PREFIX): family for family in families}
        self._values: dict[str, dict[Labels, float]] = {name: {} for name in self._families}
        self._histograms: dict[str, dict[Labels, _Histogram]] = {name: {} for name in self._families}

    def count(self, name: str, *labels: object, by: float = 1.0) -> None:
        """Increase a counter."""
        if by >= 0:  # a counter never falls
            self._add(name, "counter", labels, by)

    def add(self, name: str, change: float, *labels: object) -> None:
        """Increase or decrease a gauge."""
        self._add(name, "gauge", labels, change)

    def set(self, name: str, value: float, *labels: object) -> None:
        """Set a gauge."""
        family = self._family(name, "gauge", labels)
        values = self._values[name]
        values[_key(family, labels, values)] = value

    def observe(self, name: str, seconds: float, *labels: object) -> None:
        """Add a duration to a histogram."""
        family = self._family(name, "histogram", labels)
        series = self._histograms[name]
        seconds = max(seconds, 0.0)  # the clock was set back
        bucket = bisect_left(family.bounds, seconds)
        with self._lock:
            key = _key(family, labels, series)
            histogram = series.get(key)
            if histogram is None:
                histogram = series[key] = _Histogram(len(family.bounds))
            histogram.counts[bucket] += 1
            histogram.sum += seconds

    def value(self, name: str, *labels: object) -> float:
        """The value of a counter or a gauge; the count of a histogram. For tests, and for UIs that show it."""
        if name not in self._families:
            raise _unknown(name, self._families)
        key = tuple(str(label) for label in labels)
        histogram = self._histograms[name].get(key)
        return float(sum(histogram.counts)) if histogram is not None else self._values[name].get(key, 0.0)

    def items(self, kind: str) -> Iterator[tuple[MetricFamily, Labels, float]]:
        """All series of counters or gauges."""
        for name, family in self._families.items():
            if family.kind == kind:
                for labels, value in list(self._values[name].items()):
                    yield family, labels, value

    def render(self) -> bytes:
        """All metrics in Prometheus' text format 0.0.4."""
        lines: list[str] = []
        for name, family in self._families.items():
            # Copies: a thread that logs or exports may count meanwhile.
            values, times = dict(self._values[name]), dict(self._histograms[name])
            if not family.labels and not values and family.kind != "histogram":
                values = {(): 0.0}  # a counter that was never increased is 0
            if values or times:
                lines += _head(family)
                lines += (f"{family.name}{_braces(family, key)} {_number(value)}" for key, value in values.items())
                for key, histogram in times.items():
                    lines += _buckets(family, key, histogram)
        process = process_values()
        for family in PROCESS:
            if family.name in process:
                lines += [*_head(family), f"{family.name} {_number(process[family.name])}"]
        return ("\n".join(lines) + "\n").encode()

    def _add(self, name: str, kind: str, labels: tuple[object, ...], change: float) -> None:
        family = self._family(name, kind, labels)
        values = self._values[name]
        with self._lock:
            key = _key(family, labels, values)
            values[key] = values.get(key, 0.0) + change

    def _family(self, name: str, kind: str, labels: tuple[object, ...]) -> MetricFamily:
        family = self._families.get(name)
        if family is None:
            raise _unknown(name, self._families)
        if family.kind != kind or len(labels) != len(family.labels):
            raise ConfigError(f"{name!r} is a {family.kind} with {len(family.labels)} labels: {family.labels}")
        return family


def _unknown(name: str, families: Iterable[str]) -> ConfigError:
    return ConfigError(f"there is no metric {name!r}; there are: {', '.join(families)}")


def _key(
    family: MetricFamily, labels: tuple[object, ...], series: dict[Labels, float] | dict[Labels, _Histogram]
) -> Labels:
    key = tuple(label if type(label) is str else str(label) for label in labels)
    if key in series or not key:
        return key
    if len(series) >= MOST_SERIES or any(len(value) > MOST_VALUE or not value.isprintable() for value in key):
        return (OTHER,) * len(family.labels)
    return key


def _head(family: MetricFamily) -> list[str]:
    return [f"# HELP {family.name} {family.text}", f"# TYPE {family.name} {family.kind}"]


def _braces(family: MetricFamily, key: Labels, *more: tuple[str, str]) -> str:
    pairs = [*zip(family.labels, key, strict=True), *more]
    return "{" + ",".join(f'{label}="{_escaped(value)}"' for label, value in pairs) + "}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if not isfinite(value):
        return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))


def _buckets(family: MetricFamily, key: Labels, histogram: _Histogram) -> Iterator[str]:
    cumulative = 0
    for bound, count in zip((*map(_number, family.bounds), "+Inf"), histogram.counts, strict=True):
        cumulative += count
        yield f"{family.name}_bucket{_braces(family, key, ('le', bound))} {cumulative}"
    yield f"{family.name}_sum{_braces(family, key)} {_number(histogram.sum)}"
    yield f"{family.name}_count{_braces(family, key)} {cumulative}"


METRICS = Metrics()
"""The metrics of this process."""

add = METRICS.add
count = METRICS.count
observe = METRICS.observe
render = METRICS.render
set_level = METRICS.set
