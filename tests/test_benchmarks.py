"""The cost of a turn grows with what it is given, and no faster.

The bounds are loose on purpose: CI machines are noisy and slow, and this is no place to judge a few per cent. They are
tight enough for what they are there to find: parts joined anew with each delta, a history read once per message, or a
pydantic model, a task or a queue on the path of a chunk. `benchmarks/turn.py` prints the real figures and goals.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SUPER_LINEAR = 2.0  # what one more may cost at ten times the size; a quadratic fold makes it ten
TIMES_BARE = 20.0  # a chunk here against one in a bare loop, whatever the machine; it is 6 to 8


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The short form, in a process of its own: what else the tests hold in memory is not the turn's to pay for."""
    file = tmp_path_factory.mktemp("benchmarks") / "turn.json"
    # A tracer in that process would be measured along.
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    subprocess.run([sys.executable, ROOT / "benchmarks/turn.py", "--short", "--json", file], env=quiet, check=True)
    return json.loads(file.read_text(encoding="utf-8"))


def test_a_delta_costs_the_same_in_a_short_answer_and_in_a_long_one(report: dict[str, Any]) -> None:
    growth = {group: found["factor"] for group, found in report["growth"]["best"].items() if "text" in group}

    assert len(growth) == 4
    assert max(growth.values()) <= SUPER_LINEAR, growth


def test_a_message_of_history_costs_the_same_in_a_short_conversation_and_in_a_long_one(report: dict[str, Any]) -> None:
    growth = report["growth"]["best"]["messages of history"]

    assert growth["factor"] <= SUPER_LINEAR, growth


def test_a_delta_nobody_listens_to_costs_a_few_times_what_it_does_in_a_bare_loop(report: dict[str, Any]) -> None:
    # The largest size comes last; with it, what a turn costs once is spread so thin that only the chunks count.
    ratios = {row["scenario"]: row["ratio"] for row in report["rows"] if row["scenario"].startswith("text")}

    assert len(ratios) == 2
    assert max(ratios.values()) <= TIMES_BARE, ratios
