"""An evaluation that is killed continues: no request whose answer had arrived is sent again."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from everturn.errors import ConfigError
from everturn.evals import EvalChange, evaluate
from everturn.evals.report_formats import from_json
from tests.evals.shop import record_refund

ROOT = Path(__file__).parents[2]
REQUESTS = 2 * 2 * 3  # cases, samples, steps


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.evals.killed_run", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


async def dataset(folder: Path) -> Path:
    for name in ("one", "two"):
        (await record_refund()).write(folder / "data" / f"{name}.jsonl")
    return folder / "data"


@pytest.mark.parametrize("depth", ["turn", "step"])
@pytest.mark.parametrize(("moment", "kill_at", "sent_again"), [("before", 5, 0), ("during", 8, 1)])
async def test_a_killed_run_continues(tmp_path: Path, depth: str, moment: str, kill_at: int, sent_again: int) -> None:
    data, folder, ledger = await dataset(tmp_path), tmp_path / "run", tmp_path / "ledger"
    killed = run(data, folder, ledger, depth, kill_at, moment)
    assert killed.returncode == -9, killed.stderr
    before = len(ledger.read_text().splitlines())
    assert before == kill_at - (moment == "before")
    done = run(data, folder, ledger, depth, 0, moment)
    assert done.returncode == 0, done.stderr
    report = from_json(done.stdout)
    assert [case.status for case in report.cases] == ["passed", "passed"]
    requests = ledger.read_text().splitlines()
    assert len(requests) == REQUESTS + sent_again  # only the one that was under way is sent again
    assert report.requests == len(requests) - before
    # Each case and sample asks with 1, 3 and 5 messages, once each.
    sizes = Counter(requests)
    assert set(sizes) == {"1", "3", "5"}
    assert sorted(sizes.values()) == [4, 4, 4 + sent_again]
    again = run(data, folder, ledger, depth, 1, "before")  # a run that is over asks for nothing
    assert again.returncode == 0, again.stderr
    assert from_json(again.stdout).cases[0].pass_rate == 1.0


async def test_a_folder_of_another_evaluation_is_refused(tmp_path: Path) -> None:
    data, folder = await dataset(tmp_path), tmp_path / "run"
    await evaluate(data, depth="turn", folder=folder)
    await evaluate(data, depth="turn", folder=folder)
    with pytest.raises(ConfigError, match="its change differs"):
        await evaluate(data, depth="turn", folder=folder, change=EvalChange(system="Other."))
