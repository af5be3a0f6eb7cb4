"""Restate drives: the contract of every engine, and what only many processes can show."""

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from msgspec import Struct
from tests.helpers.hurried_engine import HurriedEngine
from tests.helpers.waiting import wait_until

from everturn.core.ports import Engine
from everturn.engine.restate import RestateEngine, RestateHealth, open_worker_socket
from everturn.errors import EngineUnavailable, EverturnError, SessionQuarantined, Stale
from everturn.testing import FakeClock
from everturn.testing.contracts import EngineContract
from tools.servers.process import free_port
from tools.servers.restate import RestateServer, restate_server

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

HERE = ("127.0.0.1", 0)
names = (f"everturn{number}" for number in count())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RestateServer]:
    async with restate_server(tmp_path_factory.mktemp("restate")) as server:
        yield server


# The contract ---------------------------------------------------------------------------------------------------------


class TestRestateEngine(EngineContract):
    coalesces = False

    @pytest.fixture(autouse=True)
    def _with(self, server: RestateServer) -> None:
        self.server = server

    async def make(self, clock: FakeClock) -> Engine:
        # A service of its own, or the next test would drive what this one leaves unfinished.
        engine = RestateEngine(self.server.ingress, self.server.admin, listen=HERE, service=next(names))
        self.hurried = HurriedEngine(engine, clock)
        return self.hurried

    async def settle(self) -> None:
        await asyncio.sleep(0.6)

    async def pass_time(self, clock: FakeClock, seconds: float) -> None:
        await self.hurried.pass_time(seconds, settle=0.6)


# One process ----------------------------------------------------------------------------------------------------------


async def test_a_session_may_have_any_name(server: RestateServer):
    driven: list[str] = []

    async def drive(session: str) -> None:
        driven.append(session)

    engine = RestateEngine(server.ingress, server.admin, listen=HERE, service=next(names))
    await engine.serve(drive)
    wanted = ["a/b", "ü %2F?delay=1", "..", "x" * 300]
    for session in wanted:
        await engine.wake(session)

    await wait_until(lambda: len(driven) == len(wanted))
    assert sorted(driven) == sorted(wanted)
    await engine.aclose()


async def test_wakes_that_wait_to_be_sent_are_one_request_and_a_later_one_is_another(server: RestateServer):
    driven: list[str] = []

    async def drive(session: str) -> None:
        driven.append(session)

    engine = RestateEngine(server.ingress, server.admin, listen=HERE, service=next(names))
    await engine.serve(drive)
    await asyncio.gather(*(engine.wake("s") for _ in range(100)))
    await wait_until(lambda: len(driven) == 1)
    await engine.wake("s")
    await wait_until(lambda: len(driven) == 2)
    await asyncio.sleep(0.5)

    assert len(driven) == 2
    await engine.aclose()


@pytest.mark.parametrize(
    "error", [Stale("somebody else drives this"), SessionQuarantined("it is left alone")], ids=type
)
async def test_who_is_overtaken_or_refused_leaves_the_session_alone(server: RestateServer, error: EverturnError):
    begun = 0

    async def drive(session: str) -> None:
        nonlocal begun
        begun += 1
        raise error

    engine = RestateEngine(server.ingress, server.admin, listen=HERE, service=next(names))
    await engine.serve(drive)
    await engine.wake("s")
    await wait_until(lambda: begun == 1)
    await asyncio.sleep(1.0)  # a second try would come after a tenth of that

    assert begun == 1
    await engine.aclose()


async def test_two_hundred_sessions_are_driven_at_once(server: RestateServer):
    now, open_again = 0, asyncio.Event()

    async def drive(session: str) -> None:
        nonlocal now
        now += 1
        await open_again.wait()
        now -= 1

    engine = RestateEngine(server.ingress, server.admin, listen=HERE, service=next(names))
    await engine.serve(drive)
    await asyncio.gather(*(engine.wake(f"s{number}") for number in range(200)))

    await wait_until(lambda: now == 200)
    open_again.set()
    await wait_until(lambda: now == 0)
    await engine.aclose()


