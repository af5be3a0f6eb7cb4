"""Cluster under test on one machine: its own PostgreSQL and, if they are its engine and bus, Restate or Temporal and
NATS; and workers as processes.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from everturn.app import App
from everturn.cluster import Cluster
from everturn.core.ports import Bus, Engine
from everturn.core.store_ports import Store
from everturn.engine.restate import open_worker_socket, socket_url
from tools.chaos.ledger import EffectLedger, LedgerLine, read_ledger
from tools.chaos.plan import VARIABLE
from tools.chaos.scenario import TOOL_TIME, ScenarioModel
from tools.chaos.worker import ARMED, READY, WorkerConfig
from tools.environment import ROOT, child_environment
from tools.release.archive import UnpackedRelease
from tools.servers.nats import Nats, private_nats
from tools.servers.postgres import PostgresServer, private_postgres
from tools.servers.process import process_family
from tools.servers.restate import RestateServer, restate_server
from tools.servers.temporal import TemporalServer, temporal_server

EngineName = Literal["restate", "postgres", "temporal"]
ENGINES: tuple[EngineName, ...] = ("restate", "postgres", "temporal")
START = 60.0  # seconds a worker has to start; a loaded machine needs many


class WorkerProcess:
    """A worker process, seen from outside."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, stderr: Path) -> None:
        self.name, self.process, self.stderr = name, process, stderr

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process.returncode is None

    def send(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    async def kill9(self) -> None:
        """Kill it, as a power cut would."""
        self.send(signal.SIGKILL)
        await self.process.wait()

    async def stop(self) -> None:
        """Ask it to shut down, and wait until it has."""
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(START):
                await self.process.wait()
        except TimeoutError:
            await self.kill9()

    def cpu(self) -> float:
        """Processor seconds it has used."""
        return process_family(self.process.pid).seconds


class ClusterServers(NamedTuple):
    """The servers of a cluster; None: PostgreSQL does its work."""

    postgres: PostgresServer
    nats: Nats | None = None
    restate: RestateServer | None = None
    temporal: TemporalServer | None = None

    def addresses(self) -> Cluster:
        """Their addresses."""
        return Cluster(
            self.postgres.url,
            restate=self.restate.ingress if self.restate is not None else "",
            admin=self.restate.admin if self.restate is not None else "",
            nats=self.nats.url if self.nats is not None else "",
            temporal=self.temporal.url if self.temporal is not None else "",
        )


class Cell:
    """The parts of a cluster, and their addresses."""

    def __init__(self, home: Path, servers: ClusterServers, sock: socket.socket, database: str = "") -> None:
        self.home, self._sock = home, sock
        self.postgres, self.nats, self.restate, self.temporal = servers
        self.cluster = servers.addresses()
        if database:
            self.cluster = msgspec.structs.replace(self.cluster, database=database)
        self.ledger = EffectLedger(home / "ledger", "client")
        self.workers: list[WorkerProcess] = []
        self._made = 0

    async def start_worker(
        self,
        plan: Mapping[str, object] | None = None,
        pace: float = 0.0,
        pause: float = TOOL_TIME,
        version: int = 0,
        writes: int = 0,
        sabotage: str = "",
        release: UnpackedRelease | None = None,
    ) -> WorkerProcess:
        """Start a worker, of this checkout or of a release; it is ready when this returns."""
        self._made += 1
        name = f"worker{self._made}"
        where = msgspec.structs.replace(
            self.cluster, listen=f"fd:{self._sock.fileno()}", advertise=socket_url(self._sock), writes=writes
        )
        config = WorkerConfig(
            name, where, str(self.home / "ledger"), str(self.home / "plan"), pace, pause, sabotage, version
        )
        paths = release.paths if release is not None else (ROOT,)
        environment = {**child_environment(*paths), VARIABLE: msgspec.json.encode(plan).decode() if plan else ""}
        stderr = self.home / f"{name}.log"
        with stderr.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tools.chaos.worker",
                msgspec.json.encode(config).decode(),
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=environment,
                cwd=self.home if release is not None else None,  # Python would import `tools` from where it is started
                pass_fds=(self._sock.fileno(),),
                start_new_session=True,  # as under a supervisor; Linux shares processors between sessions
            )
        worker = WorkerProcess(name, process, stderr)
        self.workers.append(worker)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(START):
                line = await process.stdout.readline()
        except TimeoutError:
            line = b""
        if line.strip() != READY.encode():
            await worker.kill9()
            raise RuntimeError(f"{name} did not start: {stderr.read_text(encoding='utf-8')[-2000:]}")
        return worker

    async def arm(self, plan: Mapping[str, object] | None) -> None:
        """Give the running workers another fault plan, and wait until they follow it."""
        text = msgspec.json.encode(plan).decode() if plan else ""
        (self.home / "plan").write_text(text, encoding="utf-8")

        async def tell(worker: WorkerProcess) -> None:
            worker.send(signal.SIGUSR1)
            assert worker.process.stdout is not None
            line = await worker.process.stdout.readline()
            assert line.strip() == ARMED.encode() or not worker.is_running, line

        async with asyncio.timeout(START):
            await asyncio.gather(*(tell(worker) for worker in self.workers if worker.is_running))

    async def start_workers(self, count: int, **options: object) -> list[WorkerProcess]:
        """Start several at once."""
        return list(await asyncio.gather(*(self.start_worker(**options) for _ in range(count))))  # pyright: ignore[reportArgumentType]

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[App]:
        """A node that sends commands and reads, and drives nothing."""

        def make(*, store: Store, bus: Bus, engine: Engine) -> App:
            return App(ScenarioModel(), store=store, bus=bus, engine=engine)

        async with self.cluster.join(make) as app:
            yield app

    def lines(self) -> list[LedgerLine]:
        """The lines of the ledger."""
        return read_ledger(self.home / "ledger").lines

    def cpu(self) -> dict[str, float]:
        """Processor seconds used so far, by part."""
        workers = sum(worker.cpu() for worker in self.workers if worker.is_running)
        return {
            "workers": workers,
            "engine": sum(server.cpu() for server in (self.restate, self.temporal) if server is not None),
            "database": self.postgres.cpu(),
            "bus": self.nats.cpu() if self.nats is not None else 0.0,
        }

    async def aclose(self) -> None:
        """Stop the workers."""
        await asyncio.gather(*(worker.kill9() for worker in self.workers if worker.is_running))


