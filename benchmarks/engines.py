"""What a wake costs on each engine, in one run: processor seconds per 1,000 wakes, and the time from a wake to its drive.

    python benchmarks/engines.py [--short] [--json FILE]
    python benchmarks/engines.py --heartbeats 1 2 3 5 10 [--json FILE]     # Temporal: drives that began a second time

A wake is a message to a session that nobody drives, and its drive does nothing: what is left is the engine. Each engine is a
process with two of them, one that wakes and one that drives, as an API node and a worker. Everything is counted: the process,
the server of the engine, and PostgreSQL. The engines take turns, so that a noisy machine disturbs them alike.

With `--heartbeats`, a worker on Temporal drives many sessions at once for several timeouts each, while others are woken as fast
as it goes and every core is kept busy. Each session is woken once, so whatever begins twice was given up while it ran.

This is a report: it ends well whatever it finds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from everturn.clock import SystemClock
from everturn.core.ports import Engine
from everturn.stores.sql.store import SqlStore

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the root, where `tools` is

from tools.servers.postgres import PostgresServer, private_postgres
from tools.servers.process import process_family
from tools.servers.restate import restate_server
from tools.servers.temporal import TemporalServer, temporal_server

READY, BURN = "ready", "while True: pass"
HELD, FLOW = 60, 16  # sessions that are held, and wakes at once beside them
TIMEOUTS_HELD = 3  # heartbeat timeouts for which a session is driven
LEAST_HELD = 10.0  # seconds


class Plan(NamedTuple):
    """(wakes, at once) of a sample, and how often every engine has its turn."""

    samples: Sequence[tuple[int, int]]
    passes: int


LONG = Plan(((50, 1), (200, 16)), passes=2)
SHORT = Plan(((20, 4),), passes=1)


# The process of an engine -------------------------------------------------------------------------------------------


def engines(kind: str, config: dict[str, Any]) -> tuple[Engine, Engine]:
    """One engine that wakes, and one that drives."""
    if kind == "inline":
        from everturn.engine.inline import InlineEngine

        return (engine := InlineEngine(SystemClock())), engine
    if kind == "postgres":
        from everturn.engine.postgres import PostgresEngine

        return PostgresEngine(config["url"], drives=False), PostgresEngine(config["url"])
    if kind == "restate":
        from everturn.engine.restate import RestateEngine

        waker = RestateEngine(config["ingress"], config["admin"], listen=None)
        return waker, RestateEngine(config["ingress"], config["admin"], listen=("127.0.0.1", 0))
    from everturn.engine.temporal import TemporalEngine

    timeout = config.get("heartbeat_timeout", 10.0)
    name = f"everturn-{timeout:g}"
    waker = TemporalEngine(config["url"], drives=False, name=name, heartbeat_timeout=timeout)
    return waker, TemporalEngine(config["url"], name=name, heartbeat_timeout=timeout)


class Side:
    """Wakes sessions and waits for their drives."""

    def __init__(self, waker: Engine, worker: Engine) -> None:
        self.waker, self.worker = waker, worker
        self.begun: dict[str, asyncio.Future[float]] = {}
        self.again = 0  # drives of a session beyond its first
        self.held = 0.0  # seconds that a drive of "held…" takes

    async def drive(self, session: str) -> None:
        future = self.begun.setdefault(session, asyncio.get_running_loop().create_future())
        if future.done():
            self.again += 1
        else:
            future.set_result(time.perf_counter())
        if session.startswith("held"):
            await asyncio.sleep(self.held)

    async def one(self, session: str) -> float:
        began = time.perf_counter()
        future = self.begun.setdefault(session, asyncio.get_running_loop().create_future())
        await self.waker.wake(session)
        return await future - began

    async def run(self, name: str, wakes: int, at_once: int) -> list[float]:
        left, took = iter(range(wakes)), list[float]()

        async def lane() -> None:
            for number in left:
                took.append(await self.one(f"{name}-{number}"))

        await asyncio.gather(*(lane() for _ in range(at_once)))
        return took

    async def hold(self, name: str, seconds: float) -> dict[str, float]:
        """Hold many sessions for so long, with a flow of wakes beside them. Returns how many began again."""
        self.held, self.again, wakes = seconds, 0, 0
        await asyncio.gather(*(self.one(f"held-{name}-{number}") for number in range(HELD)))
        until = time.monotonic() + seconds

        async def lane(number: int) -> None:
            nonlocal wakes
            while time.monotonic() < until:
                wakes += 1
                await self.one(f"{name}-{number}-{wakes}")

        await asyncio.gather(*(lane(number) for number in range(FLOW)))
        await asyncio.sleep(max(0.0, until + 2 - time.monotonic()))  # a second drive would have begun
        return {"again": self.again, "sessions": HELD + wakes, "wakes_per_second": wakes / seconds}


async def side(kind: str, config: dict[str, Any]) -> None:
    """Follow the lines on stdin: `run NAME WAKES AT_ONCE` or `hold NAME SECONDS`."""
    waker, worker = engines(kind, config)
    runner = Side(waker, worker)
    await worker.serve(runner.drive)
    if waker is not worker:
        await waker.serve(runner.drive)
    print(READY, flush=True)
    while line := (await asyncio.to_thread(sys.stdin.readline)).split():
        if line[0] == "run":
            found: Any = await runner.run(line[1], int(line[2]), int(line[3]))
        else:
            found = await runner.hold(line[1], float(line[2]))
        print(json.dumps(found), flush=True)
    await worker.aclose()
    await waker.aclose()


class SideProcess:
    """The process of an engine, and the servers that work for it."""

    def __init__(self, kind: str, process: asyncio.subprocess.Process, servers: dict[str, Callable[[], float]]) -> None:
        self.kind, self._process, self._servers, self._made = kind, process, servers, 0

    def cpu(self) -> dict[str, float]:
        own = {"process": process_family(self._process.pid).seconds}
        return own | {name: meter() for name, meter in self._servers.items()}

    async def ask(self, *words: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._made += 1
        verb, *rest = words
        self._process.stdin.write(f"{verb} n{self._made} {' '.join(map(str, rest))}\n".encode())
        return json.loads(await self._process.stdout.readline())

    async def measure(self, wakes: int, at_once: int, number: int) -> dict[str, Any]:
        before = self.cpu()
        took = sorted(await self.ask("run", wakes, at_once))
        after = self.cpu()
        parts = {name: (after[name] - before[name]) * 1000 / wakes for name in after}
        return {
            "engine": self.kind,
            "at_once": at_once,
            "pass": number,
            "total": sum(parts.values()),
            "parts": parts,
            "p50": took[len(took) // 2] * 1000,
            "p99": took[int(len(took) * 0.99)] * 1000,
        }


async def start_side(
    stack: AsyncExitStack, kind: str, config: dict[str, Any], servers: dict[str, Callable[[], float]] | None = None
) -> SideProcess:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, __file__, "--side", kind, json.dumps(config)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    stack.push_async_callback(_end, process)
    assert process.stdout is not None
    if (await process.stdout.readline()).strip() != READY.encode():
        raise RuntimeError(f"{kind} did not start")
    return SideProcess(kind, process, servers or {})


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


# What is measured ---------------------------------------------------------------------------------------------------


async def compare(plan: Plan) -> dict[str, Any]:
    """The cost of a wake on each engine."""
    samples: list[dict[str, Any]] = []
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="everturn-engines-")))
        enter = stack.enter_async_context
        postgres: PostgresServer
        postgres, restate, temporal = await asyncio.gather(
            enter(private_postgres(home)), enter(restate_server(home)), enter(temporal_server(home))
        )
        store = SqlStore.postgres(postgres.url)  # creates the tables
        await store.sessions()
        await store.aclose()
        addresses = {"ingress": restate.ingress, "admin": restate.admin}
        sides = [
            await start_side(stack, "inline", {}),
            await start_side(stack, "postgres", {"url": postgres.url}, {"database": postgres.cpu}),
            await start_side(stack, "restate", addresses, {"engine": restate.cpu}),
            await start_side(stack, "temporal", {"url": temporal.url}, {"engine": temporal.cpu}),
        ]
        for each in sides:
            await each.ask("run", 20, 4)
        for number in range(plan.passes):
            for wakes, at_once in plan.samples:
                for each in sides if number % 2 == 0 else reversed(sides):
                    samples.append(await each.measure(wakes, at_once, number))
                    print(_line(samples[-1]), file=sys.stderr, flush=True)
    return {"rows": _rows(samples)}


def _line(sample: dict[str, Any]) -> str:
    return f"{sample['pass']} {sample['engine']:9} {sample['at_once']:3} at once: {sample['total']:7.2f} CPU s / 1,000"


def _rows(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Medians of the passes, and the range of the totals."""
    rows: list[dict[str, Any]] = []
    for at_once in sorted({sample["at_once"] for sample in samples}):
        for engine in dict.fromkeys(sample["engine"] for sample in samples):
            mine = [sample for sample in samples if (sample["engine"], sample["at_once"]) == (engine, at_once)]
            totals = [sample["total"] for sample in mine]
            rows.append(
                {
                    "engine": engine,
                    "at_once": at_once,
                    "total": [median(totals), min(totals), max(totals)],
                    "parts": {name: median(sample["parts"][name] for sample in mine) for name in mine[0]["parts"]},
                    "p50": median(sample["p50"] for sample in mine),
                    "p99": median(sample["p99"] for sample in mine),
                }
            )
    return rows


