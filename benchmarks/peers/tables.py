"""Measurements → tables in Markdown, and the goals beside what was seen.

    python benchmarks/peers/tables.py FILE... [--write]      # from what `run.py --rows FILE` has kept

Figures are scaled to the fastest the machine was, by what a calibration loop beside each job has told.
Ratios are formed within a repeat, between jobs that ran within seconds, and their median is shown.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from scenarios import SCENARIOS

RESULTS = Path(__file__).parent / "results.md"
YARD, LIMIT, OURS = "bare_httpx", "raw", "everturn"
OUR_WAYS = {OURS: "Chat", "everturn_run": "Agent.run"}  # of using it
ANSWERS = "ABCDE"
TIMES_YARD = {"A": 0.27, "B": 0.40, "C": 0.40, "D": 0.40, "E": 0.27}
TIMES_LIMIT = {"A": 3.0}
LAG_GOAL = 50.0  # ms
GROWTH_GOAL = 1.25  # what the next unit may cost at the larger size
# Between two sizes the fixed cost of a turn falls out; the unit is a chunk, or a message of history.
GROWTH = {
    "chunk of text": ("A10", "A", "A5k", lambda name: SCENARIOS[name].chunks),
    "message of history": ("D20", "D", "D2000", lambda name: SCENARIOS[name].history),
    "chunk of arguments": ("E1k", "E", "E10k", lambda name: SCENARIOS[name].chunks),
}

Row = dict[str, Any]
Series = dict[str, float]  # repeat -> seconds of CPU per turn, or something made of them


class Found:
    """The measurements, by what was measured."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = [row for row in rows if "error" not in row]
        self.speed = max((row.get("speed", 1.0) for row in self.rows), default=1.0)
        self.peers = list(dict.fromkeys(row["peer"] for row in self.rows))

    def of(self, phase: str, scenario: str, peer: str) -> Series:
        return {
            row["repeat"]: row["cpu"] * row["speed"] / self.speed
            for row in self.rows
            if (row["phase"], row["scenario"], row["peer"]) == (phase, scenario, peer)
        }

    def paced(self, peer: str) -> Series:
        """CPU of one more chunk that arrives alone."""
        short, long = self.of("paced", "P10", peer), self.of("paced", "P60", peer)
        return {repeat: (long[repeat] - short[repeat]) / 50 for repeat in long if repeat in short}

    def growth(self, unit: str, peer: str) -> tuple[Series, Series]:
        """CPU of one more unit: from the small size to the middle one, and from there to the large one."""
        small, middle, large, size = GROWTH[unit]

        def slope(a: str, b: str) -> Series:
            first, second = self.of("growth", a, peer), self.of("growth", b, peer)
            return {n: (second[n] - first[n]) / (size(b) - size(a)) for n in second if n in first}

        return slope(small, middle), slope(middle, large)


def ratios(of: Series, to: Series) -> list[float]:
    return [of[repeat] / to[repeat] for repeat in of if repeat in to]


def number(value: float) -> str:
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def cost(series: Series, times: float) -> str:
    """The best, and the median."""
    return f"{number(min(series.values()) * times)} ({number(median(series.values()) * times)})"


def ratio(of: Series, *to: Series) -> str:
    found = [ratios(of, other) for other in to]
    return " / ".join(number(median(values)) if values else "–" for values in found)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def costs(found: Found, columns: dict[str, Callable[[str], Series]], times: float) -> str:
    """What each column costs each peer, and how that compares with the yardstick and the limit."""

    def rows() -> Iterable[list[str]]:
        first = next(iter(columns.values()))
        known = [peer for peer in found.peers if any(series(peer) for series in columns.values())]
        for peer in sorted(known, key=lambda peer: median(first(peer).values() or [1e9])):
            cells = [
                f"{cost(own, times)}<br>{ratio(own, series(YARD), series(LIMIT))}" if (own := series(peer)) else "–"
                for series in columns.values()
            ]
            yield [f"**{peer}**" if peer in OUR_WAYS else peer, *cells]

    return table(["peer", *columns], rows())


# Goals -------------------------------------------------------------------------------------------------------------


class Goal(NamedTuple):
    text: str
    limit: float
    seen: list[float]

    @property
    def row(self) -> list[str]:
        if not self.seen:
            return [self.text, f"≤ {self.limit:g}", "–", "–", "not measured"]
        middle = median(self.seen)
        spread = f"{number(min(self.seen))}–{number(max(self.seen))}"
        return [self.text, f"≤ {self.limit:g}", number(middle), spread, "yes" if middle <= self.limit else "**no**"]


