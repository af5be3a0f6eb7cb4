"""A cell of real processes: cancels that are heard, tools that outlive their turns, and a session that kills."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest
from tests.helpers.events import wait_for_event

from everturn import Chat, Turn
from everturn.app import App
from everturn.core.events import CallStarted, TurnCancelled
from everturn.core.session_claims import MAX_QUICK_CLAIMS
from everturn.errors import SessionQuarantined
from everturn.events import LateResultReceived, TextDelta
from everturn.watchdog import BLOCKED_EXIT_CODE
from tools.chaos import ask
from tools.chaos.cell import Cell, WorkerProcess, cell

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]
BUSY = 60.0  # seconds that a busy machine may take to look; a session that rests by this clock rested then


async def send(app: App, scenario: str, session: str, **options: float) -> Turn:
    return await Chat(app.model_for(""), app=app, session=session).send(ask(scenario, session, 0, **options))


async def test_a_cell() -> None:
    async with cell() as where:
        await where.start_workers(2, pace=0.01)
        async with where.client() as app, where.client() as other_app:
            await cancels_are_heard_at_once(app, other_app)
            await a_tool_whose_process_died_after_its_turn_is_told_of(where, app)
            await a_tool_that_stops_the_event_loop_ends_its_worker_and_its_session_is_caught(where, app)
            await a_session_that_kills_its_workers_is_parked_and_blocks_nobody(where, app)


async def cancels_are_heard_at_once(app: App, other_app: App) -> None:
    seconds: list[float] = []
    for number in range(20):
        turn = await send(app, "long_text", f"cancel-{number}", deltas=10_000)
        async for shown in turn:
            if isinstance(shown, TextDelta):
                break
        cancelled_at = time.time()
        await Turn(other_app, turn.session, turn.id, "").cancel()
        ended = await wait_for_event(app.store, turn.session, TurnCancelled)
        assert isinstance(ended, TurnCancelled)
        seconds.append(ended.at - cancelled_at)
    assert sorted(seconds)[len(seconds) * 3 // 4] < 0.1, seconds  # a loaded machine may be late now and then


async def a_tool_whose_process_died_after_its_turn_is_told_of(where: Cell, app: App) -> None:
    turn = await send(app, "lingers", "linger", seconds=300)
    await wait_for_event(app.store, "linger", CallStarted)
    await turn.cancel()
    await wait_for_event(app.store, "linger", TurnCancelled)
    effect = [line for line in where.lines() if line.kind == "effect" and line.session == "linger"]
    (worker,) = [worker for worker in where.workers if worker.name == effect[0].worker]

    await worker.kill9()
    where.workers.remove(worker)

    late = await wait_for_event(app.store, "linger", LateResultReceived)
    assert isinstance(late, LateResultReceived)
    assert late.output.code == "outcome_unknown"
    await where.start_worker(pace=0.01)


async def a_tool_that_stops_the_event_loop_ends_its_worker_and_its_session_is_caught(where: Cell, app: App) -> None:
    await send(app, "blocks", "wedge")
    ended: list[WorkerProcess] = []
    async with asyncio.timeout(60):
        while not ended:
            await asyncio.sleep(0.05)
            ended = [worker for worker in where.workers if not worker.is_running]

    assert [worker.process.returncode for worker in ended] == [BLOCKED_EXIT_CODE]
    assert "driving session wedge" in ended[0].stderr.read_text(encoding="utf-8")
    await (await send(app, "echo", "beside-a-wedge"))
    with pytest.raises(SessionQuarantined) as caught:
        await app.store.claim("wedge", app.clock.now() - BUSY)
    assert caught.value.retry_at
    where.workers.remove(ended[0])
    await where.start_worker(pace=0.01)


async def a_session_that_kills_its_workers_is_parked_and_blocks_nobody(where: Cell, app: App) -> None:
    deaths = 0

    async def keep_two_running() -> None:
        nonlocal deaths
        while True:
            for worker in [worker for worker in where.workers if not worker.is_running]:
                where.workers.remove(worker)
                deaths += 1
                with suppress(RuntimeError):  # it may be given the poison before it has said that it is there
                    await where.start_worker()
            await asyncio.sleep(0.05)

    keeping = asyncio.create_task(keep_two_running())
    poisonous = await send(app, "poison", "poison")
    well = 0
    async with asyncio.timeout(120):
        while (
            deaths < MAX_QUICK_CLAIMS + 1
        ):  # the fourth after a rest of seconds; the contract of stores has the others
            await (await send(app, "echo", f"well-{well}"))
            well += 1
    with pytest.raises(SessionQuarantined) as resting:
        await app.store.claim("poison", app.clock.now() - BUSY)
    assert resting.value.retry_at
    assert await app.store.open_turns("poison") == [poisonous.id]

    await (await send(app, "echo", "well-after-all"))
    await poisonous.cancel()  # a new command gives it another chance, and this one ends it
    await wait_for_event(app.store, "poison", TurnCancelled)
    assert deaths >= MAX_QUICK_CLAIMS + 1
    keeping.cancel()
