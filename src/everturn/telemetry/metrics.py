"""Counts, levels and times of this process → the text that Prometheus reads. It knows nobody's name.

    metrics.count("deliveries_total", "session")
    metrics.observe("http_request_seconds", 0.012, "/api/me")
    metrics.render()

Labels are given in the order of `families.ALL`. A name that is not there, or labels that do not fit it, raise: that is
a slip of the programmer, and the first test finds it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from math import isfinite, isnan

from everturn.errors import ConfigError
from everturn.telemetry.families import ALL, MOST_SERIES, MOST_VALUE, PROCESS, Family
from everturn.telemetry.process import process_values

OTHER = "other"
TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "everturn_"

Labels = tuple[str, ...]


class _Times:
    """A histogram of one series: how many fell into each bucket, and their sum."""

    __slots__ = ("counts", "sum")

    def __init__(self, buckets: int) -> None:
        self.counts, self.sum = [0] * (buckets + 1), 0.0


class Metrics:
    """All that this process counts. Threads may count too; two at the very same moment may count as one."""

    def __init__(self, families: Iterable[Family] = ALL) -> None:
        self._families = {family.name.removeprefix(PREFIX): family for family in families}
        self._values: dict[str, dict[Labels, float]] = {name: {} for name in self._families}
        self._times: dict[str, dict[Labels, _Times]] = {name: {} for name in self._families}

    def count(self, name: str, *labels: object, by: float = 1.0) -> None:
        """Count something that happened."""
        if by >= 0:  # a counter never falls
            self._add(name, "counter", labels, by)

    def add(self, name: str, change: float, *labels: object) -> None:
        """Let a level rise or fall."""
        self._add(name, "gauge", labels, change)

    def set(self, name: str, value: float, *labels: object) -> None:
        """Say what a level is."""
        family = self._family(name, "gauge", labels)
        values = self._values[name]
        values[_key(family, labels, values)] = value

    def observe(self, name: str, seconds: float, *labels: object) -> None:
        """Take note of how long something took."""
        family = self._family(name, "histogram", labels)
        series = self._times[name]
        key = _key(family, labels, series)
        times = series.get(key)
        if times is None:
            times = series[key] = _Times(len(family.bounds))
        seconds = max(seconds, 0.0)  # a clock that was set back
        times.counts[bisect_left(family.bounds, seconds)] += 1
        times.sum += seconds

    def value(self, name: str, *labels: object) -> float:
        """What a counter or a level says; how often, for a histogram. For tests, and for faces that show it."""
        if name not in self._families:
            raise _unknown(name, self._families)
        key = tuple(str(label) for label in labels)
        times = self._times[name].get(key)
        return float(sum(times.counts)) if times is not None else self._values[name].get(key, 0.0)

    def items(self, kind: str) -> Iterator[tuple[Family, Labels, float]]:
        """All series of a kind, but for histograms."""
        for name, family in self._families.items():
            if family.kind == kind:
                for labels, value in list(self._values[name].items()):
                    yield family, labels, value

    def render(self) -> bytes:
        """Everything, as Prometheus reads it (text format 0.0.4)."""
        lines: list[str] = []
        for name, family in self._families.items():
            # Copies: a thread that logs or exports may count meanwhile.
            values, times = dict(self._values[name]), dict(self._times[name])
            if not family.labels and not values and family.kind != "histogram":
                values = {(): 0.0}  # what has not happened yet has happened 0 times
            if values or times:
                lines += _head(family)
                lines += (f"{family.name}{_braces(family, key)} {_number(value)}" for key, value in values.items())
                for key, one in times.items():
                    lines += _buckets(family, key, one)
        measured = process_values()
        for family in PROCESS:
            if family.name in measured:
                lines += [*_head(family), f"{family.name} {_number(measured[family.name])}"]
        return ("\n".join(lines) + "\n").encode()

    def _add(self, name: str, kind: str, labels: tuple[object, ...], change: float) -> None:
        family = self._family(name, kind, labels)
        values = self._values[name]
        key = _key(family, labels, values)
        values[key] = values.get(key, 0.0) + change

    def _family(self, name: str, kind: str, labels: tuple[object, ...]) -> Family:
        family = self._families.get(name)
        if family is None:
            raise _unknown(name, self._families)
        if family.kind != kind or len(labels) != len(family.labels):
            raise ConfigError(f"{name!r} is a {family.kind} with {len(family.labels)} labels: {family.labels}")
        return family


def _unknown(name: str, families: Iterable[str]) -> ConfigError:
    return ConfigError(f"nothing is counted as {name!r}; there are: {', '.join(families)}")


def _key(family: Family, labels: tuple[object, ...], series: dict[Labels, float] | dict[Labels, _Times]) -> Labels:
    key = tuple(label if type(label) is str else str(label) for label in labels)
    if key in series or not key:
        return key
    if len(series) >= MOST_SERIES or any(len(value) > MOST_VALUE or not value.isprintable() for value in key):
        return (OTHER,) * len(family.labels)
    return key


def _head(family: Family) -> list[str]:
    return [f"# HELP {family.name} {family.text}", f"# TYPE {family.name} {family.kind}"]


def _braces(family: Family, key: Labels, *more: tuple[str, str]) -> str:
    pairs = [*zip(family.labels, key, strict=True), *more]
    return "{" + ",".join(f'{label}="{_escaped(value)}"' for label, value in pairs) + "}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if not isfinite(value):
        return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))


def _buckets(family: Family, key: Labels, times: _Times) -> Iterator[str]:
    below = 0
    for bound, count in zip((*map(_number, family.bounds), "+Inf"), times.counts, strict=True):
        below += count
        yield f"{family.name}_bucket{_braces(family, key, ('le', bound))} {below}"
    yield f"{family.name}_sum{_braces(family, key)} {_number(times.sum)}"
    yield f"{family.name}_count{_braces(family, key)} {below}"


METRICS = Metrics()
"""Those of this process."""

add = METRICS.add
count = METRICS.count
observe = METRICS.observe
render = METRICS.render
set_level = METRICS.set
