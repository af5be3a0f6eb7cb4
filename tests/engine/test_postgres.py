"""The PostgreSQL engine: the contract of every engine, and what only several workers can show.

Here every `PostgresEngine` is a worker; tests/engine/test_postgres_processes.py has real processes.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
from tests.helpers.hurried_engine import HurriedEngine
from tests.helpers.schema_pool import borrowed_schema
from tests.helpers.stores import URL
from tests.helpers.waiting import wait_until

from everturn.core.ports import Engine
from everturn.engine.postgres import PostgresEngine
from everturn.engine.postgres import engine as engine_module
from everturn.engine.postgres import lease as lease_module
from everturn.errors import EngineUnavailable, SessionQuarantined, Stale, StoreBusy
from everturn.stores.sql.postgres import Postgres
from everturn.stores.sql.store import SqlStore
from everturn.testing import FakeClock
from everturn.testing.contracts import EngineContract
from tools.servers.process import free_port

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


class EngineDatabase:
    """A schema, and the engines on it."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self.url = f"{URL}?schema={schema}"
        self.engines: list[PostgresEngine] = []

    async def migrate(self) -> None:
        store = SqlStore(Postgres(URL, self.schema))
        await store.sessions()
        await store.aclose()

    def engine(self, **options: Any) -> PostgresEngine:
        self.engines.append(PostgresEngine(self.url, **options))
        return self.engines[-1]

    async def sql(self, text: str, *parameters: Any) -> list[Any]:
        connection: Any = await asyncpg.connect(URL, server_settings={"search_path": self.schema})
        try:
            return await connection.fetch(text, *parameters)
        finally:
            await connection.close()

    async def aclose(self) -> None:
        for engine in self.engines:
            await engine.aclose()


@pytest.fixture
async def database() -> AsyncIterator[EngineDatabase]:
    async with borrowed_schema() as schema:
        database = EngineDatabase(schema)
        await database.migrate()
        yield database
        await database.aclose()


# The contract ---------------------------------------------------------------------------------------------------------


class TestPostgresEngine(EngineContract):
    coalesces = True

    @pytest.fixture(autouse=True)
    def _with(self, database: EngineDatabase) -> None:
        self.database = database

    async def make(self, clock: FakeClock) -> Engine:
        self.hurried = HurriedEngine(self.database.engine(), clock)
        return self.hurried

    async def settle(self) -> None:
        await asyncio.sleep(0.3)

    async def pass_time(self, clock: FakeClock, seconds: float) -> None:
        await self.hurried.pass_time(seconds, settle=0.5)


class TestAnotherWorkerDrives(TestPostgresEngine):
    """The same promises when a process that drives nothing wakes, and another one drives."""

    async def make(self, clock: FakeClock) -> Engine:
        waker, driver = self.database.engine(drives=False), self.database.engine()
        self.hurried = HurriedEngine(waker, clock, drives=driver)
        return self.hurried


# One worker -----------------------------------------------------------------------------------------------------------


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


async def rows(database: EngineDatabase) -> list[Any]:
    return await database.sql("SELECT session, worker FROM wakes ORDER BY session")


async def test_a_finished_drive_leaves_no_row_and_a_session_may_have_any_name(database: EngineDatabase) -> None:
    engine, driving = database.engine(), Driving()
    await engine.serve(driving)
    names = ["a/b", "ü %2F", "..", "x" * 300, "'; --"]
    for name in names:
        await engine.wake(name)

    await wait_until(lambda: driving.ended.total() == len(names))
    async with asyncio.timeout(10):
        while await rows(database):  # noqa: ASYNC110 - it is in the database
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("error", [Stale("another drives"), SessionQuarantined("it is left alone")], ids=type)
async def test_a_drive_that_was_overtaken_or_refused_is_not_tried_again(
    database: EngineDatabase, error: Exception
) -> None:
    engine, begun = database.engine(), 0

    async def drive(session: str) -> None:
        nonlocal begun
        begun += 1
        raise error

    await engine.serve(drive)
    await engine.wake("s")
    await wait_until(lambda: begun == 1)
    await asyncio.sleep(0.6)  # a second try would come after a tenth of a second

    assert begun == 1


async def test_a_wake_that_the_database_does_not_take_is_an_error_of_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("everturn.engine.postgres.engine.WAKE_TIMEOUT", 0.3)
    engine = PostgresEngine(f"postgresql://postgres@127.0.0.1:{free_port()}/none")

    with pytest.raises(EngineUnavailable, match="check that it runs"):
        await engine.wake("s")

    await engine.aclose()


