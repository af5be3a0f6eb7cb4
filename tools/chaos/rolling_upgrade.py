"""Rolling upgrade campaign: workers of two releases side by side, with turns running all the time.

The newer release has another version of the log format (`versions`). First only workers of the older one run; then
both, the newer writing what the older can read; then the older ones leave, some by SIGTERM and some by kill -9; then
the newer writes its own version. Nothing fails, nothing is done twice.

    python -m tools.chaos.rolling_upgrade [--turns N]
"""

from __future__ import annotations

import argparse
import asyncio

from msgspec import Struct

from everturn.app import App
from tools.chaos.cell import Cell, WorkerProcess, cell
from tools.chaos.checks import check
from tools.chaos.evidence import Evidence
from tools.chaos.kill import drive
from tools.chaos.transcript import normalize_log
from tools.chaos.versions import NEXT, NOW, pretend

AT_ONCE = 16


class Upgraded(Struct, frozen=True):
    """The outcome of the turns."""

    turns: int
    restarts: int
    kills: int
    violations: tuple[str, ...]


async def upgrade(turns: int = 200) -> Upgraded:
    """Go from one release to the next while turns run; this process stays one of the newer release."""
    pretend(NEXT)
    async with cell() as where:
        old = await where.start_workers(2)
        async with where.client() as app:
            whole = normalize_log((await drive(app, "roll-whole"))[0], "roll-whole")
            done = asyncio.create_task(_turns(app, turns))
            kills = await _roll(where, old, done)
            violations: list[str] = []
            restarts = 0
            lines = where.lines()
            for session, trouble in await done:
                entries = await app.store.events(session)
                restarts += sum(type(entry.event).__name__ == "StepRestarted" for entry in entries)
                found = check(Evidence(session, entries, lines, kills + 1, whole))
                violations += [f"{session}: {trouble}"] if trouble else [f"{session}: {problem}" for problem in found]
            return Upgraded(turns, restarts, kills, tuple(violations))


async def _turns(app: App, turns: int) -> list[tuple[str, str]]:
    room = asyncio.Semaphore(AT_ONCE)

    async def drive_turn(number: int) -> tuple[str, str]:
        async with room:
            session = f"roll-{number:05d}"
            return session, (await drive(app, session))[1]

    return list(await asyncio.gather(*(drive_turn(number) for number in range(turns))))


async def _roll(where: Cell, old: list[WorkerProcess], done: asyncio.Task[list[tuple[str, str]]]) -> int:
    """Replace workers one by one, and return how many were killed."""

    async def a_while() -> None:
        await asyncio.wait({done}, timeout=2.0)

    await a_while()
    beside = await where.start_workers(2, version=NEXT, writes=NOW)
    await a_while()
    await old[0].stop()
    await a_while()
    await old[1].kill9()
    await a_while()
    await where.start_workers(1, version=NEXT)
    await beside[0].stop()
    await beside[1].stop()
    return 1


def main() -> None:
    """Run the campaign, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=200)
    upgraded = asyncio.run(upgrade(parser.parse_args().turns))
    print(f"{upgraded.turns} turns, {upgraded.restarts} steps began again, {upgraded.kills} worker killed")
    print(f"violations: {len(upgraded.violations)}", *upgraded.violations[:20], sep="\n")
    raise SystemExit(bool(upgraded.violations))


if __name__ == "__main__":
    main()