async def try_heartbeats(timeouts: Sequence[float]) -> dict[str, Any]:
    """How many drives began a second time, by the heartbeat timeout, on a machine whose cores are all busy."""
    rows: list[dict[str, Any]] = []
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="everturn-engines-")))
        server: TemporalServer = await stack.enter_async_context(temporal_server(home))
        for _ in range(os.cpu_count() or 2):
            burner = subprocess.Popen([sys.executable, "-c", BURN])  # noqa: ASYNC220
            stack.callback(burner.wait)
            stack.callback(burner.kill)
        for timeout in timeouts:
            async with AsyncExitStack() as short:
                side_process = await start_side(short, "temporal", {"url": server.url, "heartbeat_timeout": timeout})
                found = await side_process.ask("hold", max(LEAST_HELD, TIMEOUTS_HELD * timeout))
            rows.append({"timeout": timeout, **found, "load": os.getloadavg()[0]})
            print(rows[-1], file=sys.stderr, flush=True)
    return {"rows": rows}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="only to see that it works")
    parser.add_argument("--passes", type=int, help="how often every engine has its turn")
    parser.add_argument("--heartbeats", type=float, nargs="+", metavar="SECONDS", help="try these timeouts instead")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--side", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        asyncio.run(side(options.side[0], json.loads(options.side[1])))
        return
    plan = SHORT if options.short else LONG
    plan = plan._replace(passes=options.passes or plan.passes)
    found = asyncio.run(try_heartbeats(options.heartbeats) if options.heartbeats else compare(plan))
    if options.json:
        options.json.write_text(json.dumps(found), encoding="utf-8")
    else:
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
