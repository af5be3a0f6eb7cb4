"""Cells campaign: a tenant with streaming turns and open gates is moved between two cells behind a router.

Two databases, two sets of `everturn serve` processes, and `everturn router` are started as the guide says. Readers follow a
turn each through the router, and come back with the id of the last event when their stream ends. Meanwhile
`everturn admin tenant move` runs and, if asked, is killed at some of its steps and run again. In the end every turn has
completed once, in the target; each reader has rendered the stored text, byte for byte; every gate is answered, and its tool
has run once. The overhead of the router is the difference of the same request through it and past it, one after the other.

    python -m tools.cells.campaign [--streams 50] [--gates 20] [--kills 3] [--nodes 2] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from everturn.core.events import StepRestarted, TurnCompleted, TurnFailed
from everturn.stores.sql.store import SqlStore
from everturn.testing.provider import Call, Provider, Say
from tools.cells.mail_tool import LEDGER
from tools.chaos.api import ApiTurnScreen, visit
from tools.chaos.resume import compare_with_stored
from tools.environment import child_environment
from tools.servers.postgres import private_postgres
from tools.servers.process import free_port, process_family

PACE_MS = 100  # between two chunks of an answer
TENANT, USER = "acme", "ada"
PATIENCE = 600.0  # seconds for everything to end
CELL = """\
[server]
host = "127.0.0.1"
port = {port}
token_file = "{home}/{name}.token"
hosts = ["127.0.0.1:{router}"]
drain = 3.0

[store]
url = "{database}"

[tools]
python = ["tools.cells.mail_tool"]

[limits]
requests = 0
streams = 0

[tenants.acme.users.ada]
role = "owner"
"""
MODEL = """
[models.{name}]
model = "openai-chat:{model}"
base_url = "{url}/v1"
api_key = "${{env:CELLS_KEY}}"

