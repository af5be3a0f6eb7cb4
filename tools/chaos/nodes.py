"""Installation under test: its own PostgreSQL, Restate or Temporal, and NATS (or PostgreSQL alone), API nodes and workers as programs.

Everything is started as `deploy/compose.yaml` starts it, `everturn serve --cluster` and `everturn worker`, but on the
loopback of this machine and on free ports.
"""

from __future__ import annotations

import asyncio
import http.client
import re
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from everturn.cluster import Cluster
from tools.chaos.cell import START, ClusterServers, EngineName, WorkerProcess, start_servers
from tools.environment import child_environment
from tools.servers.process import free_port, process_family

SERVES = re.compile(rb"serves at (http://\S+)")
DRIVES = b"drives sessions"
CONFIG = """\
[server]
host = "127.0.0.1"
port = 0
token_file = "{home}/token"
drain = 5.0

[cluster]
database = "{database}"
{servers}
[telemetry]
logs = "json"

{more}
"""


class ApiNode(WorkerProcess):
    """An API node, seen from outside; it keeps its address when it is restarted."""

    address = ""

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self.address.rpartition(":")[2])

    def status(self, path: str) -> int:
        """The status of a request that needs no key; 0 without an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()


class Installation:
    """The parts, their addresses, and how to start another one."""

    def __init__(
        self,
        home: Path,
        servers: ClusterServers,
        more: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.home = home
        self.postgres, self.nats, self.restate, self.temporal = servers
        self.environment = dict(environment or {})  # of every program of it
        self.cluster = servers.addresses()
        self.config = home / "everturn.toml"
        self.nodes: list[ApiNode] = []
        self.parents: list[WorkerProcess] = []
        self._made = 0
        self.config.write_text(
            CONFIG.format(
                home=home,
                database=self.cluster.database,
                servers=_servers(self.cluster),
                more=more,
            ),
            encoding="utf-8",
        )

    @property
    def token(self) -> str:
        """The token of the local operator, valid at every node. It exists once a node has started."""
        return (self.home / "token").read_text(encoding="utf-8").strip()

    async def start_node(self, port: int = 0, environment: Mapping[str, str] | None = None) -> ApiNode:
        """Start an API node; it accepts requests when this returns."""
        words = ("serve", "--cluster", "--config", str(self.config), "--port", str(port), "--no-reload")
        process, log = await self._start("api", words, environment)
        node = ApiNode(log.stem, process, log)
        self.nodes.append(node)
        assert process.stdout is not None
        async with self._starting(node):
            while not (found := SERVES.search(line := await process.stdout.readline())):
                if not line:
                    raise RuntimeError(f"{node.name} did not start")
            node.address = found[1].decode()
            while await asyncio.to_thread(node.status, "/readyz") != 200:  # noqa: ASYNC110 - it is another process
                await asyncio.sleep(0.05)
        return node

    async def restart_node(self, node: ApiNode, environment: Mapping[str, str] | None = None) -> ApiNode:
        """Ask a node to shut down, and start another one in its place, at the same address."""
        await node.stop()
        self.nodes.remove(node)
        return await self.start_node(node.port, environment)

    async def start_workers(self, count: int, environment: Mapping[str, str] | None = None) -> WorkerProcess:
        """Start a parent that keeps so many workers running, at an address of their own; they are ready when this
        returns.
        """
        listen = f"127.0.0.1:{free_port()}"
        words = ("worker", "--config", str(self.config), "--workers", str(count), "--listen", listen)
        process, log = await self._start("workers", words, environment)
        parent = WorkerProcess(log.stem, process, log)
        self.parents.append(parent)
        async with self._starting(parent):
            while log.read_bytes().count(DRIVES) < count:
                if not parent.is_running:
                    raise RuntimeError(f"{parent.name} did not start")
                await asyncio.sleep(0.05)
        return parent

    def worker_pids(self) -> list[int]:
        """The worker processes: each can be killed, and its parent starts another."""
        return [pid for parent in self.parents if parent.is_running for pid in self.workers_of(parent)]

    def workers_of(self, parent: WorkerProcess) -> list[int]:
        """The workers of one parent; their own child processes do not count."""
        return [pid for pid in process_family(parent.process.pid).pids[1:] if _parent_of(pid) == parent.process.pid]

    async def _start(
        self, kind: str, words: tuple[str, ...], environment: Mapping[str, str] | None
    ) -> tuple[asyncio.subprocess.Process, Path]:
        self._made += 1
        log = self.home / f"{kind}{self._made}.log"
        own = {"XDG_DATA_HOME": str(self.home), **self.environment, **(environment or {})}
        with log.open("wb") as stderr:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "everturn", *words),
                stdout=asyncio.subprocess.PIPE if kind == "api" else stderr,
                stderr=stderr,
                env={**child_environment(), **own},
                start_new_session=True,  # Ctrl-C is for the process that started all this; it stops them
            )
        return process, log

    @asynccontextmanager
    async def _starting(self, process: WorkerProcess) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(START):
                yield
        except (TimeoutError, RuntimeError):
            await process.kill9()
            raise RuntimeError(
                f"{process.name} did not start: {process.stderr.read_text(encoding='utf-8')[-2000:]}"
            ) from None

    async def aclose(self) -> None:
        """Ask all to shut down: the nodes first, so that none requests what no worker drives."""
        await asyncio.gather(*(node.stop() for node in self.nodes))
        await asyncio.gather(*(parent.stop() for parent in self.parents))


def _servers(cluster: Cluster) -> str:
    names = ("restate", "admin", "temporal", "nats")
    return "".join(f'{name} = "{value}"\n' for name in names if (value := getattr(cluster, name)))


def _parent_of(pid: int) -> int:
    """The parent of a process; 0 when it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


@asynccontextmanager
async def installation(
    nodes: int = 0,
    workers: int = 0,
    more: str = "",
    home: Path | None = None,
    environment: Mapping[str, str] | None = None,
    engine: EngineName = "restate",
) -> AsyncGenerator[Installation]:
    """A cluster of its own; `more` is further configuration, in TOML. Everything of it ends with the context."""
    async with AsyncExitStack() as stack:
        if home is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="everturn-cell-")))
        cluster = Installation(home, await start_servers(stack, home, engine), more, environment)
        stack.push_async_callback(cluster.aclose)
        if workers:
            await cluster.start_workers(workers)
        await asyncio.gather(*(cluster.start_node() for _ in range(nodes)))
        yield cluster
