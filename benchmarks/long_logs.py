"""What a long log costs: CPU time of operations at 100 and at 4,000 turns, of a restore, and of a turn with 500 steps.

    python benchmarks/long_logs.py            (about a minute; --short: 40 and 400 turns, 50 steps)

Every figure is CPU time of this process, and what counts is the last column: how much more the same operation costs in a
long session than in a short one. `tests/stores/test_long_logs.py` counts rows instead, and needs no clock.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from everturn import Chat
from everturn.core.events import (
    AnswerStarted,
    CallFinished,
    CallStarted,
    Event,
    PermissionDecided,
    StepFinished,
    StepStarted,
    TurnCompleted,
    TurnFinishing,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.parts import Output, TextPart, ToolPart, Usage
from everturn.core.state import fold
from everturn.models.scripted import ScriptedModel
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.samples import send_message

TEXT = "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore. " * 4


def step_events(turn: str, step: int, calls: int) -> list[Event]:
    """A step with calls, each judged, started and finished."""
    names = [f"{turn}.c{step}.{number}" for number in range(calls)]
    parts = (TextPart("I will look that up."), *(ToolPart(name, "look", '{"at":"home"}') for name in names))
    events: list[Event] = [
        StepStarted(turn=turn, at=1.0, step=step),
        StepFinished(turn=turn, at=1.0, step=step, parts=parts, finish="tool_calls", usage=Usage(900, 40)),
    ]
    for name in names:
        events += [
            PermissionDecided(
                turn=turn, at=1.0, call=name, tool="look", identity="i", hash=name, allowed=True, why="rule"
            ),
            CallStarted(turn=turn, at=1.0, call=name, tool="look", arguments='{"at":"home"}', hash=name, key=name),
            CallFinished(turn=turn, at=1.0, call=name, state="completed", output=Output(TEXT, origin="builtin")),
        ]
    return events


def turn_events(number: int, steps: int = 1, calls: int = 2, is_over: bool = True) -> list[Event]:
    """A turn whose last step is words: 13 events with one step of two calls."""
    turn, parent = f"t{number}", f"t{number - 1}.out" if number else None
    question = Message(f"{turn}.in", parent, "user", (TextPart("Where is the parcel?"),), turn=turn)
    answer = Message(f"{turn}.out", question.id, "assistant", turn=turn, by="model")
    events: list[Event] = [
        TurnStarted(turn=turn, at=1.0, parent=parent, input=question, command=f"k{number}"),
        AnswerStarted(turn=turn, at=1.0, message=answer),
    ]
    for step in range(1, steps + 1):
        events += step_events(turn, step, calls)
    if is_over:
        events += [
            StepStarted(turn=turn, at=1.0, step=steps + 1),
            StepFinished(turn=turn, at=1.0, step=steps + 1, parts=(TextPart(TEXT),), finish="stop"),
            TurnFinishing(turn=turn, at=1.0, outcome="completed"),
            TurnCompleted(turn=turn, at=1.0),
        ]
    return events


def session_events(turns: int) -> list[Event]:
    """The log of a session: turns after each other, on one branch."""
    return [event for number in range(turns) for event in turn_events(number)]


async def cpu(work: Callable[[], Awaitable[Any]], rounds: int = 3) -> float:
    """Return the CPU time of an operation in milliseconds: the least of some rounds."""
    times: list[float] = []
    for _ in range(rounds):
        began = time.process_time()
        await work()
        times.append(time.process_time() - began)
    return min(times) * 1000


async def measure(folder: Path, turns: int) -> dict[str, float]:
    """Return the CPU time of each operation in a session of so many turns, in milliseconds."""
    events = session_events(turns)
    store = SqlStore.sqlite(folder / f"{turns}.db")
    found = {"restore": await cpu(lambda: store.restore("s", "local", events), 1)}
    leaf = (await store.info("s")).leaf
    found["info"] = await cpu(lambda: store.info("s"))
    found["event_page(200)"] = await cpu(lambda: store.event_page("s", max(0, len(events) - 200), 200))
    found["path(20)"] = await cpu(lambda: store.path("s", leaf, 20))
    found["path"] = await cpu(lambda: store.path("s", leaf))
    found["tree"] = await cpu(lambda: store.tree("s"))
    found["events"] = await cpu(lambda: store.events("s"))
    async with Chat(ScriptedModel(*["fine"] * (2 * turns + 50)), store=store, session="s") as chat:
        found["turn"] = await cpu(lambda: _turn(chat))
    return found


async def _turn(chat: Chat) -> None:
    await (await chat.send("And now?"))


async def takeover(folder: Path, steps: int, calls: int) -> tuple[int, float, float]:
    """Return the events of an open turn, and the CPU time of its claim, and of its claim and fold, in milliseconds."""
    store = SqlStore.sqlite(folder / "long_turn.db")
    events = turn_events(0, steps, calls, is_over=False)
    await store.admit(send_message("k0", "s", "t0"))
    head = 0
    for start in range(0, len(events), 20):
        head = await store.append("s", head, events[start : start + 20])
    await store.aclose()
    store = SqlStore.sqlite(folder / "long_turn.db")
    began = time.process_time()
    claim = await store.claim("s", time.time())
    claimed = time.process_time()
    assert claim is not None
    for turn in claim.turns:
        fold(entry.event for entry in turn)
    folded = time.process_time()
    await store.aclose()
    return len(events), (claimed - began) * 1000, (folded - began) * 1000


async def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    few, many, steps = (40, 400, 50) if options.short else (100, 4000, 500)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        short, long = await measure(folder, few), await measure(folder, many)
        print(f"{'CPU in ms':20}{few:>12} turns{many:>12} turns{'times':>8}")
        for operation, before in short.items():
            print(f"{operation:20}{before:18.2f}{long[operation]:18.2f}{long[operation] / max(before, 0.01):8.1f}")
        events, claim, both = await takeover(folder, steps, 6)
        print(f"\na turn of {steps} steps, {events} events: claim {claim:.0f} ms, with its fold {both:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())
