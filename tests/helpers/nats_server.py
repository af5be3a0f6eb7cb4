"""A NATS server of one's own, to be killed and started again; and what its monitoring says."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BINARY = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin:/usr/local/bin:/usr/local/sbin")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class NatsServer:
    """A server on this machine only, on ports nobody uses."""

    def __init__(self, folder: Path, *, jetstream: bool = True, options: Sequence[str] = ()) -> None:
        self.port, self.monitoring = free_port(), free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        assert BINARY is not None
        self._command = [BINARY, "-a", "127.0.0.1", "-p", str(self.port), "-m", str(self.monitoring)]
        self._command += [*(["-js", "-sd", str(folder)] if jetstream else []), *options]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 10
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise RuntimeError("nats-server did not start")

    def stop(self, how: int = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(10)
            self._process = None

    async def ask(self, path: str) -> Any:
        """What the monitoring page says."""

        def get() -> Any:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.monitoring}/{path}", timeout=5) as page:
                return json.load(page)

        return await asyncio.to_thread(get)

    async def subscriptions(self, prefix: str) -> list[str]:
        """The subjects that clients have subscribed to and begin like this."""
        page = await self.ask("connz?subs=1&limit=1000")
        return [s for c in page["connections"] for s in c.get("subscriptions_list", ()) if s.startswith(prefix)]


def make_nats_cluster(folder: Path, count: int = 3) -> list[NatsServer]:
    """Servers that form one NATS cluster; none is started."""
    routes = [f"nats://127.0.0.1:{free_port()}" for _ in range(count)]
    return [
        NatsServer(
            folder / f"node{number}",
            options=(
                "--name",
                f"node{number}",
                "--cluster_name",
                "tests",
                "--cluster",
                route,
                "--routes",
                ",".join(routes),
            ),
        )
        for number, route in enumerate(routes)
    ]
