"""Capacity model: from the measured costs of a turn to processes, machines, disk and dollars at a number of turns a day.

    python -m tools.capacity                                   # 1 M, 10 M and 100 M turns a day
    python -m tools.capacity --turns 3e6 --peak 6 --days 30    # other assumptions
    python benchmarks/publish.py measure capacity              # measures the costs again

The costs are read from benchmarks/results: `capacity.json` (a turn on PostgreSQL) and `streams.json` (a reader). Everything
else is an assumption, and a line of `Assumptions`.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"
DAY = 86_400.0


@dataclass(frozen=True)
class Costs:
    """What was measured, for a turn and for a reader."""

    worker_ms: float
    database_ms: float
    wal_bytes: float
    disk_bytes: float
    commits: float
    connections: float  # of a process
    delivery_us: float
    stream_kb: float


@dataclass(frozen=True)
class Assumptions:
    """What was not measured here. Change what does not fit you."""

    peak: float = 4.0  # turns a second at the peak, as a multiple of the average
    days: float = 90.0  # that sessions are kept
    turn_seconds: float = 30.0  # that a turn takes, most of it in the model
    readers: float = 1.2  # streams open for each running turn
    deltas: float = 20.0  # a second and reader, as merged by the server
    busy: float = 0.6  # share of a core that is used at the peak
    worker_cores: float = 4.0  # of a machine
    database_cores: float = 64.0  # of the largest database machine
    wal_limit: float = 200e6  # bytes a second that one database writes and ships to a replica
    commit_limit: float = 20_000.0  # a second of one database, in groups
    connection_limit: float = 500.0  # of one database
    stream_limit: float = 400.0  # with PostgreSQL as the bus (docs/deploy/engines.md); NATS beyond
    disk_limit: float = 16e12  # bytes of the largest volume
    core_dollars: float = 30.0  # a month
    disk_dollars: float = 0.12  # a GB and month, on each of the copies
    copies: float = 2.0  # of the database: one replica


@dataclass(frozen=True)
class Step:
    """What a number of turns a day needs."""

    turns: float
    per_second: float  # at the peak
    worker_cores: float
    reader_cores: float
    processes: int
    streams: float
    database_cores: float
    wal: float  # bytes a second at the peak
    disk: float  # bytes, of one copy
    databases: int
    dollars: float  # a month
    used: dict[str, float]  # of each limit of one database

    @property
    def bottleneck(self) -> str:
        """The limit that is reached first."""
        return max(self.used, key=self.used.__getitem__)


def costs() -> tuple[Costs, dict[str, Any]]:
    """The costs, and the run that they are compared with."""
    found = json.loads((RESULTS / "capacity.json").read_text(encoding="utf-8"))["figures"]
    streams = json.loads((RESULTS / "streams.json").read_text(encoding="utf-8"))["figures"]
    turn = found["many"]  # at the peak a process has at least as many
    return (
        Costs(
            turn["worker_cpu_ms"],
            turn["database_cpu_ms"],
            turn["wal_bytes"],
            turn["disk_bytes"],
            turn["commits"],
            found["connections"],
            streams["fan_out"]["μs CPU per delivery"],
            streams["idle"]["kB each"],
        ),
        found,
    )


def plan(turns: float, cost: Costs, assume: Assumptions) -> Step:
    """Return what so many turns a day need. One database is filled up to the first of its limits; then there are more."""
    rate = turns / DAY * assume.peak
    streams = rate * assume.turn_seconds * assume.readers
    workers = rate * cost.worker_ms / 1000 / assume.busy
    readers = streams * assume.deltas * cost.delivery_us / 1e6 / assume.busy
    processes = max(2, math.ceil(workers + readers))  # a process uses a core; two, so that one may die
    database = rate * cost.database_ms / 1000 / assume.busy
    disk = turns * assume.days * cost.disk_bytes
    used = {
        "processor of the database": database / assume.database_cores,
        "WAL": rate * cost.wal_bytes / assume.wal_limit,
        "commits": rate * cost.commits / assume.commit_limit,
        "connections": processes * cost.connections / assume.connection_limit,
        "live streams by LISTEN/NOTIFY": streams / assume.stream_limit,
        "disk": disk / assume.disk_limit,
    }
    # Streams go to NATS, and max_connections can be raised: neither needs another database.
    databases = max(1, math.ceil(max(used[name] for name in ("processor of the database", "WAL", "commits", "disk"))))
    cores = max(processes, assume.worker_cores) + max(2.0, math.ceil(database)) * assume.copies
    dollars = cores * assume.core_dollars + disk / 1e9 * assume.disk_dollars * assume.copies
    return Step(
        turns,
        rate,
        workers,
        readers,
        processes,
        streams,
        database,
        rate * cost.wal_bytes,
        disk,
        databases,
        dollars,
        used,
    )


def table(steps: list[Step]) -> str:
    """The plan as a table of a page."""

    def row(name: str, values: list[str]) -> str:
        return f"| {' | '.join([name, *values])} |"

    def figure(value: float) -> str:
        return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"

    return "\n".join(
        [
            row("turns a day", [f"{step.turns / 1e6:,.3g} M" for step in steps]),
            row("---", ["---"] * len(steps)),
            row("turns a second, at the peak", [figure(step.per_second) for step in steps]),
            row("cores for turns", [figure(step.worker_cores) for step in steps]),
            row("cores for readers", [figure(step.reader_cores) for step in steps]),
            row("processes", [figure(step.processes) for step in steps]),
            row("open streams, at the peak", [figure(step.streams) for step in steps]),
            row("cores of the database", [figure(step.database_cores) for step in steps]),
            row("WAL, at the peak", [f"{step.wal / 1e6:,.3g} MB/s" for step in steps]),
            row("disk, each copy", [f"{step.disk / 1e12:,.3g} TB" for step in steps]),
            row("databases", [str(step.databases) for step in steps]),
            row("dollars a month", [f"{step.dollars:,.0f}" for step in steps]),
            row("first limit", [f"{step.bottleneck} ({step.used[step.bottleneck]:.0%})" for step in steps]),
            row("next limit", [_next(step) for step in steps]),
        ]
    )


def _next(step: Step) -> str:
    name = sorted(step.used, key=step.used.__getitem__)[-2]
    return f"{name} ({step.used[name]:.0%})"


CHECKED = {
    "worker_cpu_ms": "processor of the process, ms a turn",
    "database_cpu_ms": "processor of the database, ms a turn",
    "wal_bytes": "WAL, bytes a turn",
    "disk_bytes": "disk, bytes a turn",
    "commits": "commits a turn",
}


def cost_at(found: dict[str, Any], name: str, at_once: float) -> float:
    """What a turn costs with so many at once: a part of its own, and a share of what a group of them costs together."""
    few, many = found["few"], found["many"]
    shared = (few[name] - many[name]) / (1 / few["at_once"] - 1 / many["at_once"])
    return many[name] + shared * (1 / at_once - 1 / many["at_once"])


def check(found: dict[str, Any]) -> str:
    """The model beside a run that it was not made from."""
    lines = ["| | the model says | measured | deviation |", "| --- | --- | --- | --- |"]
    for name, text in CHECKED.items():
        predicted, seen = cost_at(found, name, found["checked"]["at_once"]), found["checked"][name]
        off = predicted / seen - 1
        missed = "" if abs(off) <= 0.25 else ", **more than 25 %**"
        figures = [f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in (predicted, seen)]
        lines.append(f"| {text} | {' | '.join(figures)} | {off:+.0%}{missed} |")
    return "\n".join(lines)


def page(found: dict[str, Any], assume: Assumptions | None = None) -> str:
    """Both tables."""
    cost, _ = costs()
    steps = [plan(turns, cost, assume or Assumptions()) for turns in (1e6, 1e7, 1e8)]
    few, many, at = (found[name]["at_once"] for name in ("few", "many", "checked"))
    text = f"The costs come from runs with {few} and {many} turns at once. The model beside another run, with {at}:"
    return f"{table(steps)}\n\n{text}\n\n{check(found)}"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=float, nargs="*", default=[1e6, 1e7, 1e8], help="a day")
    for field in fields(Assumptions):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=float, default=field.default)
    options = vars(parser.parse_args())
    turns = options.pop("turns")
    cost, found = costs()
    print(table([plan(each, cost, Assumptions(**options)) for each in turns]), check(found), sep="\n\n")


if __name__ == "__main__":
    main()
