"""Random kill campaign: kill -9 of busy workers at random moments while many turns run, and other faults in between.

Progress is the commit of an event that was made after the fault; the database says when that was.

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
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from temporalio.client import Client

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
    given: frozenset[str] = frozenset()  # sessions that its engine had given it just before


class RandomKillReport(Struct, frozen=True):
    """The result of a campaign."""

    kills: int
    faults: dict[str, int]
    turns: int
    # By the fault: seconds from it to the next event of each session that was hit. `back`: from the end of a restart.
    progress: dict[str, list[float]]
    unknown: int
    violations: tuple[str, ...]
    again: dict[str, int] = {}  # by the fault: of these sessions, those that another fault hit before they went on
    last: dict[str, list[float]] = {}  # `progress` without those: from the last fault before the next event
    slow: tuple[str, ...] = ()  # sessions that took longer than the goal
    away: list[float] = []  # seconds from each crash of the database until it accepted connections again

    def figures(self) -> dict[str, Any]:
        """The report without the single times."""
        progress, last = (
            {how: percentiles(seconds) for how, seconds in times.items()} for times in (self.progress, self.last)
        )
        return {**to_builtins(self), "progress": progress, "last": last, "away": percentiles(self.away)}

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
        lines += [f"the database itself was away for {max(self.away):.2f} s at most"] if self.away else []
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
        self.open: set[str] = set()  # those whose turn has not ended
        self._temporal: Client | None = None
        self.late: list[str] = []
        self.away: list[float] = []
        self._is_over = False
        self._ready = {worker.name for worker in where.workers}
        self._starting: set[asyncio.Task[None]] = set()
        self._wedges: list[asyncio.Task[None]] = []

    async def lane(self) -> None:
        """Send turn after turn, each to a session of its own."""
        while not self._is_over:
            session = f"random-{len(self.sessions):05d}"
            self.sessions.append(session)
            self.open.add(session)
            turn = await Chat(self._app.model_for(""), app=self._app, session=session).send(ask("four_steps", session))
            try:
                async with asyncio.timeout(PATIENCE):
                    await turn
            except TimeoutError:
                self.late.append(session)
            self.open.discard(session)

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
                given = await self._given_to(worker)
                self.kills.append(Kill(worker.name, time.time(), given=given))
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
            self.away.append(time.time() - self.kills[-1].at)
        else:
            session = f"wedge-{self.faults[name]}"
            self.kills.append(Kill("", time.time(), session))
            self._wedges.append(asyncio.create_task(self._wedge(session)))

    async def _wedge(self, session: str) -> None:
        chat = Chat(ScenarioModel(), app=self._app, session=session)
        with suppress(Exception):
            await chat.send(ask("blocks", session))

    async def _given_to(self, worker: WorkerProcess) -> frozenset[str]:
        """The sessions that Temporal has given to a worker: it may not have begun to drive them."""
        if self._cell.temporal is None:
            return frozenset()
        from tools.chaos.temporal_sessions import connect, given_to

        if self._temporal is None:
            self._temporal = await connect(self._cell.temporal.url)
        return await given_to(self._temporal, worker.process.pid, self.open)

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
        away = dict(zip([kill.at for kill in self.kills if kill.how == "restart"], self.away, strict=True))
        committed = await commit_times(self._cell.postgres.url)
        kills = [_blocked(kill, by_session[kill.how]) for kill in self.kills]
        violations = [f"{session}: the turn did not end within {PATIENCE:g} s" for session in self.late]
        progress: dict[str, list[float]] = {}
        last: dict[str, list[float]] = {}
        again: Counter[str] = Counter()
        slow: list[str] = []
        unknown = 0
        for session in self.sessions:
            entries, lines = await self._app.store.events(session), by_session[session]
            hit = [kill for kill in kills if is_hit(kill, session, entries, lines)]
            for kill in hit:
                seconds = min(next_commit(kill.at, entries, committed[session]) - kill.at, PATIENCE)
                progress.setdefault(kill.how, []).append(seconds)
                if kill.how == "restart":
                    progress.setdefault("back", []).append(max(0.0, seconds - away[kill.at]))
                is_again = any(kill.at < other.at <= kill.at + seconds for other in hit)
                again[kill.how] += is_again
                if not is_again:
                    last.setdefault(kill.how, []).append(seconds)
                if seconds > SLOW:
                    slow.append(f"{session}: {seconds:.2f} s after {kill.how}: {_timeline(kill, seconds, hit, lines)}")
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
            self.away,
        )


async def commit_times(url: str) -> dict[str, list[tuple[int, float]]]:
    """When the database committed each row of each log: positions and times, by session.

    The time in an event is that of its writer, who may then have waited for the database.
    """
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    connect: Any = getattr(asyncpg, "connect")  # noqa: B009 - it has no types
    connection = await connect(url)
    rows: list[Any] = await connection.fetch(
        "SELECT session, seq, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 FROM events ORDER BY session, seq"
    )
    await connection.close()
    found: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for session, seq, at in rows:
        found[session].append((seq, at))
    return found


def next_commit(after: float, entries: Sequence[Entry], rows: Sequence[tuple[int, float]]) -> float:
    """When the first event was committed that was made after a time; infinity: none was.

    A row has the events up to its position. What was made before and committed after is no progress.
    """
    made = next((entry.seq for entry in entries if entry.event.at > after), None)
    return next((at for seq, at in rows if made is not None and seq >= made), float("inf"))


def _timeline(kill: Kill, seconds: float, hit: Sequence[Kill], lines: Sequence[LedgerLine]) -> str:
    """What happened to a session from a fault to its next event: further faults that hit it, and who drove it when."""
    until = kill.at + seconds
    seen = [(other.at, f"{other.how} {other.worker}".strip()) for other in hit if kill.at <= other.at <= until]
    seen += [(line.at, f"{line.kind} by {line.worker}") for line in lines if kill.at < line.at <= until]
    return ", ".join(f"{at - kill.at:.2f} {what}" for at, what in sorted(seen))


def _blocked(kill: Kill, lines: Sequence[LedgerLine]) -> Kill:
    """The worker whose event loop a tool blocked, and when: at the first request of the session with that tool."""
    if kill.how.startswith("wedge-"):
        requests = [line for line in lines if line.kind == "request"]
        return Kill(requests[0].worker, requests[0].at + PACE, "wedge") if requests else Kill("none", kill.at, "wedge")
    return kill


def is_hit(kill: Kill, session: str, entries: Sequence[Entry], lines: Sequence[LedgerLine]) -> bool:
    """Whether a session was being driven by what was killed: the ledger's last line before is of that worker, or the
    engine had given the session to it.
    """
    if any(isinstance(entry.event, Terminal) and entry.event.at <= kill.at for entry in entries):
        return False
    before = [line for line in lines if line.at <= kill.at and line.kind != "ack"]
    return session in kill.given or (bool(before) and kill.worker in ("", before[-1].worker))


async def kill_at_random(
    kills: int = 110,
    lanes: int = 50,
    workers: int = 5,
    seed: int = 0,
    engine: EngineName = "restate",
    has_faults: bool = False,
) -> RandomKillReport:
    """Run a campaign."""
    async with cell(engine=engine, track_commit_timestamp="on") as where:
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
