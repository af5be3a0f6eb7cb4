"""A turn costs about what a person's own loop over aiohttp would, and everybody in that race has done all the work.

The bound is loose on purpose: CI machines are noisy and slow. `benchmarks/peers/run.py` prints the real figures.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
TIMES_BARE = 2.0  # it is 0.5 to 1.3


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The short form: nothing is installed, and the provider is a strict one."""
    file = tmp_path_factory.mktemp("peers") / "rows"
    # A tracer in those processes would be measured along.
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    subprocess.run(
        [sys.executable, ROOT / "benchmarks/peers/run.py", "--short", "--repeats", "2", "--rows", file], env=quiet
    )
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_every_peer_saw_every_character_and_ran_every_tool(rows: list[dict[str, Any]]) -> None:
    assert [row for row in rows if "error" in row] == []
    assert {(row["peer"], row["scenario"]) for row in rows} == {
        (peer, scenario) for peer in ("raw", "bare_aiohttp", "everturn") for scenario in "ABC"
    }


@pytest.mark.parametrize("scenario", list("ABC"))
def test_a_turn_costs_no_more_than_twice_a_loop_written_by_hand_over_aiohttp(
    rows: list[dict[str, Any]], scenario: str
) -> None:
    cost = {
        (row["repeat"], row["peer"]): row["cpu"] * row["speed"]
        for row in rows
        if row["scenario"] == scenario and "error" not in row
    }
    ratios = [cost[repeat, peer] / cost[repeat, "bare_aiohttp"] for repeat, peer in cost if peer == "everturn"]

    assert median(ratios) <= TIMES_BARE, ratios
