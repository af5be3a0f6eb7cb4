"""A server in a process of its own, which can be killed and started again; and a proxy that loses answers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from everturn.client import Server

PLAIN = {key: value for key, value in os.environ.items() if not key.startswith("EVERTURN_") and "API_KEY" not in key}


class Node:
    """`everturn serve` with a home of its own; after `kill9` it is started again where it was, or beside that."""

    def __init__(self, home: Path, pace: float = 0.0, tools: str = "demo") -> None:
        self.home, self.address = home, ""
        home.mkdir(exist_ok=True)
        self._config = home / "own.toml"
        self._config.write_text("", encoding="utf-8")
        self._env = PLAIN | {"HOME": str(home), "PYTHONUTF8": "1", "PACE": str(pace), "TOOLS": tools}
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            self._env.pop(name, None)
        self._process: subprocess.Popen[str] | None = None

    def start(self, port: int = 0) -> Node:
        words = [
            sys.executable,
            "-m",
            "tests.helpers.slow_model_server",
            "--port",
            str(port),
            "--config",
            str(self._config),
        ]
        log = (self.home / "log").open("a")
        with log:
            self._process = subprocess.Popen(
                words, env=self._env, stdout=subprocess.PIPE, stderr=log, encoding="utf-8", cwd=ROOT
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.kill9()
        assert line.startswith("Everturn serves at "), (line, (self.home / "log").read_text())
        self.address = line.removeprefix("Everturn serves at ").strip()
        return self

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    @property
    def token(self) -> str:
        return (self.home / ".local/share/everturn/operator.token").read_text(encoding="utf-8").strip()

    def kill9(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def client(self, *addresses: str, token: str = "") -> Server:
        return Server([*addresses] or self.address, token or self.token)


ROOT = Path(__file__).resolve().parents[2]


class Losing:
    """Stands before a server. What it is told to lose is done there, and nobody hears of it."""

    def __init__(self) -> None:
        self.address = ""
        self.lost: list[str] = []
        self.passed: list[str] = []
        self._left = 0
        self._what = ""

    def lose(self, prefix: str, times: int = 1) -> None:
        """Lose the answers to the next requests whose first line begins so."""
        self._what, self._left = prefix, times

    def takes(self, line: str) -> bool:
        """Whether the answer to this request is to be lost."""
        if self._left and line.startswith(self._what):
            self._left -= 1
            self.lost.append(line)
            return True
        self.passed.append(line)
        return False


@asynccontextmanager
async def losing(address: str) -> AsyncGenerator[Losing, None]:
    """A proxy before a server; a request per connection, so that what is lost is one answer."""
    to, proxy, tasks = urlsplit(address), Losing(), set[asyncio.Task[None]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream: asyncio.StreamWriter | None = None
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            line = head.split(b"\r\n", 1)[0].decode()
            # The Host has to be the server's own; and `close`, for then the end of an answer is the end of the stream.
            lines = [
                header for header in head.split(b"\r\n") if not header.lower().startswith((b"host:", b"connection:"))
            ]
            lines[1:1] = [f"Host: {to.netloc}".encode(), b"Connection: close"]
            length = next((int(line[15:]) for line in lines if line.lower().startswith(b"content-length:")), 0)
            body = await reader.readexactly(length)
            answers, upstream = await asyncio.open_connection(to.hostname, to.port)
            upstream.write(b"\r\n".join(lines) + body)
            is_lost = proxy.takes(line)
            while data := await answers.read(65_536):
                if not is_lost:
                    writer.write(data)
                    await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            both = [stream for stream in (writer, upstream) if stream is not None]
            for stream in both:  # first, for what follows may be cancelled
                stream.close()
            for stream in both:
                with suppress(OSError):
                    await stream.wait_closed()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(asyncio.CancelledError):
            await serve(reader, writer)
        tasks.discard(task)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    proxy.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
