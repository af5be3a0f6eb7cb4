"""Random kill campaign: kill -9 of busy workers at random moments while many turns run, and other faults in between.

Each of `--lanes` clients sends a turn of four steps and eight calls to a new session and waits for its end, again and
again. Meanwhile a worker that has just done something is killed, and another one started for it. With `--faults`, every
fifth time something else happens instead: a worker is stopped (SIGSTOP) and continued later, a tool blocks a worker's
event loop, every database connection is cut, the database answers nobody for a while, or it is restarted. In the end the
log of every session is compared with the ledger.

    python -m tools.chaos.random_kills [--engine postgres] [--kills 110] [--lanes 50] [--workers 5] [--faults] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct, to_builtins

from everturn.app import App
from everturn.chat import Chat
from everturn.core.events import CallFinished, Entry, Terminal
from tools.chaos.cell import ENGINES, Cell, EngineName, WorkerProcess, cell
from tools.chaos.checks import check
from tools.chaos.evidence import Evidence
from tools.chaos.figures import percentiles, write_figures
from tools.chaos.kill import drive
from tools.chaos.ledger import LedgerLine
from tools.chaos.scenario import ScenarioModel, ask
from tools.chaos.transcript import NormalizedEvent, normalize_log

PACE = 0.03  # seconds between two batches of the model
TOOL_PAUSE = 0.05  # seconds that a tool takes, twice
INTERVAL = (0.4, 1.6)  # seconds between two kills
READY = 3  # workers that are still ready after a kill, at least
SLOW = 5.0  # seconds: the goal
PATIENCE = 90.0  # seconds a turn has to end
STOPPED = 12.0  # seconds for which a worker is stopped
PAUSED = 3.0  # seconds for which the database answers nobody
FAULTS = ("stop", "cut", "wedge", "pause", "restart")


class Kill(Struct, frozen=True):
    """A worker that was killed, and when."""

    worker: str
    at: float
    how: str = "kill"


class RandomKillReport(Struct, frozen=True):
    """The result of a campaign."""

    kills: int
    faults: dict[str, int]
    turns: int
    progress: dict[str, list[float]]  # by the fault: seconds from it to the next event of each session that was hit
    unknown: int
    violations: tuple[str, ...]
    again: dict[str, int] = {}  # by the fault: of these sessions, those that another fault hit before they went on
    last: dict[str, list[float]] = {}  # `progress` without those: from the last fault before the next event
    slow: tuple[str, ...] = ()  # sessions that took longer than the goal

    def figures(self) -> dict[str, Any]:
        """The report without the single times."""
        progress, last = (
            {how: percentiles(seconds) for how, seconds in times.items()} for times in (self.progress, self.last)
        )
        return {**to_builtins(self), "progress": progress, "last": last}

    def __str__(self) -> str:
        """The report as text."""
        lines = [f"{self.kills} kills and {self.faults or 'no other faults'} under {self.turns} turns"]
        for how, seconds in self.progress.items():
            times = percentiles(seconds)
            spread = f"p50 {times['p50']:.2f} s, p99 {times['p99']:.2f} s, max {times['max']:.2f} s"
            lines.append(f"{how} to progress, {times['count']:.0f} sessions hit: {spread}")
            if self.again.get(how):
                times = percentiles(self.last.get(how, ()))
                lines.append(f"  without {self.again[how]} that another fault hit before: p99 {times['p99']:.2f} s")
        lines += [f"slow: {text}" for text in self.slow]
        lines += [f"outcome unknown: {self.unknown} calls", f"violations: {len(self.violations)}"]
        return "\n".join([*lines, *self.violations[:20]])


class RandomKills:
    """A campaign under way."""

    def __init__(self, where: Cell, app: App, seed: int) -> None:
        self._cell, self._app, self._random = where, app, random.Random(seed)
        self.kills: list[Kill] = []
        self.faults: Counter[str] = Counter()
        self.sessions: list[str] = []
        self.late: list[str] = []
        self._is_over = False
        self._ready = {worker.name for worker in where.workers}
        self._starting: set[asyncio.Task[None]] = set()
        self._wedges: list[asyncio.Task[None]] = []

    async def lane(self) -> None:
        """Send turn after turn, each to a session of its own."""
        while not self._is_over:
            session = f"random-{len(self.sessions):05d}"
            self.sessions.append(session)
            turn = await Chat(self._app.model_for(""), app=self._app, session=session).send(ask("four_steps", session))
            try:
                async with asyncio.timeout(PATIENCE):
                    await turn
            except TimeoutError:
                self.late.append(session)

    async def disturb(self, kills: int, has_faults: bool) -> None:
        """Kill worker after worker, then let the lanes end."""
        while len([kill for kill in self.kills if kill.how == "kill"]) < kills:
            await asyncio.sleep(self._random.uniform(*INTERVAL))
            self._replace_dead()
            busy = self._busy_workers()
            if len(self._ready_workers()) <= READY or not busy:
                continue
            done = len(self.kills)
            if has_faults and done % 5 == 4:
                await self._fault(FAULTS[done // 5 % len(FAULTS)], busy)
            else:
                worker = self._random.choice(busy)
                self.kills.append(Kill(worker.name, time.time()))
                await worker.kill9()
        self._is_over = True

    async def _fault(self, name: str, busy: list[WorkerProcess]) -> None:
        self.faults[name] += 1
        if name == "stop":
            worker = self._random.choice(busy)
            self.kills.append(Kill(worker.name, time.time(), "SIGSTOP"))
            worker.send(signal.SIGSTOP)
            asyncio.get_running_loop().call_later(STOPPED, worker.send, signal.SIGCONT)
        elif name == "cut":
            self.kills.append(Kill("", time.time(), "cut"))
            await self._cell.postgres.drop_connections()
        elif name == "pause":
            self.kills.append(Kill("", time.time(), "pause"))
            await self._cell.postgres.pause(PAUSED)
        elif name == "restart":
            self.kills.append(Kill("", time.time(), "restart"))
            await self._cell.postgres.restart("immediate")
        else:
            session = f"wedge-{self.faults[name]}"
            self.kills.append(Kill("", time.time(), session))
            self._wedges.append(asyncio.create_task(self._wedge(session)))

    async def _wedge(self, session: str) -> None:
        chat = Chat(ScenarioModel(), app=self._app, session=session)
        with suppress(Exception):
            await chat.send(ask("blocks", session))

    def _busy_workers(self) -> list[WorkerProcess]:
        """The workers that have done something a moment ago."""
        recent = {line.worker for line in self._cell.lines()[-100:] if line.at > time.time() - 1.0}
        return [worker for worker in self._ready_workers() if worker.name in recent]

    def _ready_workers(self) -> list[WorkerProcess]:
        return [worker for worker in self._cell.workers if worker.is_running and worker.name in self._ready]

    def _replace_dead(self) -> None:
        for worker in [worker for worker in self._cell.workers if not worker.is_running]:
            self._cell.workers.remove(worker)
            task = asyncio.create_task(self._start_worker())
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _start_worker(self) -> None:
        with suppress(RuntimeError):  # the database was away
            self._ready.add((await self._cell.start_worker(pace=PACE, pause=TOOL_PAUSE)).name)

    async def finish(self) -> None:
        """Let everything that was started end."""
        await asyncio.gather(*self._starting, *self._wedges, return_exceptions=True)

    async def report(self, whole: Sequence[NormalizedEvent]) -> RandomKillReport:
        """Check every session."""
        by_session: dict[str, list[LedgerLine]] = defaultdict(list)
        for line in self._cell.lines():
            by_session[line.session].append(line)
        kills = [_blocked(kill, by_session[kill.how]) for kill in self.kills]
        violations = [f"{session}: the turn did not end within {PATIENCE:g} s" for session in self.late]
        progress: dict[str, list[float]] = {}
        last: dict[str, list[float]] = {}
        again: Counter[str] = Counter()
        slow: list[str] = []
        unknown = 0
        for session in self.sessions:
            entries, lines = await self._app.store.events(session), by_session[session]
            hit = [kill for kill in kills if is_hit(kill, entries, lines)]
            for kill in hit:
                after = [entry.event.at - kill.at for entry in entries if entry.event.at > kill.at]
                seconds = min(after, default=PATIENCE)
                progress.setdefault(kill.how, []).append(seconds)
                is_again = any(kill.at < other.at <= kill.at + seconds for other in hit)
                again[kill.how] += is_again
                if not is_again:
                    last.setdefault(kill.how, []).append(seconds)
                if seconds > SLOW:
                    more = ", then hit again" if is_again else ""
                    slow.append(f"{session}: {seconds:.2f} s after {kill.how}{more}, {len(hit)} faults in its turn")
            if session not in self.late:
                evidence = Evidence(session, entries, lines, len(self.kills), whole)
                violations += [str(violation) for violation in check(evidence)]
            finished = [entry.event for entry in entries if isinstance(entry.event, CallFinished)]
            unknown += sum(event.state == "outcome_unknown" for event in finished)
        killed = sum(kill.how == "kill" for kill in kills)
        return RandomKillReport(
            killed,
            dict(self.faults),
            len(self.sessions),
            progress,
            unknown,
            tuple(violations),
            dict(again),
            last,
            tuple(slow),
        )


def _blocked(kill: Kill, lines: Sequence[LedgerLine]) -> Kill:
    """The worker whose event loop a tool blocked, and when: at the first request of the session with that tool."""
    if kill.how.startswith("wedge-"):
        requests = [line for line in lines if line.kind == "request"]
        return Kill(requests[0].worker, requests[0].at + PACE, "wedge") if requests else Kill("none", kill.at, "wedge")
    return kill


def is_hit(kill: Kill, entries: Sequence[Entry], lines: Sequence[LedgerLine]) -> bool:
    """Whether a session was being driven by what was killed: the ledger's last line before is of that worker."""
    if any(isinstance(entry.event, Terminal) and entry.event.at <= kill.at for entry in entries):
        return False
    before = [line for line in lines if line.at <= kill.at and line.kind != "ack"]
    return bool(before) and kill.worker in ("", before[-1].worker)


