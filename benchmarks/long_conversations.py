"""What a long conversation costs when it is compacted, and what it costs to take over a long turn: CPU of this process.

    python -m benchmarks.long_conversations [--short] [--postgres URL] [--json FILE]

The conversations have 13 events a turn and a summary every 20 turns; the last is 10 turns old in each of them, so a turn
has the same request in all of them. What counts is how the figures grow. CPU is that of the process with all its threads,
the best of some rounds; the CPU of a PostgreSQL server is not in it. The long turn is written by a process that is killed
(SIGKILL), and taken over by another one, in which nothing is cached.

This is a report: it ends well whatever it finds. `tests/test_benchmarks.py` runs the short form.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

from benchmarks.long_logs import turn_events

from everturn import App, tool
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk, UsageChunk
from everturn.core.events import Event, MessageAdded, TurnCompleted, TurnFinishing, TurnStarted
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.parts import SummaryPart, Usage
from everturn.core.phases import Phase
from everturn.core.projections.call_index import dump_page, make_page
from everturn.core.requests import ModelRequest
from everturn.core.state import TurnState, fold
from everturn.core.store_ports import SessionClaim
from everturn.core.tree import MessageTree
from everturn.models.prices import ModelFacts
from everturn.running.ledger import Ledger
from everturn.stores.sql.postgres import Postgres
from everturn.stores.sql.store import SqlStore
from everturn.testing import MemoryBus
from everturn.testing.contracts.samples import send_message

EVERY, TAIL = 20, 10  # turns between two summaries, and after the last one
SESSION = "s"


class Plan(NamedTuple):
    """How much to measure."""

    turns: tuple[int, ...]
    steps: int
    rounds: int


LONG, SHORT = Plan((40, 400, 4000), 500, 15), Plan((40, 400), 60, 5)


class Replies:
    """A model with a large window, which calls a tool once and then answers; it notes when it is first asked."""

    name = "replies"

    def __init__(self) -> None:
        self.asked: list[float] = []

    async def facts(self) -> ModelFacts:
        return ModelFacts(None, 200_000)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        self.asked.append(time.process_time())
        end = UsageChunk(Usage(2_000, 20))
        if request.messages[-1].role == "tool":
            yield [TextChunk("Fine."), end, FinishChunk("stop")]
        else:
            yield [CallChunk(0, '{"at": "home"}', "look", "c"), end, FinishChunk("tool_calls")]


@tool(read_only=True, repeatable=True)
def look(at: str) -> str:
    """Look somewhere."""
    return f"nothing at {at}"


# The conversations -------------------------------------------------------------------------------------------------


async def write_conversation(store: SqlStore, turns: int) -> int:
    """Write a conversation with summaries and the index of their calls; returns the number of its events."""
    tree, events, index, start = MessageTree(), list[Event](), "", 0
    leaf: str | None = None
    for number in range(turns):
        new = turn_events(number)
        started = new[0]
        assert isinstance(started, TurnStarted)
        assert started.input is not None
        new[0] = TurnStarted(
            turn=started.turn, at=1.0, parent=leaf, command=started.command, input=_under(started.input, leaf)
        )
        leaf = f"t{number}.out"
        if number % EVERY == (turns - TAIL - 1) % EVERY and number:
            for event in (*events[start:], *new):
                tree.apply(event)
            start = len(events) + len(new)
            path = tree.path(leaf)
            cut = max(len(path) - 4, 0)
            older = next((at for at, message in enumerate(path) if message.id.endswith(".in") and at >= cut), cut)
            listed = path[_last_cut(path) : older]
            index = await store.put_blob(dump_page(make_page(listed, index)))
            turn, name = f"c{number}", f"c{number}.summary"
            part = SummaryPart("Parcels were looked for. " * 20, kept=path[older].id, calls=index)
            notice = Message(name, leaf, "notice", (part,), by="everturn", turn=turn)
            new += [
                TurnStarted(turn=turn, at=1.0, parent=leaf, options=TurnOptions(compact=""), command=turn),
                MessageAdded(turn=turn, at=1.0, message=notice),
                TurnFinishing(turn=turn, at=1.0, outcome="completed"),
                TurnCompleted(turn=turn, at=1.0),
            ]
            leaf = name
        events += new
    await store.restore(SESSION, "local", events)
    return len(events)


def _under(message: Message, parent: str | None) -> Message:
    return Message(message.id, parent, message.role, message.parts, turn=message.turn)


def _last_cut(path: Sequence[Message]) -> int:
    """The number of the first message that is read after the last summary of a branch."""
    cut_id = ""
    for message in path:
        for part in message.parts:
            cut_id = part.kept if isinstance(part, SummaryPart) else cut_id
    return next((at for at, message in enumerate(path) if message.id == cut_id), 0)


# Measuring ---------------------------------------------------------------------------------------------------------


class Stopwatch(SqlStore):
    """A store that notes when claims of its session began that succeeded."""

    claimed: tuple[float, ...] = ()

    async def claim(self, session: str, now: float) -> SessionClaim | None:
        began = time.process_time()
        claim = await super().claim(session, now)
        if claim is not None:
            self.claimed = (*self.claimed[-9:], began)
        return claim


async def measure_turns(store: Stopwatch, rounds: int) -> tuple[float, float]:
    """The CPU of a turn of two steps, and of it from the claim to the first request, in milliseconds: the best."""
    model = Replies()
    turns: list[float] = []
    firsts: list[float] = []
    app = App(model, tools=[look], store=store)
    chat = app.chat(SESSION)
    try:
        for _ in range(rounds):
            gc.collect(1)
            model.asked.clear()
            began = time.process_time()
            await (await chat.send("And now?")).result()
            turns.append(time.process_time() - began)
            # A session may be claimed once more after its turn: the claim that counts is the last before the request.
            firsts.append(model.asked[0] - max(at for at in store.claimed if at < model.asked[0]))
    finally:
        await app.aclose()
    return min(turns) * 1000, min(firsts) * 1000


async def first_after_start(store: Stopwatch) -> float:
    """The CPU from the claim to the first request in a process that has read nothing of the session, in milliseconds."""
    return (await measure_turns(store, 1))[1]


async def write_long_turn(store: SqlStore, steps: int) -> None:
    """Write an open turn through a ledger, as its driver does."""
    await store.admit(send_message("k0", SESSION, "t0"))
    claim = await store.claim(SESSION, 1.0)
    assert claim is not None
    ledger = Ledger(SESSION, claim, store, MemoryBus(), _ignore)
    events = long_turn(steps)
    for start in range(0, len(events), 20):
        await ledger.commit(events[start : start + 20])


def long_turn(steps: int) -> list[Event]:
    """The events of an open turn with six calls in each step."""
    return turn_events(0, steps, 6, is_over=False)


def _ignore(session: str, state: TurnState, phase: Phase) -> None:
    """Nobody listens."""


async def take_over(store: SqlStore, steps: int) -> dict[str, float]:
    """The CPU of a claim with its folds in milliseconds, and the events that were read."""
    await store.head(SESSION)  # opens the database
    began = time.process_time()
    claim = await store.claim(SESSION, 1.0)
    assert claim is not None
    read = sum(len(entries) for entries in claim.turns)
    (state,) = claim.fold_turns()
    took = (time.process_time() - began) * 1000
    await store.release(SESSION, claim.epoch)
    assert state == fold(long_turn(steps)), "the state is not the fold of the events"
    return {"cpu": took, "read": read}


def in_process(role: str, where: Sequence[str], steps: int) -> dict[str, float]:
    """Write a long turn in a process that is then killed, or take it over in another one."""
    command = [sys.executable, "-m", "benchmarks.long_conversations", "--role", role, "--steps", str(steps), *where]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1], check=False)
    expected = -signal.SIGKILL if role == "write" else 0
    assert done.returncode == expected, f"{role} ended with {done.returncode}"
    return json.loads(done.stdout or "{}")


async def play(role: str, where: str, schema: str, steps: int) -> None:
    """Be one of those processes."""
    store = SqlStore(Postgres(where, schema)) if schema else SqlStore.sqlite(Path(where))
    if role == "write":
        await write_long_turn(store, steps)
        os.kill(os.getpid(), signal.SIGKILL)
    print(json.dumps(await take_over(store, steps)))
    await store.aclose()


class Places:
    """Where stores are opened: a folder, or schemas of a PostgreSQL database that are dropped at the end."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder, self._url, self._names = folder, url, dict[str, str]()

    def open(self, name: str) -> Stopwatch:
        if not self._url:
            return cast("Stopwatch", Stopwatch.sqlite(self._folder / f"{name}.db"))
        schema = self._names.setdefault(name, f"everturn_{uuid.uuid4().hex[:16]}")
        return Stopwatch(Postgres(self._url, schema))

    def arguments(self, name: str) -> list[str]:
        """How another process opens the same store."""
        if not self._url:
            return ["--where", str(self._folder / f"{name}.db")]
        self.open(name)
        return ["--where", self._url, "--schema", self._names[name]]

    async def drop(self) -> None:
        if self._names:
            import asyncpg  # pyright: ignore[reportMissingTypeStubs]

            connection: Any = await asyncpg.connect(self._url)
            for schema in self._names.values():
                await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            await connection.close()


