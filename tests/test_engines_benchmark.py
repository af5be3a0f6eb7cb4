"""The benchmark of the engines runs, in its smallest form. Its figures are for a quiet machine, not for a test."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.live, pytest.mark.long, pytest.mark.timeout(180)]

ROOT = Path(__file__).parent.parent


def test_every_engine_is_woken_and_says_what_that_costs(tmp_path: Path) -> None:
    file = tmp_path / "engines.json"
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}

    subprocess.run([sys.executable, ROOT / "benchmarks/engines.py", "--short", "--json", file], env=quiet, check=True)

    rows = {row["engine"]: row for row in json.loads(file.read_text(encoding="utf-8"))["rows"]}
    assert list(rows) == ["inline", "postgres", "restate", "temporal"]
    assert set(rows["temporal"]["parts"]) == {"process", "engine"}
    assert set(rows["postgres"]["parts"]) == {"process", "database"}
    assert all(row["p99"] >= row["p50"] > 0 for row in rows.values()), rows
