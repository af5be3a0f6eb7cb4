"""Three nodes, three workers, real servers beneath, all of them programs: what is promised holds while they die.

This is the short form; `python -m tests.cluster.acceptance` is the whole of it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from tests.cluster import cancelling, gating, rolling, streaming
from tools.chaos.api import ApiCell, api_cell
from tools.chaos.versions import NEXT, NOW

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]


@pytest.fixture
async def cell() -> AsyncGenerator[ApiCell]:
    async with api_cell() as running_cell:
        yield running_cell


@pytest.mark.parametrize("is_stopped", [True, False], ids=["stopped", "to its end"])
async def test_readers_at_any_node_see_what_is_stored_though_a_worker_and_a_node_die(
    cell: ApiCell, is_stopped: bool
) -> None:
    sizes = streaming.Sizes(deltas=1_500, readers=12, stay=0.5)
    streamed = await streaming.streaming(cell, sizes, is_stopped=is_stopped)
    assert streamed.violations == []
    assert streamed.ended == ("TurnCancelled" if is_stopped else "TurnCompleted")
    assert streamed.restarts == 1
    assert streamed.visits > streamed.readers
    assert streamed.moves > 0


async def test_a_stop_ends_the_turn_and_not_the_tool_and_what_comes_late_has_a_home(cell: ApiCell) -> None:
    sizes = cancelling.Sizes(stops=6, seconds=8.0, after=0.3, hard=2, crashes=1)
    cancelled = await cancelling.cancelling(cell, sizes)
    assert cancelled.violations == []
    assert (cancelled.late, cancelled.lost) == (7, 1)
    assert cancelled.killed.worst < 2_000


async def test_questions_outlive_every_process_and_are_answered_at_another_node_a_day_later(cell: ApiCell) -> None:
    gated = await gating.gating(cell)
    assert gated.violations == []
    assert sorted(gated.sent) == ["ada", "bob", "eve", "zoe"]
    assert gated.requests_while_waiting == 1


async def test_every_node_and_worker_is_replaced_by_the_next_release_and_no_turn_notices(cell: ApiCell) -> None:
    rolled = await rolling.rolling(cell, rolling.Sizes(turns=12, pace=0.05, rest=0.3, same=1))
    assert rolled.violations == []
    assert (rolled.failed, rolled.twice) == (0, 0)
    assert (rolled.nodes, rolled.workers) == (4, 7)
    assert set(rolled.versions) == {str(NOW), str(NEXT)}, "both releases did something"
