"""Real servers on several loopback addresses, at one port, that count who comes; and a record of every connect."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence

HOSTS = ("127.0.0.1", "127.0.0.2", "::1")

Answer = Callable[[str, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_records: list[list[tuple[object, ...]]] = []


def _on_audit(event: str, arguments: tuple[object, ...]) -> None:
    if _records and event in ("socket.connect", "socket.getaddrinfo"):
        for record in _records:
            record.append((event, *(arguments[1:] if event == "socket.connect" else arguments)))


sys.addaudithook(_on_audit)


@contextlib.contextmanager
def recorded() -> Generator[list[tuple[object, ...]]]:
    """Every connect and lookup of this process, as the interpreter itself reports them."""
    record: list[tuple[object, ...]] = []
    _records.append(record)
    try:
        yield record
    finally:
        _records.remove(record)


def reply(body: bytes = b"hello", head: str = "200 OK", **headers: str) -> bytes:
    rows = {"Content_Type": "text/plain", "Content_Length": str(len(body)), **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in rows.items() if value]
    return "\r\n".join([f"HTTP/1.1 {head}", *lines, "", ""]).encode() + body


def moved(to: str, status: str = "302 Found") -> bytes:
    return reply(b"", status, Location=to)


class Listeners:
    """Servers at one port of several addresses. `answers` maps a path to bytes, or to a coroutine."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.came: Counter[str] = Counter()  # connections, by the address they came in at
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.answers: dict[str, bytes | Answer] = {}

    @property
    def total(self) -> int:
        return sum(self.came.values())

    def server(self, host: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.came[host] += 1
            with contextlib.suppress(
                ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.LimitOverrunError
            ):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                path = head[0].split(" ")[1]
                self.asked.append((host, path, {k.lower(): v for k, _, v in (row.partition(": ") for row in head[1:])}))
                answer = self.answers.get(path.partition("?")[0], reply(f"here is {host}".encode()))
                if isinstance(answer, bytes):
                    writer.write(answer)
                    await writer.drain()
                else:
                    await answer(host, reader, writer)
                writer.close()

        return serve


def _sockets(hosts: Sequence[str]) -> list[socket.socket]:
    """One port that is free at all of them."""
    for _ in range(50):
        sockets: list[socket.socket] = []
        port = 0
        try:
            for host in hosts:
                sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
                sockets.append(sock)
                sock.bind((host, port))
                port = sock.getsockname()[1]
            return sockets
        except OSError:
            for sock in sockets:
                sock.close()
    raise AssertionError("no port is free at all addresses")


@contextlib.asynccontextmanager
async def listening(tls: ssl.SSLContext | None = None) -> AsyncGenerator[Listeners]:
    sockets = _sockets(HOSTS)
    listeners = Listeners(sockets[0].getsockname()[1])
    tasks: set[asyncio.Task[None]] = set()

    def start(host: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await listeners.server(host)(reader, writer)
            finally:
                if not writer.transport.is_closing():
                    writer.transport.abort()

        return lambda reader, writer: tasks.add(asyncio.ensure_future(serve(reader, writer)))

    servers = [
        await asyncio.start_server(start(host), sock=socket, ssl=tls)
        for host, socket in zip(HOSTS, sockets, strict=True)
    ]
    try:
        yield listeners
    finally:
        for server in servers:
            server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports close in the next round


class Names:
    """A resolver that answers from a script: each name has a list of answers, the last of which stays."""

    def __init__(self, **names: Sequence[Sequence[str]]) -> None:
        self.script = {name.replace("_", "."): list(answers) for name, answers in names.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        answers = self.script.get(host)
        if not answers:
            raise OSError(f"no {host}")
        return answers.pop(0) if len(answers) > 1 else answers[0]
