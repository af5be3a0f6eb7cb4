"""The guides on durability: what they claim beside their examples."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from docs_src.guides.durable_work import make
from docs_src.guides.killing_own import judge, run

from everturn import Chat
from everturn.base_app.app import DRAIN_TIMEOUT
from tools.chaos.checks import CHECKS
from tools.chaos.scenario import SCENARIOS

ROOT = Path(__file__).parent.parent.parent
GUIDES = ROOT / "docs" / "guides"
WORK = ROOT / "docs_src" / "guides" / "durable_work.py"


# One process -------------------------------------------------------------------------------------------------------


def work(file: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, WORK, file], stdout=subprocess.PIPE, text=True)


async def test_a_program_that_is_told_to_leave_ends_well_and_the_next_one_reads_on(tmp_path: Path) -> None:
    file = tmp_path / "book.db"
    async with Chat("", app=make(str(file)), session="book") as chat:
        await chat.send("Read the book", key="book")

    first = work(file)
    assert first.stdout is not None
    seen = [first.stdout.readline()]
    first.send_signal(signal.SIGTERM)
    seen += first.communicate(timeout=30)[0].splitlines(keepends=True)
    assert first.returncode == 0

    second = work(file)
    assert second.stdout is not None
    seen += [second.stdout.readline() for _ in range(2)]
    second.send_signal(signal.SIGTERM)
    second.communicate(timeout=30)

    pages = [int(line.split()[-1]) for line in seen]
    assert pages == [*range(pages[0], pages[0] + len(pages))]  # none twice, none left out


def test_the_seconds_in_which_to_leave_are_those_in_the_code() -> None:
    assert DRAIN_TIMEOUT == 10
    assert "ten seconds" in (GUIDES / "durable-execution.md").read_text(encoding="utf-8")


# Killing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "payments", "state"),
    [
        ("tool.pay.after", 1, "outcome_unknown"),
        ("log.CallStarted.before", 1, "completed"),
        ("log.CallStarted.after", 0, "outcome_unknown"),
        ("log.CallFinished.after", 1, "completed"),
    ],
)
async def test_the_process_of_the_guide_can_be_killed_elsewhere_too(
    tmp_path: Path, point: str, payments: int, state: str
) -> None:
    assert run(tmp_path, point) == -signal.SIGKILL
    assert run(tmp_path) == 0
    assert await judge(tmp_path) == (payments, [state])


def test_contributing_has_a_row_for_every_checker_every_scenario_and_every_campaign() -> None:
    rows = set(re.findall(r"^\| `([\w ]+)` \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE))
    campaigns = {
        path.stem
        for path in (ROOT / "tools/chaos").glob("*.py")
        if '__name__ == "__main__"' in (text := path.read_text(encoding="utf-8")) and " CONFIG`" not in text
    }
    assert rows >= CHECKS.keys()
    assert rows >= SCENARIOS.keys()
    assert campaigns
    assert rows >= campaigns
