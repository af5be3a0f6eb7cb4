"""What a turn that survives costs: processor seconds per 1,000 turns, beside what others would write.

A turn is three rounds of one model message and three parallel tool calls, then a closing answer: twelve results to keep.

    python benchmarks/durable.py [--short] [--json FILE]

a  insert   one INSERT transaction per step, and a row per turn: asyncpg, PostgreSQL
b  restate  a bare Restate handler with twelve journalled steps
c  cluster  ours on Restate, PostgreSQL and NATS
d  postgres ours in one process, on PostgreSQL alone
e  sqlite   ours in one process, in a SQLite file
f  memory   ours in one process, in memory

Every side is a process (b and c: two), the servers are the same for all, and everything they use is counted: workers,
engine, database, bus, and whoever sends the turns: for b and c that is a process of its own (for c it does the admission),
the other sides send their own. All of them run on uvloop where it is installed, and with the collector
of cycles set, as `everturn worker` does. Sides take turns within a pass, so that a noisy machine disturbs them alike: trust the ratios of a pass.
PostgreSQL and SQLite write through to the disk.

This is a report: it ends well whatever it finds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import aiohttp
import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import msgspec
from durable_side import DONE, READY, SERVICE, Script, closed_loop, make

from everturn import Chat
from everturn.cluster import Cluster
from everturn.cluster.workers import loop_factory, tune_garbage_collector
from everturn.engine.restate import open_worker_socket, socket_url

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the root, where `tools` is

from tools.servers.nats import private_nats
from tools.servers.postgres import private_postgres
from tools.servers.process import process_family
from tools.servers.restate import restate_server

SIDE = Path(__file__).parent / "durable_side.py"
GLANCE = 0.02  # seconds between two looks at which turns of the cluster are over
QUESTION = "How is the weather?"
GOALS = {
    ("cluster", "restate"): 1.2,
    ("cluster", "insert"): 2.0,
    ("postgres", "insert"): 2.0,
    ("sqlite", "memory"): 1.3,
}
BASES = ("insert", "restate", "memory")


class Plan(NamedTuple):
    """How much to measure: (turns, at once) of a sample, and how often everybody has their turn."""

    samples: Sequence[tuple[int, int]]
    passes: int
    workers: int
    warm_up: int


LONG = Plan(((320, 16), (640, 64)), passes=3, workers=2, warm_up=64)
SHORT = Plan(((4, 2),), passes=1, workers=1, warm_up=2)


class Sample(NamedTuple):
    """What some turns cost, in processor seconds per 1,000, by who used them."""

    side: str
    at_once: int
    turn: int  # of which pass
    spent: dict[str, float]
    sender: float  # who sent them, where that is another process
    seconds: float  # per 1,000 turns, by the clock on the wall

    @property
    def total(self) -> float:
        """With the sender on every side: those who send their own turns pay for it, too."""
        return sum(self.spent.values()) + self.sender


class Side:
    """Processes that do turns, and what else works for them."""

    def __init__(self, name: str, processes: Sequence[asyncio.subprocess.Process]) -> None:
        self.name, self._processes = name, processes
        self.meters: dict[str, Callable[[], float]] = {"workers": self._workers}
        self.is_sent = False  # another process sends its turns

    def _workers(self) -> float:
        return sum(process_family(process.pid).seconds for process in self._processes)

    async def run(self, turns: int, at_once: int) -> None:
        [process] = self._processes
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{turns} {at_once}\n".encode())
        if (await process.stdout.readline()).strip() != DONE.encode():
            raise RuntimeError(f"{self.name} ended")

    async def measure(self, turns: int, at_once: int, number: int) -> Sample:
        before = {name: meter() for name, meter in self.meters.items()}
        mine, begin = time.process_time(), time.monotonic()
        await self.run(turns, at_once)
        seconds, sender = time.monotonic() - begin, time.process_time() - mine
        spent = {name: (meter() - before[name]) * 1000 / turns for name, meter in self.meters.items()}
        sent = sender * 1000 / turns if self.is_sent else 0.0
        return Sample(self.name, at_once, number, spent, sent, seconds * 1000 / turns)


class Sent(Side):
    """Turns of another side, sent from here."""

    def __init__(
        self, name: str, processes: Sequence[asyncio.subprocess.Process], send: Callable[[str], Awaitable[None]]
    ) -> None:
        super().__init__(name, processes)
        self._send, self.is_sent = send, True

    async def run(self, turns: int, at_once: int) -> None:
        await closed_loop(self._send, turns, at_once)


class Bench:
    """The servers, and the sides that use them."""

    def __init__(self, plan: Plan, stack: AsyncExitStack, home: Path, profile: str = "") -> None:
        self._plan, self._stack, self._home, self._profile = plan, stack, home, profile
        self.sides: list[Side] = []

    async def start(self) -> None:
        enter = self._stack.enter_async_context
        self.postgres, self.nats, self.restate = await asyncio.gather(
            enter(private_postgres(self._home)), enter(private_nats(self._home)), enter(restate_server(self._home))
        )
        database, engine = {"database": self.postgres.cpu}, {"engine": self.restate.cpu}
        self._add(Side("insert", [await self._spawn("insert", {"database": self.postgres.url})]), database)
        self._add(await self._bare_restate(), engine)
        self._add(await self._cluster(), {**engine, **database, "bus": self.nats.cpu})
        self._add(Side("postgres", [await self._spawn("postgres", {"store": self.postgres.url})]), database)
        for name, store in (("sqlite", str(self._home / "turns.db")), ("memory", "memory")):
            self._add(Side(name, [await self._spawn(name, {"store": store})]), {})

    def _add(self, side: Side, meters: dict[str, Callable[[], float]]) -> None:
        side.meters |= meters
        self.sides.append(side)

    async def _spawn(self, kind: str, config: dict[str, Any], fd: int | None = None) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            SIDE,
            kind,
            json.dumps(config),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=() if fd is None else (fd,),
        )
        self._stack.push_async_callback(_end, process)
        assert process.stdout is not None
        if (await process.stdout.readline()).strip() != READY.encode():
            raise RuntimeError(f"{kind} did not start")
        return process

    async def _bare_restate(self) -> Side:
        sock = self._stack.enter_context(open_worker_socket("127.0.0.1", 0))
        config = {"fd": sock.fileno(), "restate": self.restate.ingress, "admin": self.restate.admin}
        workers = [await self._spawn("restate", config, sock.fileno()) for _ in range(self._plan.workers)]
        http = await self._stack.enter_async_context(aiohttp.ClientSession(skip_auto_headers=["Content-Type"]))

        async def send(name: str) -> None:
            async with http.post(f"{self.restate.ingress}/{SERVICE}/{name}/turn") as response:
                assert response.status == 200, await response.text()
                await response.read()

        return Sent("restate", workers, send)

    async def _cluster(self) -> Side:
        sock = self._stack.enter_context(open_worker_socket("127.0.0.1", 0))
        sender = Cluster(self.postgres.url, self.restate.ingress, self.restate.admin, self.nats.url)
        worker = msgspec.structs.replace(sender, listen=f"fd:{sock.fileno()}", advertise=socket_url(sock))
        config = {"cluster": msgspec.to_builtins(worker)}
        workers = [await self._spawn("cluster", config, sock.fileno()) for _ in range(self._plan.workers)]
        app = await self._stack.enter_async_context(sender.join(make))
        over = await self._stack.enter_async_context(Over(self.postgres.url))

        async def send(name: str) -> None:
            turn = await Chat(Script(), app=app, session=name).send(QUESTION)
            await over.wait(name, turn.id)

        return Sent("cluster", workers, send)


class Over:
    """Sees which turns are over with one query for all, which costs the database next to nothing."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._waiting: dict[str, tuple[str, asyncio.Event]] = {}  # session -> its turn

    async def __aenter__(self) -> Over:
        # By its keys, or its cost would grow with every turn there is.
        by_key = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off"}
        self._connection: Any = await asyncpg.connect(self._url, server_settings=by_key)
        self._task = asyncio.get_running_loop().create_task(self._look())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})
        await self._connection.close()

    async def wait(self, session: str, turn: str) -> None:
        end = asyncio.Event()
        self._waiting[session] = turn, end
        await end.wait()

    async def _look(self) -> None:
        query = """SELECT u.session FROM unnest($1::text[], $2::text[]) AS p(session, turn)
            JOIN usage u ON u.session = p.session AND u.turn = p.turn"""
        while True:
            await asyncio.sleep(GLANCE)
            if self._waiting:
                sessions, turns = list(self._waiting), [turn for turn, _ in self._waiting.values()]
                for row in await self._connection.fetch(query, sessions, turns):
                    self._waiting.pop(row[0])[1].set()


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


