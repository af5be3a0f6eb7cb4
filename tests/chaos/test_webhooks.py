"""The webhook campaign in its short form: senders are killed, and the receiver fails half the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.chaos.webhooks import campaign
from tools.servers.postgres import private_postgres


@pytest.mark.live
async def test_each_event_is_delivered_while_senders_are_killed(tmp_path: Path) -> None:
    async with private_postgres(tmp_path) as postgres:
        report = await campaign(postgres.url, tmp_path, deliveries=100, processes=2, kills=1, seed=3, gap=1.0)
    assert report.violations == ()
    assert report.requests > 100
