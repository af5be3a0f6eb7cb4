"""The short form of `benchmarks/cluster.py`: it runs, nothing is lost, and a delta does not take many times what it should.

The bound is loose on purpose: machines that test are noisy. The long form, by hand, prints what there is to know.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MILLISECONDS = 1_000  # it is about 30, most of which is the 50 ms in which a node merges

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


def test_turns_that_stream_at_once_lose_nothing_on_their_way(tmp_path: Path) -> None:
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    command = [sys.executable, ROOT / "benchmarks/cluster.py", "--short", "--json", tmp_path / "found.json"]
    subprocess.run(command, env=quiet, check=True, timeout=110)
    (found,) = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert found["turns that lost something"] == 0
    assert found["turns whose stored text is not what was sent"] == 0
    assert found["measured"] > 500
    assert found["added ms"]["p50"] < MILLISECONDS, found
