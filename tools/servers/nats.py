"""Private NATS server with JetStream: `async with private_nats(tmp_path) as nats`."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from everturn.errors import ConfigError
from tools.servers.process import Daemon, ServerProcess, free_port


class Nats(ServerProcess):
    """A NATS server that only this test uses."""

    def __init__(self, daemon: Daemon, port: int) -> None:
        super().__init__(daemon)
        self.port = port
        self.url = f"nats://127.0.0.1:{port}"

    def _is_ready(self) -> bool:
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