async def test_a_drive_that_takes_long_is_not_driven_a_second_time(tmp_path: Path):
    begun, ended = 0, 0

    async def drive(session: str) -> None:
        nonlocal begun, ended
        begun += 1
        await asyncio.sleep(15)
        ended += 1

    impatient = 'inactivity-timeout = "1s"\nabort-timeout = "1s"'
    async with restate_server(tmp_path, impatient) as server:
        engine = RestateEngine(server.ingress, server.admin, listen=HERE)
        await engine.serve(drive)
        await engine.wake("s")
        await wait_until(lambda: ended == 1)
        await engine.aclose()

    assert begun == 1


async def test_a_finished_drive_leaves_nothing_behind_in_restate(server: RestateServer):
    ended, service = 0, next(names)

    async def drive(session: str) -> None:
        nonlocal ended
        ended += 1

    engine = RestateEngine(server.ingress, server.admin, listen=HERE, service=service)
    await engine.serve(drive)
    await asyncio.gather(*(engine.wake(f"s{number}") for number in range(100)))
    await wait_until(lambda: ended == 100)
    async with asyncio.timeout(10):
        while await invocations(server, service):  # noqa: ASYNC110
            await asyncio.sleep(0.1)

    await engine.wake("later", time.time() + 3600)
    assert await invocations(server, service) == 1  # so the question was the right one
    await engine.aclose()


async def invocations(server: RestateServer, service: str) -> int:
    question = f"select count(*) as many from sys_invocation where target_service_name = '{service}'"
    async with (
        aiohttp.ClientSession(headers={"accept": "application/json"}) as http,
        http.post(f"{server.admin}/query", json={"query": question}) as response,
    ):
        return (await response.json())["rows"][0]["many"]


async def test_serving_that_failed_can_be_tried_again_on_the_same_port(tmp_path: Path):
    driven = asyncio.Event()

    async def drive(session: str) -> None:
        driven.set()

    async with restate_server(tmp_path) as server:
        engine = RestateEngine(server.ingress, server.admin, listen=("127.0.0.1", free_port()))
        server.kill9()
        with pytest.raises(EngineUnavailable, match="did not accept the worker"):
            await engine.serve(drive)
        await server.start()
        await engine.serve(drive)
        await engine.wake("s")
        await asyncio.wait_for(driven.wait(), 30)
        await engine.aclose()


async def test_a_worker_leaves_the_logging_of_the_program_alone(server: RestateServer):
    class Kept(logging.Handler):
        is_closed = False

        def close(self) -> None:
            self.is_closed = True
            super().close()

    handler = Kept()
    engine = RestateEngine(server.ingress, server.admin, listen=HERE, service=next(names))
    await engine.serve(lambda session: asyncio.sleep(0))
    await engine.aclose()

    assert not handler.is_closed


async def test_who_waits_for_a_wake_when_the_engine_closes_is_told_so():
    with socket.create_server(HERE) as deaf:  # it takes connections, and never answers
        engine = RestateEngine(f"http://127.0.0.1:{deaf.getsockname()[1]}", listen=None)
        waking = [asyncio.ensure_future(engine.wake("s", at)) for at in (None, None, time.time() + 60)]
        await asyncio.sleep(0.1)
        await engine.aclose()
        refused = await asyncio.gather(*waking, return_exceptions=True)

    assert [type(error) for error in refused] == [EngineUnavailable] * 3


async def test_health_says_what_answers(server: RestateServer):
    engine = RestateEngine(server.ingress, server.admin, listen=HERE, service=next(names))
    before = await engine.health()
    await engine.serve(lambda session: asyncio.sleep(0))
    after = await engine.health()
    await engine.aclose()
    nowhere = f"http://127.0.0.1:{free_port()}"
    lost = RestateEngine(nowhere, nowhere, listen=None)

    assert (before.ingress, before.admin, before.deployment) == (True, True, "")
    assert after.deployment.startswith("http://127.0.0.1:")
    assert await lost.health() == RestateHealth(ingress=False, admin=False, deployment="")
    await lost.aclose()


