"""Waiting costs next to nothing, however many wait; and whoever is answered goes on."""

from __future__ import annotations

import pytest

from tools.chaos.waiting_sessions import Spread, WaitingSizes, spread, waiting


def test_a_spread_names_the_usual_the_rare_and_the_worst() -> None:
    assert spread(number / 1000 for number in range(101)) == Spread(50.0, 99.0, 100.0)
    assert spread([0.002]) == Spread(2.0, 2.0, 2.0)


@pytest.mark.live
@pytest.mark.timeout(180)
async def test_sessions_that_wait_cost_next_to_nothing_and_go_on_when_they_are_answered() -> None:
    report = await waiting(WaitingSizes(sessions=300, answers=10, settling=1.0, idle=3.0, workers=2))
    assert report.violations == []
    # Processor time, which a busy machine does not stretch as it does the hours. What is promised is 0.03 of a core; over
    # a few seconds, a cleaning of the database that falls into them weighs more than that.
    assert report.idle_cores < 0.1
    assert report.restart_cpu < 2.0
