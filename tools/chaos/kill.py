"""Kill campaign: kill -9 of the driving worker at every named point of a turn of four steps and eight calls.

First the turn is driven once to record which points it passes. Then, for each of them, three workers are ready, the one
that reaches the point first is killed, and nothing else is done: the turn has to finish by itself, and the log and the
ledger of effects are compared with those of the undisturbed turn.

    python -m tools.chaos.kill [--points N] [--seed N] [--engine postgres]
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from everturn.app import App
from everturn.chat import Chat
from everturn.core.events import CallFinished, Entry
from tools.chaos.cell import ENGINES, Cell, EngineName, cell
from tools.chaos.checks import check
from tools.chaos.evidence import Evidence
from tools.chaos.figures import percentiles, write_figures
from tools.chaos.plan import FaultRecord, read_token
from tools.chaos.scenario import ask
from tools.chaos.transcript import normalize_log

WORKERS = 3
PATIENCE = 60.0  # seconds a turn has to end; a longer one is a violation
# Reached again and again by workers without the turn, or for every piece of a stream.
OFTEN = 6


class KillResult(Struct, frozen=True):
    """The result of a kill at one point."""

    point: str
    nth: int
    happened: bool
    progress: float | None = None  # seconds from the kill to the next event of the turn; None: it was over by then
    unknown: int = 0  # calls whose outcome is not known
    violations: tuple[str, ...] = ()


class KillReport(Struct, frozen=True):
    """The results of all kills."""

    kills: tuple[KillResult, ...]

    @property
    def happened(self) -> list[KillResult]:
        """Those at points that were reached."""
        return [kill for kill in self.kills if kill.happened]

    @property
    def violations(self) -> list[str]:
        """All violations, as text."""
        return [f"{kill.point}#{kill.nth}: {text}" for kill in self.kills for text in kill.violations]

    def figures(self) -> dict[str, Any]:
        """The report without the single kills."""
        return {
            "kills": len(self.happened),
            "points": len({kill.point for kill in self.happened}),
            "progress": percentiles(kill.progress for kill in self.happened if kill.progress is not None),
            "unknown": sum(kill.unknown for kill in self.happened),
            "violations": self.violations,
        }

    def __str__(self) -> str:
        """The report as text."""
        times = sorted(kill.progress for kill in self.happened if kill.progress is not None)
        slow = sorted(((kill.progress or 0, f"{kill.point}#{kill.nth}") for kill in self.happened), reverse=True)[:5]
        middle, late = (times[len(times) // 2], times[int(len(times) * 0.99)]) if times else (0.0, 0.0)
        return "\n".join(
            [
                f"{len(self.happened)} kills at {len({kill.point for kill in self.happened})} named points"
                f" ({len(self.kills) - len(self.happened)} not reached)",
                f"from kill to progress: p50 {middle:.2f} s, p99 {late:.2f} s, max {times[-1] if times else 0:.2f} s",
                "slowest: " + ", ".join(f"{name} {seconds:.2f} s" for seconds, name in slow),
                f"outcome unknown: {sum(kill.unknown for kill in self.happened)} calls",
                f"violations: {len(self.violations)}",
                *self.violations[:20],
            ]
        )


async def drive(app: App, session: str, max_wait: float = PATIENCE) -> tuple[list[Entry], str]:
    """Send the turn and wait for its end, as a passive client would; its log, and the violation if any."""
    chat = Chat(app.model_for(""), app=app, session=session)
    turn = await chat.send(ask("four_steps", session))
    trouble = ""
    try:
        async with asyncio.timeout(max_wait):
            await turn
    except TimeoutError:
        trouble = f"the turn did not end within {max_wait:g} s"
    return await app.store.events(session), trouble


async def points_of(where: Cell, app: App) -> list[tuple[str, int]]:
    """The points that a turn passes, each as often as it passes it, in the order in which it first does."""
    trace = where.home / "trace"
    await where.arm({"*": {"do": "trace", "file": str(trace)}})
    await drive(app, "kill-traced")
    await where.arm(None)
    counted = Counter(trace.read_text(encoding="utf-8").split())
    return [(point, nth) for point, times in counted.items() for nth in range(1, min(times, OFTEN) + 1)]


async def _kill(where: Cell, app: App, number: int, point: str, nth: int, whole: Sequence[object]) -> KillResult:
    session, token = f"kill-{number:04d}", where.home / f"token{number}"
    await where.arm({point: {"do": "kill", "nth": nth, "token": str(token)}})
    entries, trouble = await drive(app, session)
    happened = read_token(str(token))
    evidence = Evidence(session, entries, where.lines(), int(happened is not None), whole)  # pyright: ignore[reportArgumentType]
    violations = [trouble] if trouble else [str(violation) for violation in check(evidence)]
    settled = [entry.event for entry in entries if isinstance(entry.event, CallFinished)]
    return KillResult(
        point,
        nth,
        happened is not None,
        _progress(entries, happened),
        sum(event.state == "outcome_unknown" for event in settled),
        tuple(violations),
    )


def _progress(entries: Sequence[Entry], happened: FaultRecord | None) -> float | None:
    if happened is None:
        return None
    after = [entry.event.at - happened.at for entry in entries if entry.event.at > happened.at]
    return min(after, default=None)


async def kill_anywhere(
    limit: int | None = None,
    seed: int = 0,
    only: Sequence[tuple[str, int]] = (),
    sabotage: str = "",
    engine: EngineName = "restate",
) -> KillReport:
    """Kill the driving worker at every named point, at `limit` of them, chosen by the seed, or `only` at these."""
    async with cell(engine=engine) as where:
        await where.start_workers(1)  # this one has no bug, whatever is built into the others
        async with where.client() as app:
            points = await points_of(where, app)
            whole = normalize_log(await app.store.events("kill-traced"), "kill-traced")
            chosen = points if limit is None else random.Random(seed).sample(points, min(limit, len(points)))
            chosen = only or chosen
            if sabotage:
                await where.aclose()
            kills: list[KillResult] = []
            for number, (point, nth) in enumerate(chosen):
                alive = [worker for worker in where.workers if worker.is_running]
                await where.start_workers(WORKERS - len(alive), sabotage=sabotage)
                kills.append(await _kill(where, app, number, point, nth, whole))
            return KillReport(tuple(kills))


def main() -> None:
    """Run the campaign, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, help="at how many points; without it, at all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=ENGINES, default="restate")
    parser.add_argument("--json", default="", help="write the figures there")
    options = parser.parse_args()
    report = asyncio.run(kill_anywhere(options.points, options.seed, engine=options.engine))
    print(report)
    write_figures(options.json, report.figures())
    raise SystemExit(bool(report.violations))


if __name__ == "__main__":
    main()
