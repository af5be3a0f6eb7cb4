"""Blocked event loop campaign: a tool blocks a worker while neighbours run. `python -m tools.chaos.blocked_loop`.

    --wedges N      sessions whose tool calls `time.sleep(1000)`, one after the other (0: none, to see that no worker is killed)
    --again         the tool may be run again (`read`), so that it blocks the worker that takes over, too
    --neighbours N  sessions that have turn after turn, with --rest S seconds between two, on --workers N workers
    --kill-every S  a `kill -9` of a random worker every S seconds, however young it is (0: none)
    --load N        processes beside it that only use up processors
    --seconds S     for how long

It prints how long neighbours' turns took, how many workers ended and of what. Judge by that, on a machine that you know.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from contextlib import suppress

from everturn.app import App
from everturn.chat.session import Chat
from tools.chaos.cell import ENGINES, Cell, WorkerProcess, cell
from tools.chaos.scenario import ScenarioModel, ask


class BlockedLoopCampaign:
    """The measurements of a campaign."""

    def __init__(self, where: Cell, node: App, scenario: str, rest: float) -> None:
        self._cell, self._node, self._scenario, self._rest = where, node, scenario, rest
        self.took: list[float] = []
        self.ended: Counter[int] = Counter()
        self.silences: list[float] = []
        self.rested = self.quarantined = 0

    async def keep_workers(self) -> None:
        """Start another worker for each that ended, as the parent of a cluster does."""

        async def start() -> None:
            with suppress(RuntimeError):  # it was killed before it was ready
                await self._cell.start_worker(pace=0.05)

        async with asyncio.TaskGroup() as group:
            while True:
                for worker in [worker for worker in self._cell.workers if not worker.is_running]:
                    self._cell.workers.remove(worker)
                    self.ended[worker.process.returncode or 0] += 1
                    self.count(worker)
                    group.create_task(start())
                await asyncio.sleep(0.1)

    def count(self, worker: WorkerProcess) -> None:
        """Count quarantined and delayed sessions in the log of a worker."""
        text = worker.stderr.read_text(encoding="utf-8", errors="replace")
        self.rested += text.count("it is tried again by itself")
        self.quarantined += text.count("and is left alone")

    async def neighbour(self, name: str, until: float) -> None:
        """A session that runs turn after turn."""
        chat, number = Chat(ScenarioModel(), app=self._node, session=name), 0
        while time.monotonic() < until:
            started = time.monotonic()
            await (await chat.send(ask(self._scenario, name, number)))
            self.took.append(time.monotonic() - started)
            number += 1
            await asyncio.sleep(self._rest * random.uniform(0.5, 1.5))

    async def kill(self, every: float) -> None:
        """Kill worker after worker."""
        while True:
            await asyncio.sleep(every)
            alive = [worker for worker in self._cell.workers if worker.is_running]
            if alive:
                os.kill(random.choice(alive).process.pid, signal.SIGKILL)

    async def look_at_logs(self, sessions: int) -> None:
        """Find the longest gaps between two events of a turn."""
        for number in range(sessions):
            last: dict[str, float] = {}
            for entry in await self._node.store.events(f"n-{number}"):
                turn, at = getattr(entry.event, "turn", ""), entry.event.at
                if turn in last:
                    self.silences.append(at - last[turn])
                last[turn] = at

    async def wedge(self, number: int, again: bool) -> None:
        """A session that blocks its worker."""
        name = f"wedge-{number}"
        turn = await Chat(ScenarioModel(), app=self._node, session=name).send(ask("blocks", name, again=int(again)))
        if not again:
            await turn


async def run(options: argparse.Namespace) -> BlockedLoopCampaign:
    """One campaign."""
    async with cell(engine=options.engine) as where, where.client() as node:
        await where.start_workers(options.workers, pace=0.05)
        load = [
            await asyncio.create_subprocess_exec(sys.executable, "-c", "while True: pass") for _ in range(options.load)
        ]
        campaign = BlockedLoopCampaign(where, node, options.scenario, options.rest)
        keeping = [asyncio.create_task(campaign.keep_workers())]
        try:
            until = time.monotonic() + options.seconds
            if options.kill_every:
                keeping.append(asyncio.create_task(campaign.kill(options.kill_every)))
            async with asyncio.TaskGroup() as group:
                for number in range(options.neighbours):
                    group.create_task(campaign.neighbour(f"n-{number}", until))
                for number in range(options.wedges):
                    await asyncio.sleep(options.seconds / (options.wedges + 1))
                    group.create_task(campaign.wedge(number, options.again))
            await campaign.look_at_logs(options.neighbours)
        finally:
            for task in keeping:
                task.cancel()
            for process in load:
                process.kill()
                await process.wait()
            for worker in where.workers:
                campaign.count(worker)
        return campaign


def main() -> int:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES, default="restate")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--neighbours", type=int, default=40)
    parser.add_argument("--scenario", default="four_steps", choices=("four_steps", "echo"))
    parser.add_argument("--rest", type=float, default=5.0)
    parser.add_argument("--wedges", type=int, default=1)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--kill-every", type=float, default=0.0)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=40.0)
    campaign = asyncio.run(run(parser.parse_args()))
    took = sorted(campaign.took)
    places = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    shown = ", ".join(f"{name} {took[min(int(len(took) * at), len(took) - 1)]:.1f} s" for name, at in places.items())
    print(f"turns of neighbours  {len(took)}: {shown}")
    print(f"of these over 60 s   {sum(seconds > 60 for seconds in took)}")
    print(f"longest silence      {max(campaign.silences, default=0.0):.1f} s between two events of a turn")
    print(f"sessions that rested {campaign.rested}, quarantined {campaign.quarantined}")
    print(f"workers that ended   {dict(campaign.ended)}; load {os.getloadavg()[0]:.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
