"""Real workers on Temporal, really killed: the short form of the campaign."""

from __future__ import annotations

import pytest

from tools.chaos.random_kills import kill_at_random

pytestmark = [pytest.mark.live, pytest.mark.long, pytest.mark.timeout(300)]


async def test_turns_survive_kills_of_their_workers() -> None:
    report = await kill_at_random(kills=2, lanes=6, workers=5, seed=5, engine="temporal")
    assert report.violations == ()
    assert report.turns > 6
