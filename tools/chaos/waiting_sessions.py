"""Waiting campaign: what sessions cost that all wait for a person, and how soon an answer is processed.

python -m tools.chaos.waiting_sessions --sessions 10000
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import time
import urllib.request
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager

import msgspec
from msgspec import Struct

from everturn import failpoints
from everturn.app import App
from everturn.chat.session import Chat
from everturn.chat.turn import Turn
from everturn.core.events import CallStarted, Event, Gate, GateResolved, TurnCompleted
from tools.chaos.cell import Cell, cell
from tools.chaos.scenario import ScenarioModel, ask

AT_ONCE = 64  # concurrent sends
GLANCE = 0.5  # seconds between two checks whether every session waits
PATIENCE = 30.0  # seconds a session may take to reach its gate, or its end, on a busy machine
ALL = 600.0  # seconds for all of them together
TICK = 0.01  # seconds between two measurements of how late the machine is


class WaitingSizes(Struct, frozen=True):
    """The sizes of a campaign."""

    sessions: int = 10_000
    answers: int = 200  # one after the other, and as many again at random moments
    settling: float = 5.0  # seconds in which the servers clean up after so many turns, which is not the cost of waiting
    idle: float = 20.0  # seconds over which the cost is measured
    rate: float = 10.0  # answers in a second, when they come at random moments
    workers: int = 3
    seed: int = 0


class Spread(Struct, frozen=True):
    """Milliseconds: median, 99th percentile, maximum."""

    p50: float
    p99: float
    worst: float


class AnswerLatencies(Struct, frozen=True):
    """From the moment an answer was stored until something had happened, by the times in the log."""

    taken: Spread  # before that: until it was stored
    answered: Spread  # a driver has processed it
    started: Spread  # the tool is about to run
    ended: Spread  # the turn is over
    noise: Spread  # by how much a timer of the measuring process was late meanwhile: what a busy machine adds


class WaitingReport(Struct, frozen=True):
    """The cost of waiting."""

    sessions: int
    parking: float  # seconds until all of them waited
    leftover: int  # drives that were still queued then, with nothing left to do
    idle: dict[str, float]  # cores, by part; the node that answers is one of them
    restart: float  # seconds until a new worker was ready, when all were killed
    restart_cpu: float  # processor seconds it used for that
    restarted: dict[str, float]  # cores after that, when the engine holds no more connections from busier times
    in_turn: AnswerLatencies
    at_random: AnswerLatencies
    load: float  # of the whole machine, with all its users
    violations: list[str]

    @property
    def idle_cores(self) -> float:
        """The cores of all parts together."""
        return sum(self.idle.values())


def spread(seconds: Iterable[float]) -> Spread:
    """Summarize durations."""
    ordered = sorted(1000 * duration for duration in seconds)
    last = len(ordered) - 1
    return Spread(statistics.median(ordered), ordered[round(0.99 * last)], ordered[last])


async def waiting(sizes: WaitingSizes) -> WaitingReport:
    """Let sessions wait, measure the cost, restart the workers, and answer some."""
    rng = random.Random(sizes.seed)
    async with cell() as cluster, cluster.client() as node:
        await cluster.start_workers(sizes.workers)
        began = time.monotonic()
        waits = await _park(node, sizes.sessions)
        parking, leftover = time.monotonic() - began, await drives_in(cluster)
        await _rest(cluster, sizes.settling)
        idle = await _cores(cluster, sizes.idle)
        for worker in cluster.workers:
            await worker.kill9()
        began = time.monotonic()
        first = await cluster.start_worker()
        restart, restart_cpu = time.monotonic() - began, first.cpu()
        await cluster.start_workers(sizes.workers - 1)
        await _rest(cluster, min(1.0, sizes.settling))
        restarted = await _cores(cluster, sizes.idle)
        chosen = rng.sample(waits, 2 * sizes.answers)
        in_turn = await _answer_in_turn(node, chosen[: sizes.answers])
        at_random = await _answer_at_random(node, chosen[sizes.answers :], sizes.rate, rng)
        left = len(await node.store.gates())
    violations: list[str] = []
    if len(waits) != sizes.sessions:
        violations.append(f"{len(waits)} of {sizes.sessions} sessions wait")
    if left != len(waits) - 2 * sizes.answers:
        violations.append(f"of {len(waits)} gates {left} are left, when {2 * sizes.answers} were answered")
    return WaitingReport(
        sizes.sessions,
        parking,
        leftover,
        idle,
        restart,
        restart_cpu,
        restarted,
        in_turn,
        at_random,
        os.getloadavg()[0],
        violations,
    )


# Waiting --------------------------------------------------------------------------------------------------------

Wait = tuple[Turn, Gate]


async def _park(node: App, sessions: int) -> list[Wait]:
    """Bring sessions to their gates."""
    turns: dict[str, Turn] = {}
    numbers = iter(range(sessions))

    async def send() -> None:
        for number in numbers:
            session = f"waiting-{number}"
            turn = await Chat(ScenarioModel(), app=node, session=session).send(ask("asks", session))
            turns[turn.id] = turn

    await asyncio.gather(*(send() for _ in range(AT_ONCE)))
    async with asyncio.timeout(ALL):
        while await node.store.sessions(awake=True):  # noqa: ASYNC110 - what it waits for happens in other processes
            await asyncio.sleep(GLANCE)
    return [(turns[row.gate.turn], row.gate) for row in await node.store.gates()]


async def drives_in(cluster: Cell) -> int:
    """How many drives the engine runs or has queued."""

    restate = cluster.restate
    assert restate is not None

    def count() -> int:
        body = msgspec.json.encode({"query": "SELECT count(1) AS drives FROM sys_invocation"})
        headers = {"content-type": "application/json", "accept": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{restate.admin}/query", body, headers)) as answer:
            return msgspec.json.decode(answer.read(), type=_Drives).rows[0]["drives"]

    return await asyncio.to_thread(count)


class _Drives(Struct, frozen=True):
    rows: list[dict[str, int]]


async def _rest(cluster: Cell, seconds: float) -> None:
    """Wait until nothing is driven, and then until the servers have cleaned up."""
    async with asyncio.timeout(ALL):
        while await drives_in(cluster):  # noqa: ASYNC110 - as above
            await asyncio.sleep(GLANCE)
    await asyncio.sleep(seconds)


async def _cores(cluster: Cell, seconds: float) -> dict[str, float]:
    """How many processors each part keeps busy."""
    before, began = cluster.cpu(), time.monotonic()
    client = time.process_time()  # measuring the others costs more than waiting does
    await asyncio.sleep(seconds)
    client, lasted = time.process_time() - client, time.monotonic() - began
    return {
        **{part: (spent - before[part]) / lasted for part, spent in cluster.cpu().items()},
        "client": client / lasted,
    }


# Answering ------------------------------------------------------------------------------------------------------


class _Times(Struct, frozen=True):
    """When an answer was sent, when it was stored, and what the log says about its effects."""

    given: float
    safe: float
    events: Sequence[Event]

    def until(self, kind: type[Event]) -> float:
        return next(event.at for event in self.events if isinstance(event, kind)) - self.safe


class _Safe:
    """Records when a command of this process was stored: after the store's commit, and before any driver is woken."""

    def __init__(self) -> None:
        self.at: dict[asyncio.Task[object] | None, float] = {}

    def __call__(self, point: str) -> None:
        if point == "command.admitted":
            self.at[asyncio.current_task()] = time.time()

    def __enter__(self) -> _Safe:
        failpoints.install_plan(self)
        return self

    def __exit__(self, *error: object) -> None:
        failpoints.install_plan(None)


