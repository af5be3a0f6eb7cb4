"""Turns under way all the time while every node and every worker is replaced: does any of them notice?

First each node and each worker is asked to leave, one by one, and another process of the same release takes its place.
Then the same again with the next release, which knows another version of the log format (`versions.py`): it writes what
the older one can read as long as that one is there. Last, workers that write the new format take over.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter

from msgspec import Struct

from everturn.client import Server
from everturn.client.turn import RemoteTurn
from everturn.core.events import StepRestarted
from everturn.errors import EverturnError
from everturn.testing.provider import Call, Say
from tests.helpers.waiting import wait_until
from tools.chaos.api import ApiCell, ApiTurnScreen
from tools.chaos.api_tools import VERSION
from tools.chaos.resume import compare_with_stored
from tools.chaos.versions import NEXT, NOW

SAID = [f"piece {number}, " for number in range(40)]
WRITES = "EVERTURN_CLUSTER__WRITES"


class Sizes(Struct, frozen=True):
    """How much of everything."""

    turns: int = 200  # under way at any time
    pace: float = 0.2  # seconds between two pieces of an answer
    rest: float = 2.0  # seconds between two replacements
    same: int = 3  # nodes, and workers, that are replaced by others of the same release
    seed: int = 0


class Rolled(Struct, frozen=True):
    """What became of the turns."""

    at_once: int
    turns: int
    nodes: int  # that were replaced
    workers: int
    restarts: int  # of steps: a worker did not wait for their end
    failed: int
    twice: int  # calls whose tool ran more than once
    versions: dict[str, int]  # of the release that ran tools: how many
    longest: float  # seconds that a client was shown nothing, while its answer was being streamed
    seconds: float
    load: float
    violations: list[str]


class _Client:
    """Runs one turn after the other, and reads each with `everturn.client`."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.turns: list[RemoteTurn] = []
        self.restarts = self.failed = 0
        self.longest = 0.0
        self.violations: list[str] = []

    async def run(self, number: int, is_over: asyncio.Event) -> None:
        while not is_over.is_set():
            try:
                await self._one(number)
            except (EverturnError, TimeoutError) as error:
                self.failed += 1
                self.violations.append(f"client {number}: {type(error).__name__}: {error}")

    async def _one(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        turn = await self._server.start_session(f"Work on {number}.{len(self.turns)}.", agent="works")
        self.turns.append(turn)
        screen, listening, last = ApiTurnScreen(), turn.events(), 0.0
        async with asyncio.timeout(180):
            async for item in listening:
                screen.take("", item)
                self.restarts += isinstance(item.event, StepRestarted)
                if item.delta is not None:
                    self.longest = max(self.longest, loop.time() - last if last else 0.0)
                last = loop.time() if item.delta is not None else 0.0
        stored = (await self._server.session(turn.session).messages())[-1].text
        found = compare_with_stored(screen, stored)
        if stored != "".join(SAID):
            found.append(
                f"the turn did not say what the model did, but {stored[-200:]!r}; it ended with {screen.ended}"
            )
        self.failed += b"TurnCompleted" not in screen.ended
        self.violations += [f"client {number}: {turn.session}: {violation}" for violation in found]


async def rolling(cell: ApiCell, sizes: Sizes) -> Rolled:
    """Replace everything under load."""
    began, rng = time.monotonic(), random.Random(sizes.seed)
    calls = [Call("look", '{"path": "a"}'), Call("put", '{"path": "b", "text": "x"}'), Call("pay", '{"amount": 1}')]
    cell.provider.script(
        "works", [calls, [Call("pay", '{"amount": 2}')], [Say(piece, 1) for piece in SAID]], pace=sizes.pace
    )
    clients: list[_Client] = []
    for _ in range(sizes.turns):
        clients.append(_Client(await cell.server(rng.sample(cell.addresses, len(cell.addresses)))))
    is_over = asyncio.Event()
    refused = len(cell.provider.refusals)
    async with asyncio.TaskGroup() as group:
        for number, client in enumerate(clients):
            group.create_task(client.run(number, is_over))
        try:
            await asyncio.sleep(sizes.rest + 2)
            nodes, workers = await _roll(cell, sizes)
        finally:
            is_over.set()
    done = Counter(line.key for line in cell.effects())
    ours = {turn.session for client in clients for turn in client.turns}
    lines = [line for line in cell.effects() if line.session in ours]
    twice = [line.key for line in lines if done[line.key] > 1]
    turns = sum(len(client.turns) for client in clients)
    violations = [violation for client in clients for violation in client.violations]
    violations += [f"{key} ran {done[key]} times" for key in sorted(set(twice))]
    if len(lines) - (len(twice) - len(set(twice))) != 4 * turns:
        violations.append(f"{turns} turns made {len(lines)} effects, and not four each")
    violations += [f"refused: {refusal}" for refusal in cell.provider.refusals[refused:]]
    return Rolled(
        at_once=sizes.turns,
        turns=turns,
        nodes=nodes,
        workers=workers,
        restarts=sum(client.restarts for client in clients),
        failed=sum(client.failed for client in clients),
        twice=len(set(twice)),
        versions=dict(Counter(line.worker or str(NOW) for line in lines)),
        longest=max(client.longest for client in clients),
        seconds=time.monotonic() - began,
        load=os.getloadavg()[0],
        violations=violations,
    )


async def _roll(cell: ApiCell, sizes: Sizes) -> tuple[int, int]:
    """Replace nodes and workers; how many of each."""
    house, nodes, workers = cell.house, 0, 0
    for node in house.nodes[: sizes.same]:
        await house.restart_node(node)
        nodes += 1
        await asyncio.sleep(sizes.rest)
    for pid in house.worker_pids()[: sizes.same]:
        known = set(house.worker_pids())
        os.kill(pid, signal.SIGTERM)
        await wait_until(lambda known=known: _is_replaced(cell, known), 90, pause=0.1)
        await asyncio.sleep(sizes.rest)
        workers += 1
    beside = {VERSION: str(NEXT), WRITES: str(NOW)}
    count = len(house.worker_pids())
    [old] = house.parents
    await house.start_workers(count, beside)
    await asyncio.sleep(sizes.rest)
    await old.stop()
    for node in list(house.nodes):
        await house.restart_node(node, beside)
        nodes += 1
        await asyncio.sleep(sizes.rest)
    middle = house.parents[-1]
    await house.start_workers(count, {VERSION: str(NEXT)})
    await asyncio.sleep(sizes.rest)
    await middle.stop()
    await asyncio.sleep(sizes.rest)
    return nodes, workers + 2 * count


async def _is_replaced(cell: ApiCell, known: set[int]) -> bool:
    """Whether there is a new worker, and it drives."""
    [parent] = [parent for parent in cell.house.parents if parent.is_running]
    now = set(cell.house.worker_pids())
    log = parent.stderr.read_text(encoding="utf-8", errors="replace")
    return len(now) == len(known) and all(f"worker {pid} drives" in log for pid in now) and now != known