async def start_servers(stack: AsyncExitStack, home: Path, engine: EngineName, **settings: str) -> ClusterServers:
    """Start the servers that a cluster with this engine needs."""
    enter = stack.enter_async_context
    if engine == "postgres":
        return ClusterServers(await enter(private_postgres(home, **settings)))
    if engine == "temporal":
        postgres, nats, temporal = await asyncio.gather(
            enter(private_postgres(home, **settings)), enter(private_nats(home)), enter(temporal_server(home))
        )
        return ClusterServers(postgres, nats, temporal=temporal)
    postgres, nats, restate = await asyncio.gather(
        enter(private_postgres(home, **settings)), enter(private_nats(home)), enter(restate_server(home))
    )
    return ClusterServers(postgres, nats, restate)


@asynccontextmanager
async def cell(home: Path | None = None, engine: EngineName = "restate", **settings: str) -> AsyncGenerator[Cell]:
    """A cluster without workers yet; everything of it ends with the context."""
    async with AsyncExitStack() as stack:
        if home is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="everturn-cell-")))
        servers = await start_servers(stack, home, engine, **settings)
        sock = stack.enter_context(open_worker_socket("127.0.0.1", 0))
        cluster = Cell(home, servers, sock)
        stack.push_async_callback(cluster.aclose)
        yield cluster
