"""The short form of the campaign: a real model, the terminal, one summary, and a `kill -9` in the middle of it."""

from __future__ import annotations

import pytest

from tools.long_conversation.campaign import run

pytestmark = [pytest.mark.live, pytest.mark.long, pytest.mark.timeout(1200), pytest.mark.xdist_group("local-model")]


async def test_a_conversation_goes_on_through_a_summary_that_was_killed() -> None:
    # What the model says is its own affair; in so small a window ten messages need a summary.
    report = await run(12, kill_at=1, facts=(), window=768)
    assert report.is_whole, report
    assert report.kills == 1
    assert report.summaries >= 1