async def measure(plan: Plan) -> list[Sample]:
    samples: list[Sample] = []
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="everturn-durable-")))
        bench = Bench(plan, stack, home)
        await bench.start()
        tune_garbage_collector()
        for side in bench.sides:
            await side.run(plan.warm_up, min(plan.warm_up, 16))
        for number in range(plan.passes):
            for turns, at_once in plan.samples:
                for side in bench.sides if number % 2 == 0 else reversed(bench.sides):
                    samples.append(await side.measure(turns, at_once, number))
                    print(_line(samples[-1]), file=sys.stderr, flush=True)
    return samples


def _line(sample: Sample) -> str:
    parts = " ".join(f"{name} {seconds:.2f}" for name, seconds in sample.spent.items())
    sent = f" sender {sample.sender:.2f}" if sample.sender else ""
    return f"{sample.turn} {sample.side:8} {sample.at_once:3} at once: {sample.total:6.2f} = {parts}{sent}"


def report(samples: Sequence[Sample]) -> dict[str, Any]:
    """Medians and ranges: of every side, and of the ratios within a pass."""
    rows: list[dict[str, Any]] = []
    for at_once in sorted({sample.at_once for sample in samples}):
        those = [sample for sample in samples if sample.at_once == at_once]
        for side in dict.fromkeys(sample.side for sample in those):
            mine = [sample for sample in those if sample.side == side]
            parts = {name: median(sample.spent[name] for sample in mine) for name in mine[0].spent}
            ratios = {base: _spread(_ratios(those, side, base)) for base in BASES if base != side}
            rows.append(
                {
                    "side": side,
                    "at_once": at_once,
                    "total": _spread([sample.total for sample in mine]),
                    "parts": parts,
                    "sender": median(sample.sender for sample in mine),
                    "turns_per_second": 1000 / median(sample.seconds for sample in mine),
                    "times": ratios,
                }
            )
    return {"machine": {"cores": os.cpu_count(), "load": os.getloadavg()}, "rows": rows}