@asynccontextmanager
async def places(url: str) -> AsyncGenerator[Places]:
    with tempfile.TemporaryDirectory() as folder:
        stores = Places(Path(folder), url)
        try:
            yield stores
        finally:
            await stores.drop()


class Goal(NamedTuple):
    """What should hold, and what was measured."""

    text: str
    limit: float
    measured: float


class Report(NamedTuple):
    """The figures of one kind of store."""

    store: str
    rows: list[dict[str, float]]
    takeover: dict[str, float]
    goals: list[Goal]


async def measure(plan: Plan, url: str = "") -> Report:
    """Measure conversations and a takeover in one kind of store."""
    rows: list[dict[str, float]] = []
    async with places(url) as where:
        for turns in plan.turns:
            store = where.open(f"c{turns}")
            events = await write_conversation(store, turns)
            await store.aclose()
            store = where.open(f"c{turns}")
            start = await first_after_start(store)
            best, first = await measure_turns(store, plan.rounds)
            await store.aclose()
            rows.append({"turns": turns, "events": events, "turn": best, "first": first, "first_after_start": start})
        location, events = where.arguments("long"), len(long_turn(plan.steps))
        in_process("write", location, plan.steps)
        found = min((in_process("take", location, plan.steps) for _ in range(3)), key=lambda found: found["cpu"])
        takeover = {"steps": plan.steps, "events": events, **found}
    goals = [
        Goal(
            f"a turn after {rows[-1]['turns']} turns, by one after {rows[0]['turns']}",
            2.0,
            rows[-1]["turn"] / rows[0]["turn"],
        ),
        Goal("ms from the claim to the first request, longest conversation", 20.0, rows[-1]["first"]),
        Goal(f"ms to take over a turn of {events} events", 100.0, takeover["cpu"]),
    ]
    return Report("PostgreSQL" if url else "SQLite", rows, takeover, goals)


