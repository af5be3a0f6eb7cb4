"""Failover to a standby: the short form of `python -m tools.chaos.failover`."""

from __future__ import annotations

import pytest

from tools.chaos.failover import run_failover

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


async def test_a_synchronous_standby_takes_over_and_nothing_is_lost() -> None:
    report = await run_failover(turns=24)
    assert report.violations == ()
    assert report.running, "no turn was running when the primary died"


@pytest.mark.long
async def test_the_campaign_finds_what_an_asynchronous_standby_loses() -> None:
    report = await run_failover(turns=60, synchronous=False)
    assert any("lost" in violation or "I25" in violation for violation in report.violations), report