async def kill_at_random(
    kills: int = 110,
    lanes: int = 50,
    workers: int = 5,
    seed: int = 0,
    engine: EngineName = "restate",
    has_faults: bool = False,
) -> RandomKillReport:
    """Run a campaign."""
    async with cell(engine=engine) as where:
        await where.start_workers(workers, pace=PACE, pause=TOOL_PAUSE)
        async with where.client() as app:
            whole = normalize_log((await drive(app, "random-whole"))[0], "random-whole")
            campaign = RandomKills(where, app, seed)
            async with asyncio.TaskGroup() as group:
                for _ in range(lanes):
                    group.create_task(campaign.lane())
                group.create_task(campaign.disturb(kills, has_faults))
            await campaign.finish()
            return await campaign.report(whole)


def main() -> None:
    """Run the campaign, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES, default="restate")
    parser.add_argument("--kills", type=int, default=110)
    parser.add_argument("--lanes", type=int, default=50)
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", action="store_true", help="also stop, block, cut and restart")
    parser.add_argument("--json", default="", help="write the figures there")
    options = parser.parse_args()
    report = asyncio.run(
        kill_at_random(options.kills, options.lanes, options.workers, options.seed, options.engine, options.faults)
    )
    print(report)
    write_figures(options.json, report.figures())
    raise SystemExit(bool(report.violations))


if __name__ == "__main__":
    main()