def show(report: Report) -> None:
    """Print the figures as a table."""
    print(f"{report.store}: CPU in ms")
    print(f"{'turns':>8}{'events':>10}{'a turn':>10}{'to 1st request':>16}{'in a new process':>18}")
    for row in report.rows:
        print(
            f"{row['turns']:>8,}{row['events']:>10,}{row['turn']:>10.1f}{row['first']:>16.1f}"
            f"{row['first_after_start']:>18.1f}"
        )
    over = report.takeover
    print(f"takeover of a turn of {over['steps']} steps and {over['events']:,} events: {over['cpu']:.1f} ms,", end=" ")
    print(f"{over['read']} events read after the snapshot")
    for goal in report.goals:
        print(
            f"{'PASS' if goal.measured <= goal.limit else 'MISS'}  {goal.text}: {goal.measured:.2f} (<= {goal.limit:g})"
        )
    print()


async def run(plan: Plan, urls: Sequence[str]) -> list[Report]:
    """Measure each kind of store."""
    return [await measure(plan, url) for url in urls]


def main(arguments: Sequence[str]) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="What a long conversation costs.")
    parser.add_argument("--short", action="store_true", help="smaller and fewer: for tests")
    parser.add_argument("--postgres", metavar="URL", default="", help="measure a PostgreSQL database as well")
    parser.add_argument("--role", choices=["write", "take"], help=argparse.SUPPRESS)
    parser.add_argument("--where", default="", help=argparse.SUPPRESS)
    parser.add_argument("--schema", default="", help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file")
    options = parser.parse_args(arguments)
    if options.role:
        asyncio.run(play(options.role, options.where, options.schema, options.steps))
        return
    reports = asyncio.run(run(SHORT if options.short else LONG, ["", options.postgres] if options.postgres else [""]))
    for report in reports:
        show(report)
    if options.json is not None:
        options.json.write_text(json.dumps([report._asdict() for report in reports], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
