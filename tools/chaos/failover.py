"""Failover campaign: the primary PostgreSQL is killed while turns run, and its synchronous standby takes over.

Workers and clients know both servers (`postgresql://…@first,second/…?target_session_attrs=read-write`), so they find
the one that accepts writes. Every turn ends, nothing that was acknowledged is lost, nothing is done twice. With
`--asynchronous`, the standby lags behind when the primary dies: then the campaign has to find what is lost.

    python -m tools.chaos.failover [--turns 100] [--asynchronous]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec import Struct

from everturn.app import App
from everturn.engine.restate import open_worker_socket
from everturn.errors import EverturnError, UnknownSession
from tools.chaos.cell import Cell, ClusterServers
from tools.chaos.checks import check
from tools.chaos.evidence import Evidence
from tools.chaos.figures import write_figures
from tools.chaos.kill import drive
from tools.chaos.transcript import normalize_log
from tools.servers.postgres import PostgresServer, private_postgres, standby_postgres

LANES = 8
LAG = 1.0  # seconds in which an asynchronous standby receives nothing before the primary dies
PAUSE = 2.0  # seconds between the death of the primary and the promotion: a failover manager needs some


class FailoverReport(Struct, frozen=True):
    """The outcome of a campaign."""

    turns: int
    running: int  # turns that ran when the primary died
    resumed: float  # seconds from the death of the primary to the end of the next turn
    violations: tuple[str, ...]

    def __str__(self) -> str:
        """The report as text."""
        first = (
            f"{self.turns} turns, {self.running} of them running when the primary died; "
            f"from its death to the end of the next turn {self.resumed:.2f} s (promoted after {PAUSE:g} s)"
        )
        return "\n".join([first, f"violations: {len(self.violations)}", *self.violations[:20]])


async def run_failover(*, turns: int, synchronous: bool = True) -> FailoverReport:
    """Kill the primary in the middle of the turns, promote the standby, and check every session."""
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="everturn-failover-")))
        primary = await stack.enter_async_context(private_postgres(home))
        standby = await stack.enter_async_context(standby_postgres(primary, home, synchronous=synchronous))
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        url = f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"
        sock = stack.enter_context(open_worker_socket("127.0.0.1", 0))
        place = Cell(home, ClusterServers(primary), sock, url)
        stack.push_async_callback(place.aclose)
        await place.start_workers(3, pace=0.02, pause=0.02)
        app = await stack.enter_async_context(place.client())
        whole = normalize_log((await drive(app, "failover-whole"))[0], "failover-whole")
        lanes = _Lanes(app, turns)
        sending = asyncio.create_task(lanes.run())
        await lanes.third.wait()
        running = set(lanes.running)
        died = await _fail_over(primary, standby, synchronous=synchronous)
        await sending
        violations: list[str] = []
        lines = place.lines()
        for session, trouble in lanes.outcomes:
            try:
                entries = await app.store.events(session)
            except UnknownSession:
                violations.append(f"{session}: its input was acknowledged, and the session is lost")
                continue
            found = check(Evidence(session, entries, lines, 1, whole))
            violations += [f"{session}: {text}" for text in ([trouble] if trouble else found)]
        return FailoverReport(
            len(lanes.outcomes), len(running), min(at - died for at in lanes.ends if at > died), tuple(violations)
        )


async def _fail_over(primary: PostgresServer, standby: PostgresServer, *, synchronous: bool) -> float:
    """Kill the primary for good, and promote the standby; the time of the death."""
    if not synchronous:
        await standby.sql("ALTER SYSTEM SET primary_conninfo = ''")
        await standby.sql("SELECT pg_reload_conf()")
        await asyncio.sleep(LAG)
    primary.kill9()
    died = time.time()
    await asyncio.sleep(PAUSE)
    await standby.sql("SELECT pg_promote()")
    return died


class _Lanes:
    """Clients that send one turn after the other."""

    def __init__(self, app: App, turns: int) -> None:
        self._app, self._turns = app, turns
        self._numbers = iter(range(turns))
        self.running: set[str] = set()
        self.outcomes: list[tuple[str, str]] = []
        self.ends: list[float] = []
        self.third = asyncio.Event()  # a third of the turns has ended

    async def run(self) -> None:
        """Send all turns."""
        await asyncio.gather(*(self._lane() for _ in range(LANES)))

    async def _lane(self) -> None:
        for number in self._numbers:
            session = f"failover-{number:05d}"
            self.running.add(session)
            try:
                _, trouble = await drive(self._app, session)
            except EverturnError as error:
                trouble = f"{type(error).__name__}: {error}"
            self.running.discard(session)
            self.outcomes.append((session, trouble))
            self.ends.append(time.time())
            if 3 * len(self.outcomes) >= self._turns:
                self.third.set()


def main() -> None:
    """Run the campaign, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--asynchronous", action="store_true")
    parser.add_argument("--json", default="", help="write the figures there")
    options = parser.parse_args()
    report = asyncio.run(run_failover(turns=options.turns, synchronous=not options.asynchronous))
    print(report)
    write_figures(options.json, report)
    raise SystemExit(bool(report.violations))


if __name__ == "__main__":
    main()
