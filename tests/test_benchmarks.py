"""The cost of a turn grows with what it is given, and no faster.

The bounds are loose on purpose: CI machines are noisy and slow, and this is no place to judge a few per cent. They are
tight enough for what they are there to find: parts joined anew with each delta, a history read once per message, or a
pydantic model, a task or a queue on the path of a chunk. `benchmarks/turn.py` prints the real figures and goals.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
Reports = Callable[[], Iterator[dict[str, Any]]]
SUPER_LINEAR = 2.0  # what one more may cost at ten times the size; a quadratic fold makes it ten
TIMES_BARE = 20.0  # a chunk here against one in a bare loop, whatever the machine; it is 6 to 8


# What else a machine does can only add to a figure, and it adds to the small and the large size at different moments: a
# bound is broken by the code when it is broken in every run.
RUNS = 3


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """The short form, in a process of its own: what else the tests hold in memory is not the turn's to pay for.

    Each report is made when it is first asked for: the second only where the first was not good enough.
    """
    measured: list[dict[str, Any]] = []

    def each() -> Iterator[dict[str, Any]]:
        for n in range(RUNS):
            if n == len(measured):
                file = tmp_path_factory.mktemp("benchmarks") / "turn.json"
                measure(ROOT / "benchmarks/turn.py", "--short", "--json", file)
                measured.append(json.loads(file.read_text(encoding="utf-8")))
            yield measured[n]

    return each


def measure(*words: str | Path) -> None:
    # A tracer in that process would be measured along.
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    subprocess.run([sys.executable, *words], env=quiet, check=True, cwd=ROOT)


def best_of(figures: Iterable[float], bound: float) -> tuple[float, list[float]]:
    """The lowest figure, and all that were measured until one kept the bound."""
    seen: list[float] = []
    for figure in figures:
        seen.append(figure)
        if figure <= bound:
            break
    return min(seen), seen


def test_a_delta_costs_the_same_in_a_short_answer_and_in_a_long_one(reports: Reports) -> None:
    def worst(report: dict[str, Any]) -> float:
        growth = [found["factor"] for group, found in report["growth"]["best"].items() if "text" in group]
        assert len(growth) == 4
        return max(growth)

    best, seen = best_of(map(worst, reports()), SUPER_LINEAR)
    assert best <= SUPER_LINEAR, seen


def test_a_message_of_history_costs_the_same_in_a_short_conversation_and_in_a_long_one(reports: Reports) -> None:
    growth = (report["growth"]["best"]["messages of history"]["factor"] for report in reports())

    best, seen = best_of(growth, SUPER_LINEAR)
    assert best <= SUPER_LINEAR, seen


def test_a_delta_nobody_listens_to_costs_a_few_times_what_it_does_in_a_bare_loop(reports: Reports) -> None:
    def worst(report: dict[str, Any]) -> float:
        # The largest size comes last; with it, what a turn costs once is spread so thin that only the chunks count.
        ratios = {row["scenario"]: row["ratio"] for row in report["rows"] if row["scenario"].startswith("text")}
        assert len(ratios) == 2
        return max(ratios.values())

    best, seen = best_of(map(worst, reports()), TIMES_BARE)
    assert best <= TIMES_BARE, seen


def test_a_turn_costs_the_same_in_a_long_conversation_that_was_compacted(tmp_path: Path) -> None:
    def growth() -> Iterator[float]:
        for n in range(RUNS):
            file = tmp_path / f"long{n}.json"
            measure("-m", "benchmarks.long_conversations", "--short", "--json", file)
            (report,) = json.loads(file.read_text(encoding="utf-8"))
            first, last = report["rows"]
            assert (first["turns"], last["turns"]) == (40, 400)
            assert report["takeover"]["read"] < report["takeover"]["events"] / 2
            yield last["turn"] / first["turn"]

    best, seen = best_of(growth(), SUPER_LINEAR)
    assert best <= SUPER_LINEAR, seen