async def test_a_wake_that_nobody_takes_says_what_to_do(server: RestateServer):
    nowhere = f"http://127.0.0.1:{free_port()}"
    alone = RestateEngine(nowhere, nowhere, listen=None)
    early = RestateEngine(server.ingress, server.admin, listen=None, service="nobody")

    refused = await asyncio.gather(alone.wake("s"), early.wake("s"), return_exceptions=True)

    assert [type(error) for error in refused] == [EngineUnavailable, EngineUnavailable]
    assert "check that the server runs" in str(refused[0])
    assert "start a worker" in str(refused[1])
    await alone.aclose()
    await early.aclose()


async def test_when_restate_dies_its_drives_are_let_go_and_every_wake_is_kept(tmp_path: Path):
    begun, ended, cancelled = Counter[str](), Counter[str](), Counter[str]()
    hold = asyncio.Event()

    async def drive(session: str) -> None:
        begun[session] += 1
        try:
            await hold.wait()
        except asyncio.CancelledError:
            cancelled[session] += 1
            raise
        ended[session] += 1

    async with restate_server(tmp_path) as server:
        engine = RestateEngine(server.ingress, server.admin, listen=HERE)
        await engine.serve(drive)
        due = time.time() + 4
        for number in range(20):
            await engine.wake(f"held{number}")
            await engine.wake(f"later{number}", due)
        await wait_until(lambda: len(begun) == 20)
        await engine.wake("held0")

        server.kill9()
        await wait_until(lambda: cancelled.total() == 20)
        waking = asyncio.gather(*(engine.wake(f"during{number}") for number in range(5)))
        await server.start()
        await waking
        hold.set()
        wanted = [f"{kind}{number}" for kind in ("held", "later") for number in range(20)]
        await wait_until(lambda: all(ended[session] for session in wanted) and ended["held0"] == 2, 60)

        assert all(ended[f"during{number}"] for number in range(5))
        assert ended["held1"] == 1
        await engine.aclose()


# Many processes -------------------------------------------------------------------------------------------------------


class Note(Struct, frozen=True):
    what: str
    session: str
    pid: int
    at: float


class Workers:
    """Worker processes that share one socket, and what they noted down."""

    def __init__(self, server: RestateServer, directory: Path, seconds: float) -> None:
        self.server, self.directory, self.seconds = server, directory, seconds
        self.sock: socket.socket = open_worker_socket(*HERE)
        self.processes: list[subprocess.Popen[bytes]] = []

    async def start(self) -> int:
        fd, script = self.sock.fileno(), Path(__file__).with_name("restate_worker.py")
        arguments = [self.server.ingress, self.server.admin, str(fd), str(self.directory), str(self.seconds)]
        command = [sys.executable, str(script), *arguments]
        process = subprocess.Popen(command, pass_fds=[fd], stdin=subprocess.PIPE)  # noqa: ASYNC220
        self.processes.append(process)
        await wait_until(lambda: any(note.pid == process.pid for note in self.notes("serving")))
        return process.pid

    def notes(self, kind: str, session: str = "") -> list[Note]:
        path = self.directory / "notes"
        lines = path.read_text().splitlines() if path.exists() else []
        notes = [Note(line[0], line[1], int(line[2]), float(line[3])) for line in map(str.split, lines)]
        return [note for note in notes if note.what == kind and session in ("", note.session)]

    def close(self) -> None:
        self.sock.close()
        for process in self.processes:
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()