def _ratios(samples: Sequence[Sample], side: str, base: str) -> list[float]:
    """The cost of one side in those of another, in each pass."""
    of = {(sample.side, sample.turn): sample.total for sample in samples}
    passes = sorted({sample.turn for sample in samples})
    return [of[side, number] / of[base, number] for number in passes if of.get((base, number))]


def _spread(values: Sequence[float]) -> list[float]:
    """Median, least, most."""
    return [median(values), min(values), max(values)] if values else []


def table(found: dict[str, Any]) -> str:
    lines = [
        "| at once | side | CPU s / 1,000 turns | of which | turns/s | × insert | × restate |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in found["rows"]:
        named = {**row["parts"], **({"sender": row["sender"]} if row["sender"] else {})}
        parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in named.items())
        times = [_shown(row["times"].get(base)) for base in ("insert", "restate")]
        total, rate = _shown(row["total"]), f"{row['turns_per_second']:.0f}"
        lines.append(f"| {row['at_once']} | {row['side']} | {total} | {parts} | {rate} | {' | '.join(times)} |")
    return "\n".join(lines)


def goals_table(found: dict[str, Any]) -> str:
    """Each goal, and whether it was reached."""
    lines = ["| goal | at once | seen | reached |", "|---|---|---|---|"]
    for (side, base), goal in GOALS.items():
        for row in found["rows"]:
            if row["side"] == side and (times := row["times"].get(base)):
                reached = "yes" if times[0] <= goal else "**no**"
                lines.append(f"| {side} ≤ {goal:g} × {base} | {row['at_once']} | {_shown(times)} | {reached} |")
    return "\n".join(lines)


def _shown(spread: Sequence[float] | None) -> str:
    return f"{spread[0]:.2f} ({spread[1]:.2f}–{spread[2]:.2f})" if spread else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="only to see that it works")
    parser.add_argument("--passes", type=int, help="how often everybody has their turn")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    plan = SHORT if options.short else LONG
    if options.passes:
        plan = plan._replace(passes=options.passes)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        found = report(runner.run(measure(plan)))
    print(table(found))
    print()
    print(goals_table(found))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
