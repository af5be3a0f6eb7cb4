"""Release campaign: workers of an archived release and of this checkout in one cluster, with turns running all the time.

First only workers of the release run. Then workers of this checkout start beside them and the others leave, one by SIGTERM
and one by kill -9; then the same back again: a rollback; and forward once more. Nothing fails, nothing is done twice.

    python -m tools.chaos.two_releases [--release 0.2.0] [--turns 200] [--engine postgres | restate]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from pathlib import Path

from msgspec import Struct

from everturn.app import App
from tools.chaos.cell import ENGINES, Cell, EngineName, WorkerProcess, cell
from tools.chaos.checks import check
from tools.chaos.evidence import Evidence
from tools.chaos.figures import write_figures
from tools.chaos.kill import drive
from tools.chaos.transcript import normalize_log
from tools.release.archive import RELEASES, UnpackedRelease, list_releases, unpack_release

AT_ONCE = 8
ROLLS = 3  # to this checkout, back to the release, and to this checkout again


class TwoReleasesReport(Struct, frozen=True):
    """The outcome of a campaign."""

    release: str
    turns: int
    kills: int
    effects: dict[str, int]  # effects of tools, by the version of the worker
    both: int  # turns in which workers of both versions had a part
    failed: int  # turns that failed, were lost, or have a call twice
    violations: tuple[str, ...]

    def __str__(self) -> str:
        """The report as text."""
        effects = ", ".join(f"{count} by {name}" for name, count in sorted(self.effects.items()))
        lines = (
            f"{self.turns} turns on {self.release} and this checkout, {self.kills} workers killed; effects: {effects}; "
            f"{self.both} turns by both"
        )
        return "\n".join([lines, f"violations: {len(self.violations)}", *self.violations[:20]])


class _Crew:
    """The workers, and which version each of them has."""

    def __init__(self, place: Cell, release: UnpackedRelease) -> None:
        self._place, self._release = place, release
        self.versions: dict[str, str] = {}
        self.kills = 0

    async def start(self, *, released: bool) -> list[WorkerProcess]:
        """Start two workers of one version."""
        workers = await self._place.start_workers(2, release=self._release if released else None, pace=0.02, pause=0.02)
        name = self._release.manifest.version if released else "this checkout"
        self.versions.update({worker.name: name for worker in workers})
        return workers

    async def leave(self, workers: list[WorkerProcess]) -> None:
        """Stop one worker, and kill the other."""
        await workers[0].stop()
        await workers[1].kill9()
        self.kills += 1


async def run_two_releases(folder: Path, *, turns: int, engine: EngineName = "postgres") -> TwoReleasesReport:
    """Roll between a release and this checkout until the turns are done; this process is of this checkout."""
    with tempfile.TemporaryDirectory(prefix="everturn-release-") as name:
        release = unpack_release(folder, Path(name))
        async with cell(engine=engine) as place:
            crew = _Crew(place, release)
            running = await crew.start(released=True)  # the release makes the schema
            async with place.client() as app:
                whole = normalize_log((await drive(app, "roll-whole"))[0], "roll-whole")
                rolled = asyncio.Event()
                sent = asyncio.create_task(_send_turns(app, turns, rolled))
                for roll in range(ROLLS):
                    beside = await crew.start(released=roll % 2 == 1)
                    await asyncio.sleep(2.0)  # both drive
                    await crew.leave(running)
                    running = beside
                    await asyncio.sleep(1.0)
                rolled.set()
                outcomes = await sent
                violations: list[str] = []
                failed = 0
                lines = place.lines()
                for session, trouble in outcomes:
                    entries = await app.store.events(session)
                    found = check(Evidence(session, entries, lines, crew.kills, whole))
                    failed += bool(trouble or found)
                    violations += [f"{session}: {text}" for text in ([trouble] if trouble else found)]
    effects = Counter(crew.versions[line.worker] for line in lines if line.worker in crew.versions)
    by_session: dict[str, set[str]] = {}
    for line in lines:
        if line.worker in crew.versions:
            by_session.setdefault(line.session, set()).add(crew.versions[line.worker])
    both = sum(len(versions) > 1 for versions in by_session.values())
    return TwoReleasesReport(
        release.manifest.version, len(outcomes), crew.kills, dict(effects), both, failed, tuple(violations)
    )


async def _send_turns(app: App, turns: int, rolled: asyncio.Event) -> list[tuple[str, str]]:
    """Drive at least so many turns, and more until the last roll is over."""
    outcomes: list[tuple[str, str]] = []
    numbers = iter(range(10_000))

    async def lane() -> None:
        while (number := next(numbers)) < turns or not rolled.is_set():
            session = f"roll-{number:05d}"
            outcomes.append((session, (await drive(app, session))[1]))

    await asyncio.gather(*(lane() for _ in range(AT_ONCE)))
    return outcomes


def main() -> None:
    """Run the campaign, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default=max((path.name for path in list_releases()), default=""))
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--engine", choices=ENGINES, default="postgres")
    parser.add_argument("--json", default="", help="write the figures there")
    options = parser.parse_args()
    report = asyncio.run(run_two_releases(RELEASES / options.release, turns=options.turns, engine=options.engine))
    print(report)
    write_figures(options.json, report)
    raise SystemExit(bool(report.violations))


if __name__ == "__main__":
    main()
