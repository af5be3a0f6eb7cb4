"""The short form of `benchmarks/streams.py`: it runs, nothing is lost, and no stream costs many times what it should.

The bounds are loose on purpose: machines that test are noisy. The long form, by hand, prints what there is to know.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
TIMES_BARE = 4.0  # it is about 1; two tasks for each message make it more than 2, and a second encoding much more
KILOBYTES = 60.0  # it is 18 at ten thousand; a few hundred streams also pay for what is made once

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("benchmarks") / "streams.json"
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    command = [sys.executable, ROOT / "benchmarks/streams.py", "--short", "--json", file]
    subprocess.run(command, env=quiet, check=True, timeout=55)
    return json.loads(file.read_text(encoding="utf-8"))


def test_an_idle_stream_is_small(report: dict[str, Any]) -> None:
    assert report["idle"]["kB each"] <= KILOBYTES, report


def test_a_delivery_costs_little_more_than_in_a_bare_loop(report: dict[str, Any]) -> None:
    assert report["fan_out"]["times bare"] <= TIMES_BARE, report


def test_all_who_come_back_at_once_end_with_the_same_text(report: dict[str, Any]) -> None:
    assert report["storm"]["with the same text"] == report["storm"]["readers"], report
