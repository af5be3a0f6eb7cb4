"""Nothing that was acknowledged is lost, whatever is killed; and the checker that says so finds what is.

The long form is `python -m tools.chaos.input_loss --inputs 100000`.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tools.chaos.cell import Cell, cell
from tools.chaos.input_loss import LossCampaign, LossPlan, LossReport

pytestmark = [pytest.mark.live, pytest.mark.long, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running_cell() -> AsyncIterator[Cell]:
    async with cell() as opened_cell:
        await opened_cell.start_workers(2)
        yield opened_cell


async def run(target: Cell, name: str, bug: str = "", inputs: int = 120, gap: float = 0.0, seed: int = 1) -> LossReport:
    plan = LossPlan(inputs=inputs, per_session=10, clients=2, workers=2, gap=gap, seed=seed, name=name, bug=bug)
    return await LossCampaign(target, plan).run()


async def test_what_was_acknowledged_is_there_once_whatever_is_killed(running_cell: Cell) -> None:
    report = await run(running_cell, "killed", gap=0.8)

    assert sum(report.faults.values()) >= 2, "nothing was killed"
    assert report.violations == [], str(report)
    assert (report.inputs, report.begun) == (120, 120)
    assert report.again > 0  # some were sent twice, and are there once


async def test_an_input_that_is_acknowledged_before_it_is_committed_is_found_to_be_lost(running_cell: Cell) -> None:
    report = await run(running_cell, "forgetful", bug="forgetful")

    assert report.lost > 0, str(report)
    assert report.doubled == 0


async def test_a_store_that_does_not_look_at_keys_is_found_to_double_inputs(running_cell: Cell) -> None:
    report = await run(running_cell, "keyless", bug="keyless")

    assert report.lost == 0
    assert report.doubled > 0, str(report)
    assert any("was taken for another input" in violation for violation in report.violations), str(report)
