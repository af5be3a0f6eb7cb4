"""Two cells of real processes and a router: a short form of the campaign."""

from __future__ import annotations

import pytest

from tools.cells.campaign import run_campaign

pytestmark = [pytest.mark.live, pytest.mark.long, pytest.mark.timeout(900)]


async def test_a_tenant_with_streams_and_gates_moves_between_cells_and_loses_nothing() -> None:
    report = await run_campaign(streams=4, gates=2, kills=1, nodes=1, chunks=300, seed=1, pairs=20)
    assert report.violations == ()
    assert report.reconnects >= 4, "no stream was cut, so this proves little"
