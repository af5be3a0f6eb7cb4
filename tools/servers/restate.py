"""Private Restate server, on free ports of this machine: `async with restate_server(tmp_path) as restate`; and several nodes
that form a cluster: `async with restate_cluster(tmp_path) as nodes`.

`scripts/restate` downloads the binary.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from everturn.errors import ConfigError
from tools.servers.process import Daemon, ServerProcess, free_port

VERSION = "1.7.12"  # as in scripts/restate

# The settings that we recommend for production are here too; the ports and the memory are for tests.
CONFIG = """
node-name = "{name}"
cluster-name = "everturn"
auto-provision = {provisions}
default-replication = {copies}
disable-telemetry = true
listen-mode = "tcp"
bind-ip = "127.0.0.1"
bind-port = {node}
advertised-address = "http://127.0.0.1:{node}"
base-dir = "{dir}"
default-num-partitions = 4
rocksdb-total-memory-size = "256MB"
log-filter = "warn"
log-disable-ansi-codes = true

[ingress]
bind-ip = "127.0.0.1"
bind-port = {ingress}

[admin]
bind-ip = "127.0.0.1"
bind-port = {admin}
disable-web-ui = true

[worker.invoker]
# A worker that has stopped without closing its connections is left after at most six seconds.
http2-keep-alive-interval = "3s"
http2-keep-alive-timeout = "3s"
connect-timeout = "3s"
# Few, so that it opens many connections: what the workers of a port share are connections.
http2-streams-per-connection-limit = 16
{invoker}

[metadata-client]
addresses = [{addresses}]
"""


def restate_binary() -> Path:
    """The path where `scripts/restate` put the server.

    Raises:
        ConfigError: the script was not run.
    """
    home = os.environ.get("EVERTURN_RESTATE_DIR") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "everturn-restate"
    )
    path = Path(home, VERSION, "restate-server")
    if not path.exists():
        raise ConfigError("there is no Restate server on this machine; run scripts/restate")
    return path


class RestateServer(ServerProcess):
    """A Restate server that only this test uses. After a kill it continues with what it had stored."""

    def __init__(self, daemon: Daemon, ingress: str, admin: str) -> None:
        super().__init__(daemon)
        self.ingress, self.admin = ingress, admin

    def size(self) -> int:
        """The size of its files in bytes."""
        return sum(path.stat().st_size for path in self._daemon.home.rglob("*") if path.is_file())

    def _is_ready(self) -> bool:
        try:
            for url in (f"{self.admin}/health", f"{self.ingress}/restate/health"):
                with urllib.request.urlopen(url, timeout=2.0) as response:
                    if response.status != 200:
                        return False
        except (urllib.error.URLError, OSError):
            return False
        return True


@asynccontextmanager
async def restate_server(directory: Path, invoker: str = "") -> AsyncGenerator[RestateServer]:
    """A Restate server with its files and its log below a directory, removed when the context ends.

    `invoker` are further lines for that section of its configuration.
    """
    async with _nodes(directory, 1, 1, invoker) as nodes:
        await nodes[0].start()
        yield nodes[0]


@asynccontextmanager
async def restate_cluster(directory: Path, nodes: int = 3) -> AsyncGenerator[list[RestateServer]]:
    """Nodes of one Restate cluster, which keeps everything on two of them."""
    async with _nodes(directory, nodes, 2) as servers:
        await asyncio.gather(*(server.start() for server in servers))
        yield servers


@asynccontextmanager
async def _nodes(directory: Path, count: int, copies: int, invoker: str = "") -> AsyncGenerator[list[RestateServer]]:
    program = restate_binary()
    fabric = [free_port() for _ in range(count)]
    addresses = ", ".join(f'"http://127.0.0.1:{port}"' for port in fabric)
    async with AsyncExitStack() as stack:
        servers: list[RestateServer] = []
        for number, node in enumerate(fabric):
            home = Path(tempfile.mkdtemp(prefix="restate-", dir=directory))
            ingress, admin = free_port(), free_port()
            config = CONFIG.format(
                name=f"node{number}",
                provisions="false" if number else "true",
                copies=copies,
                node=node,
                ingress=ingress,
                admin=admin,
                dir=home / "data",
                invoker=invoker,
                addresses=addresses,
            )
            (home / "restate.toml").write_text(config, encoding="utf-8")
            command = [str(program), "--no-logo", "-c", str(home / "restate.toml")]
            daemon = Daemon("restate-server", command, home, directory / f"{home.name}.log")
            stack.push_async_callback(daemon.close)
            servers.append(RestateServer(daemon, f"http://127.0.0.1:{ingress}", f"http://127.0.0.1:{admin}"))
        yield servers