async def test_a_process_that_drives_alone_and_the_workers_of_this_engine_keep_each_other_out(
    database: EngineDatabase,
) -> None:
    alone = SqlStore(Postgres(URL, database.schema))
    await alone.lock_for_process()
    with pytest.raises(StoreBusy, match="inline engine"):
        await database.engine().serve(Driving())
    await alone.aclose()

    async with asyncio.timeout(10):
        while True:  # the server notices the closed connection a moment later
            try:
                await database.engine().serve(Driving())
                break
            except StoreBusy:
                await asyncio.sleep(0.05)

    other = SqlStore(Postgres(URL, database.schema))
    with pytest.raises(StoreBusy):
        await other.lock_for_process()
    await other.aclose()


async def test_a_take_whose_answer_was_lost_is_taken_again(database: EngineDatabase) -> None:
    engine, driving = database.engine(), Driving()
    await engine.serve(driving)
    worker = engine._lease.worker
    await database.sql("INSERT INTO wakes (session, worker) VALUES ('lost', $1)", worker)

    await wait_until(lambda: driving.ended["lost"] == 1)


# Several workers ------------------------------------------------------------------------------------------------------


async def two(database: EngineDatabase) -> tuple[PostgresEngine, Driving, PostgresEngine, Driving]:
    local, remote = database.engine(), database.engine()
    driving_here, driving_there = Driving(), Driving()
    await local.serve(driving_here)
    await remote.serve(driving_there)
    return local, driving_here, remote, driving_there


async def test_a_session_that_one_worker_drives_is_not_driven_by_another(database: EngineDatabase) -> None:
    local, driving_here, remote, driving_there = await two(database)
    await local.wake("held")
    await wait_until(lambda: driving_here.begun["held"] == 1)

    for _ in range(5):
        await remote.wake("held")
    await asyncio.sleep(0.5)
    assert driving_there.begun == {}
    driving_here.hold.set()
    driving_there.hold.set()

    await wait_until(lambda: driving_here.ended["held"] + driving_there.ended["held"] == 2)  # five wakes are one
    await asyncio.sleep(0.3)
    assert driving_here.ended["held"] + driving_there.ended["held"] == 2


async def test_a_worker_that_closes_hands_its_sessions_over_at_once(database: EngineDatabase) -> None:
    local, driving_here, _, driving_there = await two(database)
    for number in range(20):
        await local.wake(f"held{number}")
    await wait_until(lambda: len(driving_here.begun) == 20)
    driving_there.hold.set()

    await local.aclose()

    await wait_until(lambda: len(driving_there.ended) == 20, 2.0)  # not the two and a half of the next look
    assert len(driving_here.cancelled) == 20


async def test_a_worker_that_leaves_takes_nothing_new_and_others_do(database: EngineDatabase) -> None:
    local, driving_here, _, driving_there = await two(database)
    await local.stop_accepting()
    for number in range(5):
        await local.wake(f"s{number}")

    await wait_until(lambda: len(driving_there.ended) == 5)
    assert driving_here.begun == {}


async def _is_another(registered: Callable[[], Awaitable[Any]], cut: int) -> bool:
    return await registered() not in (None, cut)


