"""Fencing campaign: a driver that was stopped and wakes up after another has taken over commits nothing.

SIGSTOP simulates a machine that hangs: the process exists, holds its connections, and continues later where it was. At
each of these points the driving worker is stopped, the turn has to end without it, and then it is woken.

    python -m tools.chaos.fence [--engine postgres]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import time

from msgspec import Struct

from everturn.app import App
from tools.chaos.cell import ENGINES, Cell, EngineName, cell
from tools.chaos.checks import check
from tools.chaos.evidence import Evidence
from tools.chaos.kill import drive
from tools.chaos.plan import read_token
from tools.chaos.transcript import normalize_log

POINTS = (
    "log.StepFinished.before",  # about to write the model's answer
    "log.CallStarted.before",  # about to write that calls run, and then to run them
    "tool.pay.before",  # has written it, and is about to have the effect
    "store.commit.before",  # in the middle of a transaction
    "model.step2.batch0",  # streaming
)
PATIENCE = 120.0
AFTERWARDS = 3.0  # seconds the woken driver has to do harm


class Fenced(Struct, frozen=True):
    """The result of a stop at one point."""

    point: str
    seconds: float  # until the turn had ended without the stopped driver
    violations: tuple[str, ...]


async def _stop(where: Cell, app: App, point: str, whole: object) -> Fenced:
    session, token = f"stop-{point}", where.home / f"stopped-{point}"
    await where.arm({point: {"do": "stop", "token": str(token)}})
    entries, trouble = await drive(app, session, PATIENCE)
    stopped = read_token(str(token))
    if stopped is None or trouble:
        return Fenced(point, PATIENCE, (trouble or "nobody was stopped",))
    seconds = time.time() - stopped.at
    os.kill(stopped.pid, signal.SIGCONT)
    await asyncio.sleep(AFTERWARDS)
    after = await app.store.events(session)
    violations = [str(violation) for violation in check(Evidence(session, after, where.lines(), 1, whole))]  # pyright: ignore[reportArgumentType]
    if after != entries:
        violations.append(f"the one that woke up wrote {len(after) - len(entries)} events")
    return Fenced(point, seconds, tuple(violations))


async def fence(points: tuple[str, ...] = POINTS, engine: EngineName = "restate") -> list[Fenced]:
    """Stop the driver at each of these points, and wake it when its turn is over."""
    async with cell(engine=engine) as where:
        await where.start_workers(3)
        async with where.client() as app:
            whole = normalize_log((await drive(app, "stop-whole"))[0], "stop-whole")
            return [await _stop(where, app, point, whole) for point in points]


def main() -> None:
    """Run the campaign, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, default="restate")
    fenced = asyncio.run(fence(engine=parser.parse_args().engine))
    for result in fenced:
        print(
            f"{result.point}: over after {result.seconds:.1f} s; {len(result.violations)} violations",
            *result.violations,
        )
    raise SystemExit(any(result.violations for result in fenced))


if __name__ == "__main__":
    main()
