"""Real processes on PostgreSQL alone, really killed: short forms of the campaigns, and a service as the guide starts it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import aiohttp
import pytest

from everturn.stores.sql.store import SqlStore
from tools.chaos.fence import fence
from tools.chaos.kill import kill_anywhere
from tools.chaos.random_kills import kill_at_random
from tools.chaos.rolling_restart import restart_while_streaming
from tools.environment import child_environment
from tools.servers.postgres import private_postgres
from tools.servers.process import free_port, process_family

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]
GUIDES = Path(__file__).parents[2] / "docs_src" / "guides"


async def test_a_turn_ends_as_if_nothing_had_happened_wherever_its_worker_is_killed() -> None:
    report = await kill_anywhere(limit=5, seed=5, engine="postgres")
    assert report.violations == []
    assert len(report.happened) >= 4, "too few of the points were reached to prove anything"


async def test_turns_survive_kills_and_a_database_that_cuts_and_restarts() -> None:
    report = await kill_at_random(kills=5, lanes=8, workers=5, seed=5, engine="postgres", has_faults=True)
    assert report.violations == ()
    assert report.turns > 8


async def test_a_driver_that_wakes_up_when_another_has_taken_over_commits_nothing() -> None:
    (fenced,) = await fence(("log.CallStarted.before",), engine="postgres")
    assert fenced.violations == ()


async def test_the_service_of_the_fastapi_guide_runs_with_several_workers(tmp_path: Path) -> None:
    """Messages to two uvicorn workers, one of which is killed: every turn asks its question."""
    async with private_postgres(tmp_path) as postgres:
        port = free_port()
        environment = {**child_environment(), "TALKS": postgres.url, "PYTHONPATH": f"{GUIDES}:{Path.cwd()}"}
        words = ("uvicorn", "fastapi_first:app", "--workers", "2", "--port", str(port), "--log-level", "warning")
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", *words, env=environment)
        base = f"http://127.0.0.1:{port}"
        try:
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as http:
                await _until_served(http, base)
                for number in range(20):
                    if number == 10:
                        os.kill(_workers(process.pid)[-1], signal.SIGKILL)
                    await _send(http, base, f"lunch{number}")
                async with asyncio.timeout(60):
                    for number in range(20):
                        while not await _gates(http, base, f"lunch{number}"):  # noqa: ASYNC110
                            await asyncio.sleep(0.05)
        finally:
            process.terminate()
            await process.wait()
        store = SqlStore.postgres(postgres.url)
        assert len(await store.sessions()) == 20
        await store.aclose()


async def test_readers_of_that_service_resume_exactly_when_its_workers_are_replaced() -> None:
    report = await restart_while_streaming(streams=12, workers=2, restarts=1, chunks=120)
    assert report.violations == ()


async def test_a_paused_database_answers_nobody_until_the_pause_is_over(tmp_path: Path) -> None:
    async with private_postgres(tmp_path) as postgres:
        store = SqlStore.postgres(postgres.url)
        assert await store.sessions() == []  # it is connected
        pausing = asyncio.create_task(postgres.pause(1.0))
        await asyncio.sleep(0)  # until it is paused
        question = asyncio.create_task(store.sessions())
        done, _ = await asyncio.wait({pausing, question}, return_when="FIRST_COMPLETED")
        assert pausing in done
        assert await question == []
        await store.aclose()


def _workers(parent: int) -> list[int]:
    """The uvicorn workers, and not the process that tracks their semaphores."""
    found = process_family(parent).pids[1:]
    return [pid for pid in found if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


async def _until_served(http: aiohttp.ClientSession, base: str) -> None:
    async with asyncio.timeout(120):
        while True:
            try:
                async with http.get(f"{base}/openapi.json") as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)


async def _send(http: aiohttp.ClientSession, base: str, session: str) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                headers = {"idempotency-key": "k"}
                async with http.post(f"{base}/talks/{session}", json={"text": "Hi"}, headers=headers) as response:
                    assert response.status == 200, await response.text()
                    return
            except aiohttp.ClientError:  # the worker that had the connection was killed
                await asyncio.sleep(0.1)


async def _gates(http: aiohttp.ClientSession, base: str, session: str) -> bool:
    try:
        async with http.get(f"{base}/talks/{session}/gates/open") as response:
            return response.status == 200 and bool(await response.json())
    except aiohttp.ClientError:
        return False
