"""Resume campaign: readers disconnect and resume during a long turn whose driver dies; each must render the stored
text.

A `TurnScreen` renders only what it receives, as a client would, and keeps its cursor as text, as a browser would. The check
compares what it has rendered with the message in the store, byte for byte.

    python -m tools.chaos.resume --deltas 20000 --readers 50
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import random
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Literal

import msgspec
from msgspec import Struct

from everturn.app import App
from everturn.chat.session import Chat
from everturn.chat.turn import Turn
from everturn.core.deltas import TextDelta, TurnItem
from everturn.core.events import RequestRetried, StepFinished, StepInterrupted, StepRestarted, StepStarted, Terminal
from everturn.core.parts import TextPart
from everturn.core.ports import Bus, Engine
from everturn.core.store_ports import Store
from everturn.testing.doubles import FakeClock
from tools.chaos.cell import Cell, WorkerProcess, cell
from tools.chaos.scenario import ScenarioModel, ask, pieces_of

RELOADS = 0.1  # of the reconnects, the share that has forgotten everything
HASTY = 0.5  # the share of visits that end while there is more to read, and not while waiting for more
HOUR = 3600.0
PATIENCE = 120.0  # seconds in which the readers have to see the end, beyond the duration of the text itself


# A reader -------------------------------------------------------------------------------------------------------


class TurnScreen:
    """Renders a turn from what it receives, and reports inconsistencies."""

    def __init__(self) -> None:
        self.cursor = ""  # its position, as it would send it when it reconnects
        self.complaints: list[str] = []
        self.pieces = 0  # how much it received
        self.is_over = False
        self._steps: dict[int, dict[int, list[str]]] = {}
        self._have: dict[int, int] = {}  # characters of each part of the step
        self._step, self._seq = 0, 0
        self._live, self._last = 0, 0

    def show(self, shown: TurnItem) -> None:
        """Render one more item."""
        self.pieces += 1
        match shown:
            case StepStarted(step=step) | StepRestarted(step=step) | RequestRetried(step=step):
                self._steps[step], self._have = {}, {}  # what was rendered of it is void
                self._step, self._seq, self._live, self._last = step, 0, 0, 0
            case TextDelta():
                self._draw(shown)
            case StepFinished(parts=parts) | StepInterrupted(parts=parts):
                whole = "".join(part.text for part in parts if isinstance(part, TextPart))
                if self._drawn(self._step) != whole:
                    self.complaints.append(f"step {self._step} ended, and is not what was shown of it")
                self._live -= self._last  # it may have come from the log a moment ago
            case _:
                self.is_over = self.is_over or isinstance(shown, Terminal)

    def _draw(self, delta: TextDelta) -> None:
        pieces = self._steps.setdefault(self._step, {}).setdefault(delta.part, [])
        have = self._have.get(delta.part, 0)
        if delta.offset > have:
            self.complaints.append(f"{delta.offset - have} characters were skipped at {have}")
        elif delta.offset < have:
            self.complaints.append(f"{have - delta.offset} characters at {delta.offset} were shown a second time")
        if self._seq not in (0, delta.seq):
            self.complaints.append(f"a delta of the attempt at {delta.seq} was shown in that at {self._seq}")
        self._seq, self._last = delta.seq, len(delta.text)
        self._have[delta.part] = have + self._last
        self._live += self._last
        pieces.append(delta.text)

    def _drawn(self, step: int) -> str:
        return "".join("".join(pieces) for _, pieces in sorted(self._steps.get(step, {}).items()))

    @property
    def text(self) -> str:
        """The rendered text."""
        texts = [self._drawn(step) for step in sorted(self._steps)]
        return "\n\n".join(text for text in texts if text)

    @property
    def size(self) -> int:
        """How many characters of the current step are rendered."""
        return sum(self._have.values())

    @property
    def live(self) -> int:
        """Characters of the last step that certainly came over the bus: those before its last delta."""
        return max(self._live, 0)


def compare_with_stored(face: TurnScreen, stored: str) -> list[str]:
    """The differences between what a reader rendered and the stored text."""
    problems = list(face.complaints)
    if not face.is_over:
        problems.append("it was never told that the turn is over")
    shown, saved = face.text.encode(), stored.encode()
    if shown != saved:
        pairs = enumerate(zip(shown, saved, strict=False))
        at = next((at for at, (byte, other) in pairs if byte != other), min(len(shown), len(saved)))
        problems.append(f"it shows {len(shown)} bytes where {len(saved)} are stored, and differs from byte {at} on")
    return problems


class RoamingReader:
    """A reader that disconnects at random and resumes at any node, with its cursor."""

    def __init__(self, nodes: Sequence[App], turn: Turn, rng: random.Random, stay: float) -> None:
        self._nodes, self._turn, self._rng, self._stay = nodes, turn, rng, stay
        self.face = TurnScreen()
        self.forgotten: list[TurnScreen] = []  # what it rendered before it reloaded
        self.visits = self.moves = 0

    async def read(self) -> None:
        """Connect and disconnect until the turn is over."""
        rng, before = self._rng, None
        while not self.face.is_over:
            node = rng.choice(self._nodes)
            self.visits, self.moves, before = self.visits + 1, self.moves + (before not in (None, node)), node
            most = self.face.pieces + (rng.randrange(1, 60) if rng.random() < HASTY else sys.maxsize)
            with suppress(TimeoutError):
                async with asyncio.timeout(rng.expovariate(1 / self._stay)):
                    await visit(self.face, node, self._turn, lambda face, most=most: face.pieces >= most)
            if not self.face.is_over:
                await asyncio.sleep(rng.uniform(0, self._stay / 2))
                if rng.random() < RELOADS:
                    self.forgotten.append(self.face)
                    self.face = TurnScreen()


async def visit(
    face: TurnScreen, node: App, turn: Turn, is_enough: Callable[[TurnScreen], bool] = lambda _: False
) -> None:
    """Continue to read at a node, to the end or until enough was read."""
    reading = Turn(node, turn.session, turn.id).events(face.cursor)
    try:
        async for shown in reading:
            face.show(shown)
            face.cursor = str(reading.cursor)
            if is_enough(face):
                return
    finally:
        await reading.aclose()


# A campaign -----------------------------------------------------------------------------------------------------


class ResumeSizes(Struct, frozen=True):
    """The sizes of a campaign."""

    deltas: int = 20_000
    readers: int = 50
    nodes: int = 3
    workers: int = 3
    pace: float = 0.001  # seconds between two deltas
    stay: float = 1.0  # seconds a reader stays, on average
    seed: int = 0


class ResumeRun(Struct, frozen=True):
    """One turn and what its readers rendered."""

    trouble: str
    ended: str
    deltas: int
    stored: int  # bytes of the text in the store
    readers: int
    visits: int  # how often a reader connected, the first time and again
    moves: int  # how often that was to another node than before
    reloads: int  # how often without a cursor
    pieces: int  # what they received; all of it crossed nodes, as the nodes they read from drive nothing
    restarts: int  # of the step, by a driver that took over
    streamed: float  # the share of the stored text that came over the bus, over all readers
    late: int  # readers that came when the bus had forgotten everything, half of them an hour later
    seconds: float
    violations: list[str]


class ResumeReport(Struct, frozen=True):
    """The result of a campaign."""

    runs: list[ResumeRun]

    @property
    def violations(self) -> list[str]:
        """All violations, as text."""
        return [f"{run.trouble}: {violation}" for run in self.runs for violation in run.violations]


Trouble = Literal["kill", "cancel"]


async def resuming(sizes: ResumeSizes, troubles: Sequence[Trouble] = ("kill", "cancel")) -> ResumeReport:
    """Let readers connect and disconnect while a driver is killed half-way, and while another turn is cancelled."""
    runs: list[ResumeRun] = []
    async with cell() as cluster, AsyncExitStack() as stack:
        await cluster.start_workers(sizes.workers, pace=sizes.pace)
        nodes = [await stack.enter_async_context(cluster.client()) for _ in range(sizes.nodes)]
        for number, trouble in enumerate(troubles):
            runs.append(await _run(cluster, nodes, sizes, trouble, sizes.seed + number))
    return ResumeReport(runs)


async def _run(cluster: Cell, nodes: Sequence[App], sizes: ResumeSizes, trouble: Trouble, seed: int) -> ResumeRun:
    began, rng = time.monotonic(), random.Random(seed)
    session, pieces = f"resuming-{trouble}-{seed}", pieces_of(sizes.deltas, seed)
    chat = Chat(ScenarioModel(), app=nodes[0], session=session)
    turn = await chat.send(ask("long_text", session, deltas=sizes.deltas, seed=seed))
    guests = [RoamingReader(nodes, turn, random.Random(f"{seed}/{n}"), sizes.stay) for n in range(sizes.readers)]
    enough = len("".join(pieces)) * (0.5 if trouble == "kill" else rng.uniform(0.2, 0.9))
    witness, absent = TurnScreen(), [TurnScreen(), TurnScreen()]
    with suppress(TimeoutError):  # readers that have not seen the end are counted below
        async with asyncio.timeout(PATIENCE + 4 * sizes.pace * sizes.deltas), asyncio.TaskGroup() as group:
            for guest in guests:
                group.create_task(guest.read())
            while not witness.is_over and witness.size < enough:  # one that is too slow has to reconnect
                await visit(witness, nodes[-1], turn, lambda face: face.size >= enough)
            absent += [copy.deepcopy(guest.face) for guest in guests]  # of readers that leave now
            await (driver_of(cluster, session).kill9() if trouble == "kill" else turn.cancel())
            while not witness.is_over:
                await visit(witness, nodes[-1], turn)
    await _come_late(cluster, nodes, turn, absent)
    stored = (await chat.messages())[-1].text
    events = [entry.event for entry in await nodes[0].store.events(session, turn=turn.id)]
    streamed = sum(guest.face.live for guest in guests) / max(len(stored) * len(guests), 1)
    named = {"the witness": witness}
    named |= {f"reader {number}": guest.face for number, guest in enumerate(guests)}
    named |= {f"late reader {number}": face for number, face in enumerate(absent)}
    violations = [f"{name}: {problem}" for name, face in named.items() for problem in compare_with_stored(face, stored)]
    violations += [complaint for guest in guests for face in guest.forgotten for complaint in face.complaints]
    if trouble == "kill" and stored != "".join(pieces):
        violations.append("what is stored is not what the model said")
    if streamed < 0.5:
        violations.append(f"only {streamed:.0%} of the text was streamed, so this proves little")
    return ResumeRun(
        trouble=trouble,
        ended=type(events[-1]).__name__,
        deltas=sizes.deltas,
        stored=len(stored.encode()),
        readers=len(guests) + 1,
        visits=sum(guest.visits for guest in guests),
        moves=sum(guest.moves for guest in guests),
        reloads=sum(len(guest.forgotten) for guest in guests),
        pieces=sum(face.pieces for guest in guests for face in (guest.face, *guest.forgotten)),
        restarts=sum(isinstance(event, StepRestarted) for event in events),
        streamed=streamed,
        late=len(absent),
        seconds=time.monotonic() - began,
        violations=violations,
    )


def driver_of(cluster: Cell, session: str) -> WorkerProcess:
    """The worker that called the model last."""
    requests = [line.worker for line in cluster.lines() if line.kind == "request" and line.session == session]
    return next(worker for worker in cluster.workers if worker.name == requests[-1])


async def _come_late(cluster: Cell, nodes: Sequence[App], turn: Turn, faces: Sequence[TurnScreen]) -> None:
    """Let readers resume when the bus has lost its memory; every other one at a node whose clock is an hour ahead."""
    if cluster.nats is not None:
        cluster.nats.kill9()
        await cluster.nats.start()
    async with _an_hour_later(cluster) as later:
        for number, face in enumerate(faces):
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await visit(face, later if number % 2 else nodes[number % len(nodes)], turn)


@asynccontextmanager
async def _an_hour_later(cluster: Cell) -> AsyncGenerator[App]:
    def make(*, store: Store, bus: Bus, engine: Engine) -> App:
        return App(ScenarioModel(), store=store, bus=bus, engine=engine, clock=FakeClock(time.time() + HOUR))

    async with cluster.cluster.join(make) as app:
        yield app


def main() -> None:
    """Run the campaign, and print what it found."""
    parser = argparse.ArgumentParser(description="Readers that drop and come back are shown what is stored.")
    sizes: dict[str, int | float] = msgspec.structs.asdict(ResumeSizes())
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    report = asyncio.run(resuming(msgspec.convert(vars(parser.parse_args()), ResumeSizes)))
    print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    raise SystemExit(1 if report.violations else 0)


if __name__ == "__main__":
    main()
