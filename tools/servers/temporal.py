"""Private Temporal server, on free ports of this machine: `async with temporal_server(tmp_path) as temporal`.

It is Temporal's development server, which stores everything in a SQLite file. `scripts/temporal` installs the binary.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from everturn.errors import ConfigError
from tools.servers.process import Daemon, ServerProcess, free_port

VERSION = "1.9.1"  # as in scripts/temporal
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)  # HTTP/2, and empty settings


def temporal_binary() -> Path:
    """The path where `scripts/temporal` put the server.

    Raises:
        ConfigError: the script was not run.
    """
    home = os.environ.get("EVERTURN_TEMPORAL_DIR") or Path(
        os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "everturn-temporal"
    )
    path = Path(home, VERSION, "temporal")
    if not path.exists():
        raise ConfigError("there is no Temporal server on this machine; run scripts/temporal")
    return path


class TemporalServer(ServerProcess):
    """A Temporal server that only this test uses. After a kill it continues with what it had stored."""

    def __init__(self, daemon: Daemon, port: int) -> None:
        super().__init__(daemon)
        self.port, self.url = port, f"temporal://127.0.0.1:{port}"

    def size(self) -> int:
        """The size of its files in bytes."""
        return sum(path.stat().st_size for path in self._daemon.home.rglob("*") if path.is_file())

    def _is_ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 2.0) as connection:
                connection.sendall(PREFACE)
                return connection.recv(9)[3:4] == b"\x04"
        except OSError:
            return False


@asynccontextmanager
async def temporal_server(directory: Path, *settings: str) -> AsyncGenerator[TemporalServer]:
    """A Temporal server with its files and its log below a directory, removed when the context ends.

    `settings` are dynamic configuration values, such as `limit.historySize.suggestContinueAsNew=1`.
    """
    program = temporal_binary()
    home = Path(tempfile.mkdtemp(prefix="temporal-", dir=directory))
    port = free_port()
    words = ["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    words += ["--db-filename", str(home / "temporal.db")]
    for setting in settings:
        words += ["--dynamic-config-value", setting]
    daemon = Daemon("temporal", [str(program), *words], home, directory / f"{home.name}.log")
    try:
        server = TemporalServer(daemon, port)
        await server.start()
        yield server
    finally:
        await daemon.close()
