"""Real processes, really killed: short forms of the campaigns. `python -m tools.chaos.kill` is the long one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tools.chaos.fence import fence
from tools.chaos.kill import kill_anywhere
from tools.environment import child_environment

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


async def test_a_turn_ends_as_if_nothing_had_happened_wherever_its_worker_is_killed() -> None:
    report = await kill_anywhere(limit=8, seed=5)
    assert report.violations == []
    assert len(report.happened) >= 6, "too few of the points were reached to prove anything"


@pytest.mark.parametrize(
    ("sabotage", "point", "found"),
    [
        ("once is done again", "tool.pay.after", "I23"),
        pytest.param("nothing is written before it is done", "tool.pay.after", "I25", marks=pytest.mark.long),
    ],
    ids=["once again", "unwritten"],
)
async def test_the_campaign_finds_a_bug_that_was_built_in(sabotage: str, point: str, found: str) -> None:
    report = await kill_anywhere(only=[(point, 1)], sabotage=sabotage)
    assert any(found in violation for violation in report.violations), report


async def test_a_driver_that_wakes_up_when_another_has_taken_over_commits_nothing() -> None:
    (fenced,) = await fence(("log.CallStarted.before",))
    assert fenced.violations == ()


def test_two_releases_work_side_by_side() -> None:
    line = [sys.executable, "-m", "tools.chaos.rolling_upgrade", "--turns", "40"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=280, env=child_environment())
    assert done.returncode == 0, done.stdout + done.stderr