async def _answer(node: App, wait: Wait, safe: _Safe) -> _Times:
    """Answer a gate, and wait for the end of the turn."""
    turn, gate = wait
    sent_at = time.time()
    await turn.answer(gate, allow="once")
    async with asyncio.timeout(PATIENCE):
        await turn
    events = [entry.event for entry in await node.store.events(turn.session, turn=turn.id)]
    return _Times(sent_at, safe.at[asyncio.current_task()], events)


async def _answer_in_turn(node: App, waits: Sequence[Wait]) -> AnswerLatencies:
    with _Safe() as safe:
        async with _noise() as noise:
            times = [await _answer(node, wait, safe) for wait in waits]
    return _summed(times, noise)


async def _answer_at_random(node: App, waits: Sequence[Wait], rate: float, rng: random.Random) -> AnswerLatencies:
    async def later(delay: float, wait: Wait) -> _Times:
        await asyncio.sleep(delay)
        return await _answer(node, wait, safe)

    span = len(waits) / rate
    with _Safe() as safe:
        async with _noise() as noise:
            times = await asyncio.gather(*(later(rng.uniform(0, span), wait) for wait in waits))
    return _summed(times, noise)


@asynccontextmanager
async def _noise() -> AsyncGenerator[list[float]]:
    late: list[float] = []

    async def look() -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(TICK)
            late.append(time.monotonic() - began - TICK)

    looking = asyncio.ensure_future(look())
    try:
        yield late
    finally:
        looking.cancel()


def _summed(times: Sequence[_Times], noise: Sequence[float]) -> AnswerLatencies:
    return AnswerLatencies(
        taken=spread(timing.safe - timing.given for timing in times),
        answered=spread(timing.until(GateResolved) for timing in times),
        started=spread(timing.until(CallStarted) for timing in times),
        ended=spread(timing.until(TurnCompleted) for timing in times),
        noise=spread(noise),
    )


def main() -> None:
    """Run the campaign, and print what it found."""
    parser = argparse.ArgumentParser(description="What sessions that wait cost, and how soon an answer is acted on.")
    sizes: dict[str, int | float] = msgspec.structs.asdict(WaitingSizes())
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    report = asyncio.run(waiting(msgspec.convert(vars(parser.parse_args()), WaitingSizes)))
    print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    raise SystemExit(1 if report.violations else 0)


if __name__ == "__main__":
    main()
