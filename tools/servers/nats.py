"""Private NATS server with JetStream: `async with private_nats(tmp_path) as nats`."""

from __future__ import annotations

import shutil
import signal
import socket
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from everturn.errors import ConfigError
from tools.servers.process import Daemon, free_port


class Nats:
    """A NATS server that only this test uses."""

    def __init__(self, daemon: Daemon, port: int) -> None:
        self._daemon, self.port = daemon, port
        self.url = f"nats://127.0.0.1:{port}"

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._daemon.pid

    async def start(self) -> None:
        """Start it, and return once it accepts connections."""
        await self._daemon.start(self._greets)

    async def stop(self) -> None:
        """Shut it down."""
        await self._daemon.stop(signal.SIGTERM)

    async def restart(self) -> None:
        """Shut it down and start it again, on the same port and with the same files."""
        await self.stop()
        await self.start()

    def kill9(self) -> None:
        """Kill it; `start` starts it again."""
        self._daemon.kill9()

    def cpu(self) -> float:
        """Processor seconds it has used."""
        return self._daemon.cpu()

    def _greets(self) -> bool:
        """Whether it sends `INFO` to a client; it listens only once JetStream is up."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as connection:
                return connection.recv(4) == b"INFO"
        except OSError:
            return False


def nats_binary() -> str:
    """The path of the server program.

    Raises:
        ConfigError: it is not installed; the message says what to install.
    """
    path = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin:/usr/local/bin:/usr/local/sbin")
    if path is None:
        raise ConfigError("there is no nats-server on this machine; on Debian: apt install nats-server")
    return path


@asynccontextmanager
async def private_nats(directory: Path) -> AsyncGenerator[Nats]:
    """A NATS server with its files and its log below a directory, removed when the context ends."""
    binary = nats_binary()
    home = Path(tempfile.mkdtemp(prefix="nats-", dir=directory))
    port = free_port()
    command = [binary, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(home)]
    daemon = Daemon("nats-server", command, home, directory / f"{home.name}.log")
    try:
        nats = Nats(daemon, port)
        await nats.start()
        yield nats
    finally:
        await daemon.close()
