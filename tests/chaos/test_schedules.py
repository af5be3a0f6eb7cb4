"""The schedule campaign in its short form: processes are killed while they start what is due."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.chaos.schedules import campaign
from tools.servers.postgres import private_postgres


@pytest.mark.live
async def test_each_planned_time_starts_one_turn_while_processes_are_killed(tmp_path: Path) -> None:
    async with private_postgres(tmp_path) as postgres:
        report = await campaign(postgres.url, tmp_path, schedules=60, window=6.0, processes=2, kills=2, seed=7)
    assert report.violations == ()
    assert report.started == 60
