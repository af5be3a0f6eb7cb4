"""The benchmark of turns that survive runs, in its smallest form. Its figures are for a quiet machine, not for a test."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.live, pytest.mark.long, pytest.mark.timeout(180)]

ROOT = Path(__file__).parent.parent


def test_every_side_does_its_turns_and_says_what_they_cost(tmp_path: Path) -> None:
    file = tmp_path / "durable.json"
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}

    subprocess.run([sys.executable, ROOT / "benchmarks/durable.py", "--short", "--json", file], env=quiet, check=True)

    rows = {row["side"]: row for row in json.loads(file.read_text(encoding="utf-8"))["rows"]}
    assert list(rows) == ["insert", "restate", "cluster", "postgres", "sqlite", "memory"]
    assert set(rows["cluster"]["parts"]) == {"workers", "engine", "database", "bus"}
    assert all(row["total"][0] > 0 for row in rows.values()), rows
    assert all(row["turns_per_second"] > 0 for row in rows.values()), rows