def goals(found: Found) -> list[Goal]:
    results: list[Goal] = []
    for phase, where in (("seq", "one at a time"), ("conc", "64 in flight")):
        for limits, other in ((TIMES_YARD, YARD), (TIMES_LIMIT, LIMIT)):
            for name, limit in limits.items():
                for ours, way in OUR_WAYS.items():
                    seen = ratios(found.of(phase, name, ours), found.of(phase, name, other))
                    results.append(Goal(f"{name} by {way}, {where}, × {other}", limit, seen))
    lags = [row["lag"]["p99"] * 1e3 for row in found.rows if row["phase"] == "open" and row["peer"] == OURS]
    results.append(Goal("1,000 turns open: lag of the loop, p99, ms", LAG_GOAL, lags))
    for unit in GROWTH:
        small, large = found.growth(unit, OURS)
        results.append(Goal(f"growth: one more {unit}, large / small", GROWTH_GOAL, ratios(large, small)))
    return results


# The whole ---------------------------------------------------------------------------------------------------------


def opened(found: Found) -> str:
    def rows() -> Iterable[list[str]]:
        for peer in found.peers:
            mine = [row for row in found.rows if row["phase"] == "open" and row["peer"] == peer]
            if mine:
                lag = [number(median(row["lag"][name] for row in mine) * 1e3) for name in ("p50", "p99", "max")]
                ramp = number(median(row["ramp"] for row in mine))
                memory = number(median(row["memory"] for row in mine) / 2**20)
                yield [peer, *lag, ramp, memory, number(median(row["cpu"] for row in mine) * 1e3)]

    head = ["peer", "lag p50, ms", "p99", "max", "all open after, s", "memory of all, MiB", "CPU per turn, ms"]
    return table(head, rows())


def pieces(found: Found) -> str:
    """A peer may join what came in one burst; one that does saves its caller some work, which should be known."""
    of = {row["peer"]: row["pieces"] for row in found.rows if row["phase"] == "seq" and row["scenario"] == "A"}
    return ", ".join(f"{peer} {of[peer]:.0f}" for peer in found.peers if peer in of)


def growing(found: Found) -> str:
    def rows() -> Iterable[list[str]]:
        for unit in GROWTH:
            for peer in found.peers:
                small, large = found.growth(unit, peer)
                if small and large:
                    yield [unit, peer, cost(small, 1e6), cost(large, 1e6), ratio(large, small)]

    return table(["one more", "peer", "small to middle, μs", "middle to large, μs", "large / small"], rows())


def tables(rows: Sequence[Row]) -> str:
    """Everything that was measured, as a page."""
    found = Found(rows)
    seen = {row["phase"] for row in found.rows}
    repeats = {phase: len({row["repeat"] for row in found.rows if row["phase"] == phase}) for phase in sorted(seen)}
    page = [
        "# What was seen\n",
        f"Python {platform.python_version()} on a shared machine with {os.cpu_count()} cores; "
        + ", ".join(sorted({row["version"] for row in found.rows if "version" in row}))
        + ".\nRepeats: "
        + ", ".join(f"{phase} {count}" for phase, count in repeats.items())
        + f"; at commit {', '.join(sorted({row['commit'] for row in found.rows if row.get('commit')})) or 'unknown'}"
        + f".\n\nCPU of the client: best (median), and below it × {YARD} / × {LIMIT}, medians of ratios within a repeat.\n",
        "## Goals\n\n" + table(["what", "goal", "median", "seen", "reached"], (goal.row for goal in goals(found))),
    ]

    def turn(phase: str) -> dict[str, Callable[[str], Series]]:
        return {name: lambda peer, name=name: found.of(phase, name, peer) for name in ANSWERS}

    if "seq" in seen:
        page.append("## CPU per turn, one at a time, ms\n\n" + costs(found, turn("seq"), 1e3))
        page.append("Pieces in which the 500 chunks of A reached the caller: " + pieces(found) + ".\n")
    if "conc" in seen:
        page.append("## CPU per turn, 64 in flight, ms\n\n" + costs(found, turn("conc"), 1e3))
    if "paced" in seen:
        column = {"μs per chunk": found.paced}
        page.append("## CPU of a chunk that arrives alone, 64 in flight\n\n" + costs(found, column, 1e6))
    if "open" in seen:
        page.append("## 1,000 turns open, a chunk a second each\n\n" + opened(found))
    if "growth" in seen:
        page.append("## Growth: CPU of one more\n\n" + growing(found))
    failed = [f"- {row['peer']}, {row['phase']} {row['scenario']}: {row['error']}\n" for row in rows if "error" in row]
    if failed:
        page.append("## Failed\n\n" + "".join(failed))
    return "\n".join(page)


def main(arguments: Sequence[str]) -> None:
    files = [Path(name) for name in arguments if name != "--write"]
    text = tables([json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()])
    print(text)
    if "--write" in arguments:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