async def test_a_worker_whose_connections_are_cut_keeps_its_sessions(
    database: EngineDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow this machine is, the connection is open again in time.
    monkeypatch.setattr(lease_module, "LEASE", 60.0)
    monkeypatch.setattr(lease_module, "MISSED_FOR", 20.0)
    local, driving_here, remote, driving_there = await two(database)
    await local.wake("held")
    await wait_until(lambda: driving_here.begun["held"] == 1)
    worker = local._lease.worker

    async def registered() -> Any:
        """The backend of the worker, while no other worker misses it."""
        rows = await database.sql("SELECT backend, missing_since FROM engine_workers WHERE id = $1", worker)
        return rows[0]["backend"] if rows and rows[0]["missing_since"] is None else None

    for _ in range(3):
        cut = await wait_until(registered)
        await database.sql("SELECT pg_terminate_backend($1)", cut)
        await remote._link.direct(remote._sql.miss)  # or another worker would do so at its next beat
        await wait_until(lambda cut=cut: _is_another(registered, cut))
        # By now a worker that is still missed would be taken for dead.
        assert await remote._link.direct(remote._sql.reap, 0.0) == []

    assert local._lease.worker == worker
    assert driving_there.begun == {}
    assert driving_here.cancelled == {}
    driving_here.hold.set()
    await wait_until(lambda: driving_here.ended["held"] == 1)


async def test_a_worker_that_was_taken_for_dead_is_overtaken_cancels_its_drives_and_ends_nothing(
    database: EngineDatabase,
) -> None:
    local, driving_here, _, driving_there = await two(database)
    await local.wake("held")
    await wait_until(lambda: driving_here.begun["held"] == 1)
    await local.stop_accepting()  # or it might take its own session back
    dead = local._lease.worker
    # As if it had been silent, and another worker had taken over.
    await database.sql("UPDATE wakes SET worker = NULL, due = now() WHERE worker = $1", dead)
    await database.sql("DELETE FROM engine_workers WHERE id = $1", dead)

    await wait_until(lambda: driving_there.begun["held"] == 1)
    await wait_until(lambda: driving_here.cancelled["held"] == 1)
    local._ended[dead or 0] = ["held"]  # what it would have written, had it not been cancelled
    local._has_ended.set()
    await wait_until(lambda: not local._ended)

    found = await rows(database)
    assert [row["session"] for row in found] == ["held"]
    assert found[0]["worker"] not in (None, dead)
    assert local._lease.worker != dead


async def test_a_worker_that_was_too_slow_to_renew_its_lease_takes_fewer_sessions_until_it_renews_in_time(
    database: EngineDatabase,
) -> None:
    engine, driving = database.engine(), Driving()
    await engine.serve(driving)
    sessions = [f"held{number}" for number in range(40)]
    for session in sessions:
        await engine.wake(session)
    await wait_until(lambda: sum(driving.begun.values()) == 40)
    engine._tasks[2].cancel()  # from now on this test renews the lease
    await database.sql("UPDATE wakes SET worker = NULL, due = now()")
    await database.sql("DELETE FROM engine_workers")
    engine._lease._renewed -= 3 * lease_module.BEAT

    await engine._lease.renew()
    await wait_until(lambda: sum(driving.cancelled.values()) == 40)
    await wait_until(lambda: sum(driving.begun.values()) == 60)
    assert not engine._can_take

    await engine._lease.renew()
    await wait_until(lambda: sum(driving.begun.values()) == 80)
    driving.hold.set()
    await wait_until(lambda: sum(driving.ended.values()) == 40)


async def test_the_sessions_of_a_dead_worker_go_to_all_others_and_not_only_to_the_one_that_noticed(
    database: EngineDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "LOOK_INTERVAL", 3600.0)  # nobody looks who was not told
    monkeypatch.setattr(lease_module, "LEASE", 3600.0)
    dead, noticing, other = database.engine(), database.engine(at_once=4), database.engine()
    driving = Driving()
    for engine in (dead, noticing, other):
        await engine.serve(driving)
        engine._tasks[2].cancel()  # this test takes over
    for number in range(12):
        await dead.wake(f"held{number}")
    await wait_until(lambda: len(driving.begun) == 12)
    await dead.stop_accepting()  # or it might take its own sessions back
    await database.sql("UPDATE engine_workers SET expires = now() - interval '1 s' WHERE id = $1", dead._lease.worker)

    await noticing._lease._take_over()

    await wait_until(lambda: len(noticing._driving) + len(other._driving) == 12)
    assert len(noticing._driving) <= 4
    driving.hold.set()


async def test_a_worker_that_is_silent_loses_its_sessions_within_five_seconds(database: EngineDatabase) -> None:
    local, driving_here, _, driving_there = await two(database)
    await local.wake("held")
    await wait_until(lambda: driving_here.begun["held"] == 1)
    began = time.monotonic()
    local._tasks[2].cancel()  # its lease is not renewed any more

    await wait_until(lambda: driving_there.begun["held"] == 1, 20)

    assert time.monotonic() - began < lease_module.LEASE + 2 * lease_module.BEAT


async def test_delayed_wakes_outlive_the_worker_that_asked_for_them(database: EngineDatabase) -> None:
    local, _, _, driving_there = await two(database)
    await local.wake("later", time.time() + 1.5)
    await local.aclose()

    await wait_until(lambda: driving_there.ended["later"] == 1)


async def test_wakes_of_many_workers_lose_nothing_and_never_overlap(database: EngineDatabase) -> None:
    """Three workers, thirty sessions, wakes from everywhere: each is followed by a drive that begins after it."""
    engines = [database.engine() for _ in range(3)]
    driven: dict[str, list[float]] = {}
    now: Counter[str] = Counter()
    woken: dict[str, float] = {}
    overlaps = 0

    async def drive(session: str) -> None:
        nonlocal overlaps
        driven.setdefault(session, []).append(time.monotonic())
        now[session] += 1
        overlaps += now[session] > 1
        await asyncio.sleep(0.005)
        now[session] -= 1

    async def wake(engine: PostgresEngine, number: int) -> None:
        for at in range(60):
            session = f"s{(number * 7 + at) % 30}"
            woken[session] = max(woken.get(session, 0.0), time.monotonic())
            await engine.wake(session, time.time() + 0.05 if at % 5 == 0 else None)

    for engine in engines:
        await engine.serve(drive)
    await asyncio.gather(*(wake(engine, number) for number, engine in enumerate(engines * 3)))
    await wait_until(lambda: all(max(driven.get(session, [0.0])) >= at for session, at in woken.items()))

    assert overlaps == 0
    async with asyncio.timeout(10):
        while await rows(database):  # noqa: ASYNC110 - it is in the database
            await asyncio.sleep(0.05)