@asynccontextmanager
async def two_workers(directory: Path, seconds: float) -> AsyncGenerator[tuple[Workers, RestateEngine]]:
    async with restate_server(directory) as server:
        workers = Workers(server, directory, seconds)
        waker = RestateEngine(server.ingress, server.admin, listen=None)
        try:
            await workers.start()
            await workers.start()
            yield workers, waker
        finally:
            await waker.aclose()
            workers.close()


async def test_a_session_is_driven_by_one_of_two_processes_at_a_time(tmp_path: Path):
    async with two_workers(tmp_path, 0.3) as (workers, waker):
        server = workers.server
        other = RestateEngine(server.ingress, server.admin, listen=None)  # its wakes are not coalesced with those
        # Many at once: a connection carries sixteen, and whoever is quick may take the first few.
        sessions = [f"long{number}" for number in range(200)]
        for _ in range(2):
            await asyncio.gather(*(engine.wake(session) for session in sessions for engine in (waker, other)))
        await wait_until(lambda: len(workers.notes("end")) == 800, 60)
        await other.aclose()

        assert len({note.pid for note in workers.notes("end")}) == 2
        for session in sessions:
            begun, ended = workers.notes("begin", session), workers.notes("end", session)
            assert all(end.at <= begin.at for end, begin in zip(ended, begun[1:], strict=False))


async def test_when_a_worker_is_killed_another_one_drives_on(tmp_path: Path):
    async with two_workers(tmp_path, 1.0) as (workers, waker):
        for number in range(3):
            session = f"long{number}"
            await waker.wake(session)
            await wait_until(lambda session=session: bool(workers.notes("begin", session)))
            os.kill(workers.notes("begin", session)[0].pid, signal.SIGKILL)
            await wait_until(lambda session=session: bool(workers.notes("end", session)))
            first, second = workers.notes("begin", session)
            assert first.pid != second.pid
            await workers.start()


async def test_a_worker_that_is_told_to_stop_hands_its_drive_over(tmp_path: Path):
    async with two_workers(tmp_path, 2.0) as (workers, waker):
        await waker.wake("long")
        await wait_until(lambda: bool(workers.notes("begin", "long")))
        first = workers.notes("begin", "long")[0].pid
        os.kill(first, signal.SIGTERM)
        await wait_until(lambda: bool(workers.notes("end", "long")))

        assert [note.pid for note in workers.notes("closed")] == [first]
        assert len({note.pid for note in workers.notes("begin", "long")}) == 2


async def test_a_worker_that_has_stopped_is_left_by_what_it_drove_and_by_what_comes(tmp_path: Path):
    async with two_workers(tmp_path, 1.0) as (workers, waker):
        await waker.wake("long")
        await wait_until(lambda: bool(workers.notes("begin", "long")))
        stopped = workers.notes("begin", "long")[0].pid
        os.kill(stopped, signal.SIGSTOP)
        comes = [f"quick{number}" for number in range(50)]
        await asyncio.gather(*(waker.wake(session) for session in comes))
        await wait_until(lambda: all(workers.notes("end", session) for session in ("long", *comes)))
        ended = {note.pid for note in workers.notes("end")}
        os.kill(stopped, signal.SIGCONT)

        assert stopped not in ended


async def test_of_reminders_one_stands_in_line(server: RestateServer) -> None:
    drives: list[str] = []
    hold = asyncio.Event()

    async def drive(session: str) -> None:
        drives.append(session)
        await hold.wait()

    engine = RestateEngine(server.ingress, server.admin, listen=HERE, service=next(names))
    await engine.serve(drive)
    await engine.wake("s")
    await wait_until(lambda: bool(drives))

    for _ in range(20):
        await engine.wake("s", is_reminder=True)
    hold.set()
    await wait_until(lambda: len(drives) == 2)
    await asyncio.sleep(0.5)
    assert drives == ["s", "s"]

    await engine.wake("s", is_reminder=True)  # the line is empty again, and takes another one
    await wait_until(lambda: len(drives) == 3)
    await engine.aclose()
