"""The short form of `benchmarks/cluster.py`: it runs, and nothing is lost.

How long a delta takes is printed and not judged: a machine that tests is shared. The long form, by hand, is for that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


def test_turns_that_stream_at_once_lose_nothing_on_their_way(tmp_path: Path) -> None:
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    command = [sys.executable, ROOT / "benchmarks/cluster.py", "--short", "--json", tmp_path / "found.json"]
    subprocess.run(command, env=quiet, check=True, timeout=290)
    (found,) = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert found["turns that lost something"] == 0
    assert found["turns whose stored text is not what was sent"] == 0
    assert found["measured"] > 500
    print(found["added ms"])
