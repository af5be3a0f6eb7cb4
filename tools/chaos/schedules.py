"""Schedule campaign: kill -9 of processes that start scheduled turns, on one PostgreSQL.

Many one-off schedules are due within a window. Processes of an app, each with the engine on PostgreSQL, start their
turns; at random moments one is killed and another started for it. In the end the log of every session is read: each
planned time has started one turn, that turn has ended, and the time from the planned one to the start is reported.

    python -m tools.chaos.schedules [--schedules 10000] [--window 600] [--processes 3] [--kills 20] [--seed 1]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from msgspec import Struct, structs

from everturn.agent import Agent
from everturn.app import App
from everturn.core.chunks import Chunk, FinishChunk, TextChunk
from everturn.core.events import TurnCompleted, TurnStarted
from everturn.core.requests import ModelRequest
from everturn.core.schedules import Schedule, run_key, run_session
from everturn.stores.sql.store import SqlStore
from tools.chaos.figures import percentiles, write_figures
from tools.servers.postgres import private_postgres

LEAD = 10.0  # seconds to write the schedules before the first planned time; many of them have more
PATIENCE = 300.0  # seconds after the window in which the last turns end
READY = "ready"


class EchoModel:
    """A model that answers at once."""

    name = "echo"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Answer with one word."""
        yield (TextChunk("Done."), FinishChunk("stop"))


class ScheduleReport(Struct, frozen=True):
    """The result of a campaign."""

    schedules: int
    kills: int
    window: float
    started: int
    lag_p50: float
    lag_p99: float
    lag_max: float
    cpu: float  # seconds of all processes
    violations: tuple[str, ...]

    def __str__(self) -> str:
        """The report as text."""
        lag = f"lag p50 {self.lag_p50:.2f} s, p99 {self.lag_p99:.2f} s, max {self.lag_max:.2f} s"
        lines = [
            f"{self.schedules} schedules due within {self.window:g} s, {self.kills} kills: {self.started} turns; "
            f"{lag}; CPU {self.cpu:.0f} s"
        ]
        return "\n".join([*lines, f"violations: {len(self.violations)}", *self.violations[:20]])


def make_app(url: str) -> App:
    """The app of every process."""
    return App(agents=[Agent(EchoModel(), name="reporter")], store=url)


async def work(url: str) -> None:
    """A process that starts what is due, until it is killed."""
    await make_app(url).serve_until_signal(lambda: print(READY, flush=True))


class KillableProcess:
    """A process that can be killed and started again; it prints one line when it is ready."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command, self._log = command, log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, and wait until it is ready."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # as under a supervisor; Linux shares processors between sessions
            )
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if line.strip().decode() != READY:
            raise RuntimeError(f"the process did not start: {self._log.read_text()[-2000:]}")

    async def kill9(self) -> None:
        """Kill it, if it runs."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


async def campaign(
    url: str, folder: Path, *, schedules: int, window: float, processes: int, kills: int, seed: int, lead: float = LEAD
) -> ScheduleReport:
    """Run a campaign on an empty database."""
    store, rng = SqlStore.postgres(url), random.Random(seed)
    command = (sys.executable, "-m", "tools.chaos.schedules", "--work", url)
    workers = [KillableProcess(command, folder / f"process-{number}.log") for number in range(processes)]
    try:
        await asyncio.gather(*(worker.start() for worker in workers))
        begin = time.time() + lead + schedules / 100
        planned = [round(begin + rng.uniform(0, window), 3) for _ in range(schedules)]
        rows = [
            Schedule(id=f"s{number:05}", text="Report.", at=at, due=at, created=begin, agent="reporter")
            for number, at in enumerate(planned)
        ]
        for at in range(0, len(rows), 500):
            await asyncio.gather(*(store.schedules.add(row) for row in rows[at : at + 500]))
        if time.time() > begin:
            raise RuntimeError("the schedules were not written in time; a longer lead is needed")
        await _disturb(workers, rng, begin, window, kills)
        await _wait(store, rows, begin + window + PATIENCE)
        judged = await _judge(store, rows, window, kills)
    finally:
        for worker in workers:
            await worker.kill9()
        await store.aclose()
    used = getrusage(RUSAGE_CHILDREN)
    return structs.replace(judged, cpu=used.ru_utime + used.ru_stime)


async def _disturb(workers: list[KillableProcess], rng: random.Random, begin: float, window: float, kills: int) -> None:
    """Kill a process at random moments of the window, and start another one for it."""
    starting: list[asyncio.Task[None]] = []
    for moment in sorted(rng.uniform(0, window) for _ in range(kills)):
        await asyncio.sleep(max(0.0, begin + moment - time.time()))
        await asyncio.gather(*starting[:-1])  # at most one of them is missing
        worker = rng.choice(workers)
        await asyncio.gather(*starting)
        await worker.kill9()
        starting.append(asyncio.create_task(worker.start()))
    await asyncio.gather(*starting)
    await asyncio.sleep(max(0.0, begin + window - time.time()))


async def _wait(store: SqlStore, rows: list[Schedule], deadline: float) -> None:
    """Wait until no schedule is left to start, and no turn is open."""
    while time.time() < deadline:
        if await store.schedules.next_wake() is None and not (await store.count_all()).live:
            return
        await asyncio.sleep(0.5)


async def _judge(store: SqlStore, rows: list[Schedule], window: float, kills: int) -> ScheduleReport:
    violations: list[str] = []
    lags: list[float] = []
    expected = {run_session(row, row.due): row for row in rows}
    infos = await store.sessions()
    violations += [f"{info.id}: nobody planned this session" for info in infos if info.id not in expected]
    for missing in sorted(set(expected) - {info.id for info in infos}):
        violations.append(f"{expected[missing].id}: no turn was started")
    for info in infos:
        if (row := expected.get(info.id)) is None:
            continue
        events = [entry.event for entry in await store.events(info.id)]
        starts = [event for event in events if isinstance(event, TurnStarted)]
        if len(starts) != 1 or starts[0].command != run_key(row, row.due):
            violations.append(f"{row.id}: {len(starts)} turns were started")
        if not any(isinstance(event, TurnCompleted) for event in events):
            violations.append(f"{row.id}: its turn has not ended")
        lags += [start.at - row.due for start in starts[:1]]
        recorded = await store.schedules.get(row.tenant, row.id)
        if recorded is None or recorded.started != 1 or recorded.firing:
            violations.append(f"{row.id}: its record says {recorded}")
    lag = percentiles(lags)
    return ScheduleReport(
        len(rows), kills, window, len(infos), lag["p50"], lag["p99"], lag["max"], 0.0, tuple(violations)
    )


async def _main(options: argparse.Namespace) -> int:
    if options.work:
        await work(options.work)
        return 0
    with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
        async with private_postgres(Path(folder)) as postgres:
            report = await campaign(
                postgres.url,
                Path(folder),
                schedules=options.schedules,
                window=options.window,
                processes=options.processes,
                kills=options.kills,
                seed=options.seed,
            )
    print(report)
    write_figures(options.json, report)
    return 1 if report.violations else 0


def main() -> int:
    """Read the options, and run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--window", type=float, default=600.0)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", default="")
    parser.add_argument("--work", default="", help=argparse.SUPPRESS)
    return asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
