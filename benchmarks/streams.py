"""What streams cost: idle ones, many readers of one turn, and many who come back at once.

    python benchmarks/streams.py [--short] [--http h11|httptools] [--loop uvloop|asyncio] [--json FILE]

The server is a process of its own with nothing in it but `Streams`, a runtime in memory and uvicorn; the readers are
sockets of another. CPU and memory are those of the server's process, as the system counts them. Beside the second case
runs a bare loop in the same server: one future and one write per reader and message, which is as little as a stream can
do. Both share a machine with the readers: trust the figures beside each other, not the seconds.

This is a report: it ends well whatever it finds. `tests/server/test_streams_benchmark.py` holds loose bounds.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import resource
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

SESSION = "benchmark"
READ = 65_536
WORD = "a few words of text, "
MARK = b"data: "


class Plan(NamedTuple):
    """How much to measure."""

    idle: int
    rest: float  # seconds for which nothing happens
    readers: int
    deltas: int
    storm: int


FULL = Plan(idle=10_000, rest=20.0, readers=1_000, deltas=100, storm=1_000)
SHORT = Plan(idle=300, rest=2.0, readers=100, deltas=30, storm=100)


# The server ------------------------------------------------------------------------------------------------------------


class Paced:
    """A model that says a word whenever it is told to."""

    name = "paced"

    def __init__(self) -> None:
        self.words: asyncio.Queue[str] = asyncio.Queue()

    async def stream(self, request: object) -> AsyncIterator[Sequence[Any]]:
        """Say what comes; "" ends it."""
        from everturn.core.chunks import FinishChunk, TextChunk

        while word := await self.words.get():
            yield [TextChunk(word)]
        yield [FinishChunk("stop")]


class Bare:
    """As little as a stream can do."""

    def __init__(self) -> None:
        self.waiters: list[asyncio.Future[bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Write what is said, until the other side has gone."""
        loop = asyncio.get_running_loop()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b"data: hello\n\n", "more_body": True})

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            writer.cancel()

        async def write() -> None:
            while True:
                waiter: asyncio.Future[bytes] = loop.create_future()
                self.waiters.append(waiter)
                await send({"type": "http.response.body", "body": await waiter, "more_body": True})

        writer = loop.create_task(write())
        watcher = loop.create_task(watch())
        await asyncio.wait({writer})
        watcher.cancel()

    def say(self, data: bytes) -> None:
        """Say something to all."""
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(data)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def serve(http: str, merge: float) -> None:
    """Serve until the other side of the standard input is closed."""
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import JSONResponse

    from everturn import Chat
    from everturn.access.access import Access
    from everturn.access.context.agents import Agents, AgentSpec, TenantLimits
    from everturn.access.context.server_context import ServerContext
    from everturn.app import App
    from everturn.config.server_options import ServerOptions
    from everturn.core.events import LeafSelected
    from everturn.core.options import TurnOptions
    from everturn.core.tenants.accounts import Principal
    from everturn.server.streams.open import StreamEndpoints
    from everturn.stores.accounts import MemoryAccounts

    model, bare = Paced(), Bare()
    runtime = App(model)
    agents = Agents([AgentSpec("only", TurnOptions())], default_limits=TenantLimits(streams=0))
    house = ServerContext(runtime, MemoryAccounts(), agents)

    async def standing(principals: object) -> set[str]:
        return set()

    streams = StreamEndpoints(house, ServerOptions(merge=merge), standing)
    access = Access(house, Principal("local", "ada", "owner", "key"))
    chat = Chat("", app=runtime, session=SESSION)

    async def control(query: dict[str, list[str]]) -> dict[str, Any]:
        for number in range(int(query.get("sessions", ["0"])[0])):
            await runtime.store.restore(f"idle{number}", "local", [LeafSelected(message=None)])
        if "send" in query:
            await chat.send("go")
        if "say" in query:
            model.words.put_nowait(query["say"][0])
        if "end" in query:
            model.words.put_nowait("")
        if "bare" in query:
            bare.say(b"id: 12:10=345\n" + MARK + query["bare"][0].encode() + b"\n\n")
        gc.collect() if "collect" in query else None
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "cpu": used.ru_utime + used.ru_stime,
            "rss": _resident(),
            "open": streams.open,
            "bare": len(bare.waiters),
        }

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/control":
            await JSONResponse(await control(parse_qs(scope["query_string"].decode())))(scope, receive, send)
        elif scope["path"] == "/bare":
            await bare(scope, receive, send)
        else:
            after = Request(scope).headers.get("last-event-id", "")
            response = await streams.session(access, scope["path"][1:], after)
            await response(scope, receive, send)

    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    config = uvicorn.Config(app, http=http, lifespan="off", log_config=None, access_log=False, ws="none", backlog=4096)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    await streams.start()
    print(listening.getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await streams.aclose()
    server.should_exit = server.force_exit = True
    await serving
    await runtime.aclose()


# The readers -----------------------------------------------------------------------------------------------------------


class Reader:
    """A socket, and what came out of it."""

    __slots__ = ("data", "marks", "sock")

    def __init__(self, port: int, path: str, after: str = "") -> None:
        self.sock = socket.create_connection(("127.0.0.1", port))
        head = f"GET {path} HTTP/1.1\r\nhost: x\r\n" + (f"last-event-id: {after}\r\n" if after else "")
        self.sock.sendall(head.encode() + b"\r\n")
        self.sock.setblocking(False)
        self.data, self.marks = bytearray(), 0


class Readers:
    """Many of them, with one loop."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.all: list[Reader] = []

    def add(self, reader: Reader) -> Reader:
        """Read another one."""
        self.all.append(reader)
        self._selector.register(reader.sock, selectors.EVENT_READ, reader)
        return reader

    def read(self, until: Callable[[], bool], seconds: float = 60.0, keep: bool = False) -> None:
        """Read until that holds."""
        ends = time.monotonic() + seconds
        while not until():
            if time.monotonic() > ends:
                raise TimeoutError(f"after {seconds:g} s: {sum(reader.marks for reader in self.all)} messages")
            for key, _ in self._selector.select(0.05):
                data = key.data.sock.recv(READ)
                if not data:
                    raise ConnectionError("the server has hung up")
                key.data.marks += data.count(MARK)
                if keep:
                    key.data.data += data

    def close(self) -> None:
        """Hang up."""
        for reader in self.all:
            self._selector.unregister(reader.sock)
            reader.sock.close()
        self.all.clear()


def dechunked(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The messages of a response: their cursors, and what they say."""
    _, _, rest = data.partition(b"\r\n\r\n")
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        if length + 2 > len(rest):
            break
        body, rest = body + rest[:length], rest[length + 2 :]
    found: list[tuple[str, dict[str, Any]]] = []
    for message in body.split(b"\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in message.decode().split("\n") if not line.startswith(":"))
        if "data" in fields:
            found.append((fields.get("id", ""), json.loads(fields["data"])))
    return found


def text_of(messages: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """What deltas say."""
    return "".join(item["delta"]["text"] for _, item in messages if "delta" in item)


class Server:
    """The other process."""

    def __init__(self, http: str, loop: str, merge: float) -> None:
        command = [sys.executable, __file__, "--serve", "--http", http, "--loop", loop, "--merge", str(merge)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(20)

    def ask(self, query: str = "") -> dict[str, Any]:
        """Have it do something, and say how it is."""
        with socket.create_connection(("127.0.0.1", self.port)) as sock:
            sock.sendall(f"GET /control?{query} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
            data = b"".join(iter(lambda: sock.recv(READ), b""))
        return json.loads(data[data.index(b"{") :])

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until it is so."""
        ends = time.monotonic() + 60
        while not holds(found := self.ask()):
            if time.monotonic() > ends:
                raise TimeoutError(found)
            time.sleep(0.05)
        return found


def idle(server: Server, plan: Plan) -> dict[str, float]:
    """Streams of as many sessions, in which nothing happens."""
    server.ask(f"sessions={plan.idle}")
    before = server.ask("collect=1")
    readers = Readers()
    for number in range(plan.idle):
        readers.add(Reader(server.port, f"/idle{number}"))
        if number % 100 == 99:
            readers.read(lambda: all(reader.marks for reader in readers.all[-100:]))
    readers.read(lambda: all(reader.marks for reader in readers.all))
    after = server.ask("collect=1")
    time.sleep(plan.rest)
    rested = server.ask()
    readers.close()
    server.until(lambda found: not found["open"])
    return {
        "streams": plan.idle,
        "kB each": (after["rss"] - before["rss"]) / plan.idle / 1000,
        "ms CPU to connect": (after["cpu"] - before["cpu"]) / plan.idle * 1000,
        "% CPU idle": (rested["cpu"] - after["cpu"]) / plan.rest * 100,
    }


def fan_out(server: Server, plan: Plan) -> dict[str, float]:
    """Readers of one turn, and of a bare loop, in turns."""
    server.ask("send=1")
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(3):
        ours.append(_deliver(server, plan, f"/{SESSION}", "say"))
        bare.append(_deliver(server, plan, "/bare", "bare"))
    server.ask("end=1")
    return {
        "readers": plan.readers,
        "μs CPU per delivery": min(ours),
        "μs of a bare loop": min(bare),
        "times bare": min(ours) / min(bare),
    }


def _deliver(server: Server, plan: Plan, path: str, word: str) -> float:
    """Seconds of CPU for a message to a reader, in millionths."""
    readers = Readers()
    for _ in range(plan.readers):
        readers.add(Reader(server.port, path))
    readers.read(lambda: all(reader.marks for reader in readers.all))
    server.until(lambda found: max(found["open"], found["bare"]) >= plan.readers)
    say = f"{word}={WORD * 2}".replace(" ", "+")
    server.ask(say)  # so that everybody is where the others are
    readers.read(lambda: _is_quiet(readers), 30)
    had = sum(reader.marks for reader in readers.all)
    before = server.ask()
    for number in range(1, plan.deltas + 1):
        server.ask(say)
        goal = had + number * plan.readers
        readers.read(lambda goal=goal: sum(reader.marks for reader in readers.all) >= goal)
    after = server.ask()
    readers.close()
    server.until(lambda found: not found["open"])
    return (after["cpu"] - before["cpu"]) / (plan.deltas * plan.readers) * 1e6


def _is_quiet(readers: Readers) -> bool:
    before = sum(reader.marks for reader in readers.all)
    readers.read(_after(0.3))
    return before == sum(reader.marks for reader in readers.all)


def _after(seconds: float) -> Callable[[], bool]:
    ends = time.monotonic() + seconds
    return lambda: time.monotonic() > ends


def storm(server: Server, plan: Plan) -> dict[str, float]:
    """Readers that come back all at once, each from a place of its own, while the turn goes on."""
    dice = random.Random(1)
    server.ask("send=1")
    first = Readers()
    follower = first.add(Reader(server.port, f"/{SESSION}"))
    for number in range(plan.deltas):
        server.ask(f"say={number}-{WORD}".replace(" ", "+"))
        first.read(_after(0.002), keep=True)
    first.read(_after(0.3), keep=True)
    seen = dechunked(bytes(follower.data))
    places = [dice.randrange(len(seen)) for _ in range(plan.storm)]
    before, began = server.ask(), time.monotonic()
    readers = Readers()
    for at in places:
        readers.add(Reader(server.port, f"/{SESSION}", seen[at][0]))
    for number in range(plan.deltas):
        server.ask(f"say={number}+{WORD}".replace(" ", "+"))
        readers.read(_after(0.002), keep=True)
    server.ask("end=1")
    readers.read(lambda: all(b"TurnCompleted" in reader.data for reader in readers.all), keep=True)
    took = time.monotonic() - began
    first.read(lambda: b"TurnCompleted" in follower.data[-2000:], keep=True)
    after = server.ask()
    whole = text_of(dechunked(bytes(follower.data)))
    same = sum(
        text_of(seen[: at + 1]) + text_of(dechunked(bytes(reader.data))) == whole
        for at, reader in zip(places, readers.all, strict=True)
    )
    readers.close()
    first.close()
    return {
        "readers": plan.storm,
        "with the same text": same,
        "seconds": took,
        "ms CPU each": (after["cpu"] - before["cpu"]) / plan.storm * 1000,
        "characters": len(whole),
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--http", default="h11", choices=["h11", "httptools"])
    parser.add_argument("--loop", default="uvloop", choices=["uvloop", "asyncio"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=["idle", "fan_out", "storm"])
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--merge", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if options.serve:
        if options.loop == "uvloop":
            import uvloop

            uvloop.run(serve(options.http, options.merge))
        else:
            asyncio.run(serve(options.http, options.merge))
        return
    plan = SHORT if options.short else FULL
    report: dict[str, dict[str, float]] = {}
    for name, measure, merge in (("idle", idle, 0.05), ("fan_out", fan_out, 0.0), ("storm", storm, 0.05)):
        if options.only in (None, name):
            with Server(options.http, options.loop, merge) as server:
                report[name] = measure(server, plan)
            print(
                f"{name:8}", "  ".join(f"{label} {figure:,.2f}" for label, figure in report[name].items()), flush=True
            )
    if options.json:
        options.json.write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main()