[agents.{name}]
model = "{name}"
"""
ROUTER = """\
[router]
routes = "{routes}"
default = "a"
port = {port}
wait = 120.0
"""


class CellsReport(Struct, frozen=True):
    """What the campaign has found."""

    streams: int
    gates: int
    kills: int  # of the move
    reconnects: int
    step_restarts: int
    moved: str  # what the last run of the move printed
    longest_gap: float  # seconds without anything new, of the reader that waited longest
    direct_p50_ms: float
    direct_p99_ms: float
    router_p50_ms: float
    router_p99_ms: float
    overhead_p50_ms: float  # of pairs of requests, one through the router and one past it
    overhead_p99_ms: float
    noise_p50_ms: (
        float  # of pairs of requests that both go past the router: what machine and cell add to the difference
    )
    noise_p99_ms: float
    router_cpu_ms: float  # processor time of the router for a request: what a busy machine does not change
    seconds: float
    violations: tuple[str, ...]


class CellsInstallation:
    """Two cells and a router, as programs."""

    def __init__(self, home: Path, databases: dict[str, str], provider: str, nodes: int, chunks: int) -> None:
        self.home, self.databases, self._nodes = home, databases, nodes
        self.environment = {
            **child_environment(),
            "CELLS_KEY": "key",
            LEDGER: str(home / "ledger"),
            "XDG_DATA_HOME": str(home),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        self.ports = {name: [free_port() for _ in range(nodes)] for name in ("a", "b")}
        self.router_port = free_port()
        models = {"talks": f"plain-n{chunks}-p{PACE_MS}", "asks": "asks"}
        more = "".join(MODEL.format(name=name, model=model, url=provider) for name, model in models.items())
        for name, ports in self.ports.items():
            text = CELL.format(port=ports[0], home=home, name=name, router=self.router_port, database=databases[name])
            (home / f"{name}.toml").write_text(text + more, encoding="utf-8")
        cells = "".join(
            f'\n[cells.{name}]\nurl = "http://127.0.0.1:{ports[0]}"\ndatabase = "{databases[name]}"\n'
            for name, ports in self.ports.items()
        )
        routing = ROUTER.format(routes=databases["routes"], port=self.router_port)
        (home / "cells.toml").write_text(routing + cells, encoding="utf-8")
        self._processes: list[asyncio.subprocess.Process] = []

    @property
    def router(self) -> str:
        """The address of the router."""
        return f"http://127.0.0.1:{self.router_port}"

    @property
    def source(self) -> str:
        """The address of the first node of the source."""
        return f"http://127.0.0.1:{self.ports['a'][0]}"

    async def start(self) -> None:
        """Start all programs; they answer when this returns."""
        for name, ports in self.ports.items():
            for port in ports:
                await self._start(
                    "serve", "--config", str(self.home / f"{name}.toml"), "--port", str(port), "--no-reload"
                )
        await self._start("router", "--config", str(self.home / "cells.toml"))
        addresses = [port for ports in self.ports.values() for port in ports] + [self.router_port]
        async with aiohttp.ClientSession() as http, asyncio.timeout(240):
            for port in addresses:
                while not await _answers(http, f"http://127.0.0.1:{port}/healthz"):  # noqa: ASYNC110
                    await asyncio.sleep(0.2)

    async def _start(self, *words: str) -> None:
        with (self.home / f"process-{len(self._processes)}.log").open("wb") as log:
            self._processes.append(
                await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "everturn", *words),
                    env=self.environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    async def command(self, *words: str, kill_at: str = "") -> tuple[int, str]:
        """Run a command; with `kill_at` it dies at that failpoint."""
        start = ("-m", "everturn") if not kill_at else ("-c", _DIES, f"move.{kill_at}")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *start, *words),
            env=self.environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return process.returncode or 0, output.decode()

    def router_cpu(self) -> float:
        """Processor seconds that the router has used."""
        return process_family(self._processes[-1].pid).seconds

    def log_ends(self) -> str:
        """The last lines of each program. Blocks."""
        logs = sorted(self.home.glob("process-*.log"))
        return "\n".join(f"{log.name}: {log.read_text(encoding='utf-8')[-1500:]}" for log in logs)

    async def stop(self) -> None:
        """Stop all programs."""
        for process in self._processes:
            if process.returncode is None:
                process.terminate()
        await asyncio.gather(*(process.wait() for process in self._processes))


_DIES = """
import os, signal, sys
from everturn import failpoints
from everturn.cli import main
point = sys.argv.pop(1)
failpoints.install_plan(lambda reached: os.kill(os.getpid(), signal.SIGKILL) if reached == point else None)
sys.exit(main(sys.argv[1:]))
"""


class CellReader:
    """Follows a turn through the router, over as many connections as it takes."""

    def __init__(self, http: aiohttp.ClientSession, url: str, session: str) -> None:
        self.screen, self.session, self.visits, self.longest_gap = ApiTurnScreen(), session, 0, 0.0
        self._http, self._url = http, url
        self._news, self._pieces = time.monotonic(), 0

    async def read(self) -> None:
        """Read to the end of the turn."""
        while not self.screen.is_over:
            self.visits += 1
            await visit(self.screen, self._http, self._url, self._see)
            if not self.screen.is_over:
                await asyncio.sleep(0.05)

    def _see(self, screen: ApiTurnScreen) -> bool:
        now = time.monotonic()
        self.longest_gap, self._news = max(self.longest_gap, now - self._news), now
        return False


async def run_campaign(
    streams: int, gates: int, kills: int, nodes: int, chunks: int, seed: int, pairs: int = 2000
) -> CellsReport:
    """Run the campaign."""
    began, rng = time.monotonic(), random.Random(seed)
    async with _installation(nodes, chunks) as cells:
        await cells.start()
        words = ("keys", "add", USER, "--tenant", TENANT, "--role", "owner", "--store", cells.databases["a"])
        code, output = await cells.command(*words)
        found = re.search(r"evk_[A-Za-z0-9_-]+", output)
        if found is None:
            raise RuntimeError(f"there is no key: {code} {output}")
        key = found[0]
        async with _http(key) as http:
            waiting = [await _send(http, cells.router, "asks") for _ in range(gates)]
            await _until_asked(http, cells.router, gates)
            latency = await _measure(http, cells, pairs)
            talking = [await _send(http, cells.router, "talks") for _ in range(streams)]
            readers = [
                CellReader(http, f"{cells.router}/api/sessions/{session}/turns/{turn}/events", session)
                for session, turn in talking
            ]
            reading = [asyncio.create_task(reader.read()) for reader in readers]
            await _until_streaming(readers)
            steps = ["copied", "frozen", "arriving", "arrived", "switched", "parked"]
            moved = await _move(cells, rng.sample(steps, min(kills, len(steps))))
            violations = await _answer(http, cells.router, gates)
            _, left = await asyncio.wait(reading, timeout=PATIENCE)
            for task in left:
                task.cancel()
            violations += [f"{len(left)} readers have not seen the end"] if left else []
            violations += await _until_completed(cells.databases["b"], [*talking, *waiting])
        found_violations, restarts = await _judge(cells, readers, talking, waiting)
        return CellsReport(
            streams=streams,
            gates=gates,
            kills=kills,
            reconnects=sum(reader.visits - 1 for reader in readers),
            step_restarts=restarts,
            moved=moved,
            longest_gap=max((reader.longest_gap for reader in readers), default=0.0),
            **latency,
            seconds=time.monotonic() - began,
            violations=(*violations, *found_violations),
        )


@asynccontextmanager
async def _installation(nodes: int, chunks: int) -> AsyncGenerator[CellsInstallation]:
    with tempfile.TemporaryDirectory(prefix="everturn-cells-") as folder:
        home = Path(folder)
        async with private_postgres(home, max_connections="300") as postgres, Provider() as provider:
            provider.script("asks", [[Call("mail", '{"to": "ada"}')], [Say("It is sent.")]])
            databases: dict[str, str] = {}
            for name in ("routes", "a", "b"):
                await postgres.sql(f"CREATE DATABASE cell_{name}")
                databases[name] = postgres.url.rpartition("/")[0] + f"/cell_{name}"
            cells = CellsInstallation(home, databases, provider.url, nodes, chunks)
            try:
                yield cells
            except BaseException:
                print(await asyncio.to_thread(cells.log_ends), file=sys.stderr)
                raise
            finally:
                await cells.stop()


@asynccontextmanager
async def _http(key: str) -> AsyncGenerator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=300)
    headers = {"authorization": f"Bearer {key}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers) as http:
        yield http


async def _answers(http: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with http.get(url) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False


async def _send(http: aiohttp.ClientSession, base: str, agent: str) -> tuple[str, str]:
    """Start a turn in a new session; -> session and turn."""
    headers = {"idempotency-key": os.urandom(8).hex()}
    async with http.post(f"{base}/api/sessions", json={"text": "Go.", "agent": agent}, headers=headers) as response:
        answer = await response.json()
        if response.status >= 300:
            raise RuntimeError(f"{response.status} {answer}")
        return answer["session"], answer["turn"]


async def _gates(http: aiohttp.ClientSession, base: str) -> list[dict[str, str]]:
    async with http.get(f"{base}/api/gates") as response:
        rows: list[dict[str, Any]] = (await response.json())["gates"] if response.status == 200 else []
        return [{**row, **row.get("gate", {})} for row in rows]


async def _until_asked(http: aiohttp.ClientSession, base: str, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(await _gates(http, base)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.3)


async def _until_streaming(readers: list[CellReader]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not all(reader.screen.size for reader in readers):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def _answer(http: aiohttp.ClientSession, base: str, expected: int) -> list[str]:
    """Approve all gates, in the target."""
    found = await _gates(http, base)
    violations = [] if len(found) == expected else [f"{len(found)} of {expected} gates are open after the move"]
    for gate in found:
        url = f"{base}/api/sessions/{gate['session']}/gates/{gate['id']}/answer"
        async with http.post(url, json={"hash": gate["hash"], "allow": "once"}) as response:
            if response.status >= 300:
                violations.append(f"gate {gate['id']}: {response.status} {(await response.read())[:200]!r}")
    return violations


async def _move(cells: CellsInstallation, kills: list[str]) -> str:
    words = ("admin", "tenant", "move", TENANT, "--to", "b", "--config", str(cells.home / "cells.toml"))
    order = ["copied", "frozen", "arriving", "arrived", "switched", "parked"]
    for step in sorted(kills, key=order.index):
        code, output = await cells.command(*words, kill_at=step)
        print(f"killed at {step}: {code} {output.strip()}", file=sys.stderr, flush=True)
    code, output = await cells.command(*words)
    if code:
        raise RuntimeError(f"the move failed: {output}")
    return output.strip()


async def _measure(http: aiohttp.ClientSession, cells: CellsInstallation, pairs: int) -> dict[str, float]:
    """The latency of a request past the router and through it, in pairs. A second one past it, with which the first is
    compared in the same way, shows how much of the difference is not the router's. Each is as often the first as the last.
    """
    direct, routed, again = list[float](), list[float](), list[float]()
    asked = [(cells.source, direct), (cells.router, routed), (cells.source, again)]
    used = cells.router_cpu()
    for number in range(pairs):
        for base, samples in asked if number % 2 else reversed(asked):
            began = time.perf_counter()
            async with http.get(f"{base}/api/me") as response:
                await response.read()
            samples.append((time.perf_counter() - began) * 1000)
    used = cells.router_cpu() - used
    overhead = sorted(b - a for a, b in zip(direct, routed, strict=True))
    noise = sorted(b - a for a, b in zip(direct, again, strict=True))
    direct.sort()
    routed.sort()
    names = {"direct": direct, "router": routed, "overhead": overhead, "noise": noise}
    points = (("p50", 0.5), ("p99", 0.99))
    found = {
        f"{name}_{point}_ms": samples[int(len(samples) * share)]
        for name, samples in names.items()
        for point, share in points
    }
    return {**found, "router_cpu_ms": used / pairs * 1000}


async def _until_completed(url: str, turns: list[tuple[str, str]]) -> list[str]:
    store = SqlStore.postgres(url)
    try:
        async with asyncio.timeout(PATIENCE):
            for session, _ in turns:
                while await store.open_turns(session):  # noqa: ASYNC110
                    await asyncio.sleep(0.3)
    except TimeoutError:
        return ["some turns have not ended"]
    finally:
        await store.aclose()
    return []


async def _judge(
    cells: CellsInstallation, readers: list[CellReader], talking: list[tuple[str, str]], waiting: list[tuple[str, str]]
) -> tuple[list[str], int]:
    violations, restarts = list[str](), 0
    screens = {reader.session: reader.screen for reader in readers}
    source, target = (SqlStore.postgres(cells.databases[name]) for name in ("a", "b"))
    try:
        for session, _ in [*talking, *waiting]:
            events = [entry.event for entry in await target.events(session)]
            restarts += sum(isinstance(event, StepRestarted) for event in events)
            ended = sum(isinstance(event, TurnCompleted) for event in events)
            failed = sum(isinstance(event, TurnFailed) for event in events)
            if (ended, failed) != (1, 0):
                violations.append(f"{session}: completed {ended} times, failed {failed} times")
            if session in screens:
                stored = (await target.path(session, (await target.info(session)).leaf))[-1].text
                violations += [f"{session}: {problem}" for problem in compare_with_stored(screens[session], stored)]
            behind = [entry.event for entry in await source.events(session)]
            if behind != events[: len(behind)]:
                violations.append(f"{session}: the source's log is not a part of the target's")
    finally:
        await source.aclose()
        await target.aclose()
    ledger = cells.home / "ledger"
    effects = Counter(ledger.read_text(encoding="utf-8").split("\n")) if ledger.exists() else Counter[str]()
    for session, _ in waiting:
        if effects[f"{session} ada"] != 1:
            violations.append(f"{session}: its mail was sent {effects[f'{session} ada']} times")
    return violations, restarts


def main() -> None:
    """Run the campaign, and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--gates", type=int, default=20)
    parser.add_argument("--kills", type=int, default=3, help="of the move, each at another step")
    parser.add_argument("--nodes", type=int, default=2, help="of each cell")
    parser.add_argument("--chunks", type=int, default=600, help="of an answer, ten a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=2000, help="requests past the router and through it")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    report = asyncio.run(
        run_campaign(
            options.streams, options.gates, options.kills, options.nodes, options.chunks, options.seed, options.pairs
        )
    )
    print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    if options.json:
        Path(options.json).write_bytes(msgspec.json.encode(report))
    raise SystemExit(1 if report.violations else 0)


if __name__ == "__main__":
    main()
