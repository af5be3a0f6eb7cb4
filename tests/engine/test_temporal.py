"""Temporal drives: the contract of every engine, on a real development server, and what only Temporal has."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowHandle
from tests.helpers.hurried_engine import HurriedEngine
from tests.helpers.waiting import wait_until

from everturn.core.ports import Engine
from everturn.engine.temporal import TemporalAddress, TemporalEngine, TemporalHealth
from everturn.engine.temporal.workflow import DRIVES_PER_RUN
from everturn.errors import ConfigError, EngineUnavailable, EverturnError, SessionQuarantined, Stale
from everturn.testing import FakeClock
from everturn.testing.contracts import EngineContract
from tools.servers.process import free_port
from tools.servers.temporal import TemporalServer, temporal_server

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

names = (f"queue{number}" for number in count())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TemporalServer]:
    async with temporal_server(tmp_path_factory.mktemp("temporal")) as server:
        yield server


class TestTemporalEngine(EngineContract):
    coalesces = False  # a wake during a drive that fails is seen by its retry, and drives once more all the same

    @pytest.fixture(autouse=True)
    def _with(self, server: TemporalServer) -> None:
        self.server = server

    async def make(self, clock: FakeClock) -> Engine:
        self.hurried = HurriedEngine(TemporalEngine(self.server.url, name=next(names)), clock)
        return self.hurried

    async def settle(self) -> None:
        await asyncio.sleep(0.8)

    async def pass_time(self, clock: FakeClock, seconds: float) -> None:
        await self.hurried.pass_time(seconds, settle=0.8)


# What only Temporal has -----------------------------------------------------------------------------------------------


class Driving:
    """A drive that holds its session until it is released, and counts."""

    def __init__(self) -> None:
        self.begun, self.ended, self.cancelled = Counter[str](), Counter[str](), Counter[str]()
        self.hold = asyncio.Event()

    async def __call__(self, session: str) -> None:
        self.begun[session] += 1
        try:
            if session.startswith("held"):
                await self.hold.wait()
        except asyncio.CancelledError:
            self.cancelled[session] += 1
            raise
        self.ended[session] += 1


async def client_of(server: TemporalServer) -> Client:
    return await Client.connect(f"127.0.0.1:{server.port}")


async def is_idle(handle: WorkflowHandle[Any, Any]) -> bool:
    found = (await handle.describe()).raw_description
    return not found.pending_activities and not found.HasField("pending_workflow_task")


async def test_a_session_may_have_any_name(server: TemporalServer):
    driving, engine = Driving(), TemporalEngine(server.url, name=next(names))
    await engine.serve(driving)
    wanted = ["a/b", "ü %2F?delay=1", "..", "x" * 300]
    for session in wanted:
        await engine.wake(session)

    await wait_until(lambda: driving.ended.total() == len(wanted))
    assert driving.ended == dict.fromkeys(wanted, 1)
    await engine.aclose()


async def test_wakes_of_many_processes_during_a_drive_cause_one_more(server: TemporalServer):
    name, driving = next(names), Driving()
    engine = TemporalEngine(server.url, name=name)
    wakers = [TemporalEngine(server.url, name=name, drives=False) for _ in range(4)]  # each has a queue of its own
    await engine.serve(driving)
    await engine.wake("held")
    await wait_until(lambda: driving.begun["held"] == 1)

    for _ in range(3):
        await asyncio.gather(*(waker.wake("held") for waker in wakers))
    driving.hold.set()
    handle = (await client_of(server)).get_workflow_handle(engine.workflow_id("held"))
    await asyncio.wait_for(handle.result(), 30)  # nobody wants the session any more

    assert driving.ended["held"] == 2
    for each in (engine, *wakers):
        await each.aclose()


@pytest.mark.parametrize(
    "error", [Stale("somebody else drives this"), SessionQuarantined("it is left alone")], ids=type
)
async def test_who_is_overtaken_or_refused_leaves_the_session_alone(server: TemporalServer, error: EverturnError):
    begun = 0

    async def drive(session: str) -> None:
        nonlocal begun
        begun += 1
        raise error

    engine = TemporalEngine(server.url, name=next(names))
    await engine.serve(drive)
    await engine.wake("s")
    handle = (await client_of(server)).get_workflow_handle(engine.workflow_id("s"))
    await asyncio.wait_for(handle.result(), 30)

    assert begun == 1
    await engine.aclose()


async def test_the_history_of_a_session_stays_short_however_often_it_is_driven(server: TemporalServer):
    drives, over = 0, asyncio.Event()

    async def drive(session: str) -> None:
        nonlocal drives
        drives += 1
        if drives <= DRIVES_PER_RUN + 5:
            await engine.wake(session)
        else:
            over.set()

    engine = TemporalEngine(server.url, name=next(names))
    await engine.serve(drive)
    handle = (await client_of(server)).get_workflow_handle(engine.workflow_id("s"))
    await engine.wake("s", time.time() + 3600)
    first = await handle.describe()
    await engine.wake("s")
    await asyncio.wait_for(over.wait(), 120)

    await wait_until(lambda: is_idle(handle), pause=0.1)
    now = await handle.describe()
    assert now.run_id != first.run_id  # it continued as a new run,
    assert now.history_length < 200
    assert now.status is not None
    assert now.status.name == "RUNNING"  # which still waits for the time that was asked for first
    await engine.aclose()


async def test_temporal_never_learns_the_text_of_an_error(server: TemporalServer):
    begun = asyncio.Event()

    async def drive(session: str) -> None:
        begun.set()
        raise RuntimeError("Ada's account number")

    engine = TemporalEngine(server.url, name=next(names))
    await engine.serve(drive)
    await engine.wake("s")
    await begun.wait()
    handle = (await client_of(server)).get_workflow_handle(engine.workflow_id("s"))

    async def failure() -> str:
        pending = (await handle.describe()).raw_description.pending_activities
        return str(pending[0].last_failure) if pending and pending[0].HasField("last_failure") else ""

    text = await wait_until(failure, pause=0.05)
    assert "the drive failed: RuntimeError" in text
    assert "account number" not in text
    await engine.aclose()


async def test_a_reminder_is_dropped_while_a_drive_is_queued_and_taken_when_none_is(server: TemporalServer):
    driving, engine = Driving(), TemporalEngine(server.url, name=next(names))
    await engine.serve(driving)
    await engine.wake("held")
    await wait_until(lambda: driving.begun["held"] == 1)
    handle = (await client_of(server)).get_workflow_handle(engine.workflow_id("held"))
    before = (await handle.describe()).history_length

    for _ in range(5):
        await engine.wake("held", is_reminder=True)
    assert (await handle.describe()).history_length == before
    driving.hold.set()
    await asyncio.wait_for(handle.result(), 30)
    assert driving.ended["held"] == 1

    await engine.wake("held", time.time() + 3600)
    await wait_until(lambda: is_idle(handle), pause=0.05)  # it waits for a time: no drive is queued
    await engine.wake("held", is_reminder=True)
    await wait_until(lambda: driving.ended["held"] == 2)
    await engine.aclose()


async def test_a_drive_that_takes_longer_than_the_heartbeat_timeout_is_driven_once(server: TemporalServer):
    driving, engine = Driving(), TemporalEngine(server.url, name=next(names), heartbeat_timeout=2.0)
    await engine.serve(driving)
    await engine.wake("held")
    await wait_until(lambda: driving.begun["held"] == 1)
    await asyncio.sleep(5)
    driving.hold.set()
    await wait_until(lambda: driving.ended["held"] == 1)

    assert driving.begun["held"] == 1
    await engine.aclose()


async def test_a_worker_that_closes_gives_its_drive_to_another_and_takes_no_new_one(server: TemporalServer):
    name, leaving_drives, staying_drives = next(names), Driving(), Driving()
    leaving, staying = (TemporalEngine(server.url, name=name) for _ in range(2))
    await leaving.serve(leaving_drives)
    await leaving.wake("held")
    await wait_until(lambda: leaving_drives.begun["held"] == 1)
    await leaving.stop_accepting()
    await staying.serve(staying_drives)
    for number in range(20):
        await leaving.wake(f"s{number}")
    await wait_until(lambda: staying_drives.ended.total() == 20)
    assert (leaving_drives.begun, leaving_drives.cancelled.total()) == (
        {"held": 1},
        0,
    )  # what it drives, it goes on driving

    await leaving.aclose()
    await wait_until(lambda: staying_drives.begun["held"] == 1)
    staying_drives.hold.set()
    await wait_until(lambda: staying_drives.ended["held"] == 1)
    assert leaving_drives.cancelled == {"held": 1}
    await staying.aclose()


async def test_when_temporal_dies_drives_go_on_and_every_wake_is_kept(tmp_path: Path):
    driving = Driving()
    async with temporal_server(tmp_path) as server:
        engine = TemporalEngine(server.url, heartbeat_timeout=30)
        await engine.serve(driving)
        for number in range(10):
            await engine.wake(f"held{number}")
            await engine.wake(f"later{number}", time.time() + 3)
        await wait_until(lambda: driving.begun.total() == 10)
        await engine.wake("held0")

        server.kill9()
        waking = asyncio.gather(*(engine.wake(f"during{number}") for number in range(5)))
        await server.start()
        await waking
        driving.hold.set()
        wanted = [f"{kind}{number}" for kind in ("held", "later") for number in range(10)]
        wanted += [f"during{number}" for number in range(5)]
        await wait_until(lambda: all(driving.ended[session] for session in wanted) and driving.ended["held0"] >= 2)

        assert driving.cancelled == {}  # it took less than the heartbeat timeout
        assert driving.begun["held1"] == 1
        await engine.aclose()


async def test_health_says_whether_temporal_answers(server: TemporalServer):
    reachable = TemporalEngine(server.url, drives=False)
    nowhere = TemporalEngine(f"temporal://127.0.0.1:{free_port()}", drives=False)

    assert await reachable.health() == TemporalHealth(is_up=True)
    assert await nowhere.health() == TemporalHealth(is_up=False)
    await reachable.aclose()
    await nowhere.aclose()


async def test_errors_say_what_to_set(server: TemporalServer):
    port = free_port()
    nowhere = TemporalEngine(f"temporal://127.0.0.1:{port}")
    elsewhere = TemporalEngine(TemporalAddress(server.url, namespace="shop"))

    with pytest.raises(EngineUnavailable, match=rf"Temporal at 127.0.0.1:{port} does not answer .*frontend runs"):
        await nowhere.wake("s")
    with pytest.raises(EngineUnavailable, match="that it has the namespace 'shop'"):
        await elsewhere.serve(Driving())
    for url in ("https://temporal.example.org:7233", "temporal://here", "7233"):
        with pytest.raises(ConfigError, match=r"it looks like temporal://127\.0\.0\.1:7233"):
            TemporalEngine(url)
    with pytest.raises(ConfigError, match=r"needs TLS; write tls://127\.0\.0\.1:7233"):
        TemporalEngine(TemporalAddress("temporal://127.0.0.1:7233", api_key="secret"))
    with pytest.raises(ConfigError, match=r"nowhere\.pem cannot be read"):
        await TemporalEngine(TemporalAddress("tls://127.0.0.1:7233", ca="nowhere.pem")).serve(Driving())
    with pytest.raises(ConfigError, match=r"0\.5 s is too short"):
        TemporalEngine(server.url, heartbeat_timeout=0.5)
