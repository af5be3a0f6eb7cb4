"""What a turn costs above a loop written by hand: CPU per chunk, per step of three calls, per message of history.

    python benchmarks/turn.py [--short] [--json FILE]

Both sides read the same chunks, made beforehand, in the same process, one after the other and in changing order, so a
noisy machine disturbs both alike: trust the differences and the ratios, not the seconds. CPU is that of the process.
The garbage collector stays on, as it does in real life; young garbage is collected between samples, so that nobody pays
for another's. Every sample is a fresh session. Goals are judged by the best samples: whatever else a machine does can
only add to a sample, so the best one is nearest to what the code itself costs. Medians stand beside them.

This is a report: it ends well whatever it finds. `tests/test_benchmarks.py` holds the bounds.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import platform
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple, Protocol

from everturn import Chat, tool
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk, UsageChunk
from everturn.core.commands import Send
from everturn.core.events import (
    AnswerStarted,
    Event,
    HookFinished,
    StepFinished,
    StepStarted,
    TurnCompleted,
    TurnFinishing,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.parts import TextPart, Usage
from everturn.stores.memory import MemoryStore

DELTA_GOAL = 2.0  # μs above bare per delta, nobody listening
STEP_GOAL = 150.0  # μs above bare per step of three calls
GROWTH_GOAL = 1.5  # what the next unit may cost at ten times the size; 1 is linear, the rest is noise

CALLS = 3
SESSION = "benchmark"
QUESTION = "How is the weather?"
Batches = Sequence[Sequence[Chunk]]


class Plan(NamedTuple):
    """How much to measure. Each list is a unit at three sizes, so that growth can be told from a fixed cost."""

    chunks: tuple[int, int, int]
    steps: tuple[int, int, int]
    messages: tuple[int, int, int]
    rounds: int


LONG = Plan((500, 5_000, 50_000), (1, 10, 100), (20, 200, 2_000), rounds=15)
# Smaller, not only fewer: a quadratic bug has to be found before a test's patience ends.
SHORT = Plan((200, 2_000, 20_000), (1, 10, 30), (20, 200, 2_000), rounds=4)

# The model ---------------------------------------------------------------------------------------------------------


class Replay:
    """A model that hands on batches made beforehand: one answer per request, nothing else per batch."""

    name = "replay"

    def __init__(self, answers: Sequence[Batches]) -> None:
        self._answers = iter(answers)

    async def stream(self, request: object) -> AsyncIterator[Sequence[Chunk]]:
        for batch in next(self._answers):
            yield batch


class PacedReplay(Replay):
    """The same, giving way before each batch as a socket does: without it a listener would wait for the whole step."""

    async def stream(self, request: object) -> AsyncIterator[Sequence[Chunk]]:
        for batch in next(self._answers):
            await asyncio.sleep(0)
            yield batch


def text_answer(chunks: int, batch: int) -> Batches:
    text_chunks = [TextChunk(f"word{n % 10} ") for n in range(chunks)]
    return [*(text_chunks[at : at + batch] for at in range(0, chunks, batch)), END]


def calls_answer() -> Batches:
    """Three calls, their arguments in two pieces each, as they trickle in."""
    batches: list[Sequence[Chunk]] = []
    for slot in range(CALLS):
        batches.append([CallChunk(slot, '{"city": "Paris', "weather", f"given_{slot}")])
        batches.append([CallChunk(slot, f'", "days": {slot}}}')])
    return [*batches, [UsageChunk(Usage(input=100, output=20)), FinishChunk("tool_calls")]]


END: Sequence[Chunk] = [UsageChunk(Usage(input=100, output=20)), FinishChunk("stop")]


async def weather(city: str, days: int) -> str:
    """Tell the weather."""
    return f"{city}: fine for {days} days"


TOOL = tool(read_only=True, repeatable=True)(weather)  # every step makes the same calls

# The two sides -----------------------------------------------------------------------------------------------------


class Side(Protocol):
    """One turn, ready to run. Only `run` is measured."""

    async def run(self) -> None: ...

    async def said(self) -> str:
        """The last answer, to see that both did the same work."""
        ...


class Bare:
    """What a competent person writes by hand: no log, no hooks, nobody to watch it, nothing left after a crash."""

    def __init__(self, model: Replay, history: Sequence[Mapping[str, Any]] = ()) -> None:
        self._model, self._history = model, history
        self._tools: dict[str, Callable[..., Awaitable[str]]] = {"weather": weather}

    async def run(self) -> None:
        messages: list[dict[str, Any]] = [{"role": m["role"], "content": m["text"]} for m in self._history]
        messages.append({"role": "user", "content": QUESTION})
        while True:
            pieces: list[str] = []
            calls: dict[int, dict[str, Any]] = {}
            async for batch in self._model.stream(messages):
                for chunk in batch:
                    if isinstance(chunk, TextChunk):
                        pieces.append(chunk.text)
                    elif isinstance(chunk, CallChunk):
                        call = calls.setdefault(chunk.slot, {"id": chunk.id, "name": chunk.name, "pieces": []})
                        call["pieces"].append(chunk.arguments)
            assembled = [{"id": c["id"], "name": c["name"], "arguments": "".join(c["pieces"])} for c in calls.values()]
            messages.append({"role": "assistant", "content": "".join(pieces), "calls": assembled})
            if not assembled:
                break
            results = await asyncio.gather(*(self._tools[c["name"]](**json.loads(c["arguments"])) for c in assembled))
            messages += [{"role": "tool", "id": c["id"], "content": r} for c, r in zip(assembled, results, strict=True)]
        self._messages = messages

    async def said(self) -> str:
        return self._messages[-1]["content"]


class Ours:
    """The same turn through the front door."""

    def __init__(self, model: Replay, store: MemoryStore | None = None, steps: int = 1) -> None:
        self._chat = Chat(model, tools=[TOOL], store=store, session=SESSION)
        self._steps = steps

    async def run(self) -> None:
        await self._chat.send(QUESTION, max_steps=self._steps)
        # Following a turn is what a listener does. Its driver is the only other task here, and ends with it.
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})

    async def said(self) -> str:
        return (await self._chat.messages())[-1].text


class Watched(Ours):
    """The same turn with one listener, who sees every delta."""

    async def run(self) -> None:
        async for _ in await self._chat.send(QUESTION):
            pass
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})


async def store_with(messages: int) -> MemoryStore:
    """A store whose one session holds this many messages, a question and an answer at a time."""
    store = MemoryStore()
    await store.admit(Send(key="0", session=SESSION, turn="0"))
    leaf, events = None, list[Event]()
    for n in range(messages // 2):
        turn = str(n)
        question = Message(f"question{n}", leaf, "user", (TextPart(QUESTION),), turn=turn)
        answer = Message(f"answer{n}", question.id, "assistant", turn=turn)
        events += [
            TurnStarted(turn=turn, parent=leaf, input=question, command=turn),
            AnswerStarted(turn=turn, message=answer),
            StepStarted(turn=turn, step=1),
            StepFinished(turn=turn, step=1, parts=(TextPart("Fine."),), finish="stop"),
            HookFinished(turn=turn, step=1, plugin="tool_calling"),
            TurnFinishing(turn=turn, outcome="completed"),
            TurnCompleted(turn=turn),
        ]
        leaf = answer.id
    await store.append(SESSION, 0, events)
    return store


# Measuring ---------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """One scenario at one size, and how to make either side of it anew."""

    group: str
    size: int
    times: int  # per round
    bare: Callable[[], Awaitable[Side]]
    ours: Callable[[], Awaitable[Side]]


def text_case(group: str, chunks: int, batch: int, is_watched: bool = False) -> Case:
    answer = text_answer(chunks, batch)
    model = PacedReplay if is_watched else Replay

    async def bare() -> Side:
        return Bare(model([answer]))

    async def ours() -> Side:
        return (Watched if is_watched else Ours)(model([answer]))

    return Case(group, chunks, 1 if chunks > 10_000 else 4, bare, ours)


def steps_case(group: str, steps: int) -> Case:
    answers = [*[calls_answer()] * steps, text_answer(10, 1)]

    async def bare() -> Side:
        return Bare(Replay(answers))

    async def ours() -> Side:
        return Ours(Replay(answers), steps=steps + 1)

    return Case(group, steps, 4, bare, ours)


def history_case(group: str, messages: int) -> Case:
    answer = text_answer(10, 1)

    async def bare() -> Side:
        return Bare(Replay([answer]), [{"role": "user", "text": QUESTION, "at": n} for n in range(messages)])

    async def ours() -> Side:
        return Ours(Replay([answer]), await store_with(messages))

    return Case(group, messages, 4, bare, ours)


TEXT_1, TEXT_20 = "text, 1 chunk per batch", "text, 20 chunks per batch"
WATCHED_1, WATCHED_20 = "watched text, 1 per batch", "watched text, 20 per batch"
STEPS, HISTORY = "steps of 3 calls", "messages of history"
UNIT = {TEXT_1: "delta", TEXT_20: "delta", WATCHED_1: "delta", WATCHED_20: "delta", STEPS: "step", HISTORY: "message"}


def cases(plan: Plan) -> list[Case]:
    return [
        *(text_case(TEXT_1, n, 1) for n in plan.chunks),
        *(text_case(TEXT_20, n, 20) for n in plan.chunks),
        *(text_case(WATCHED_1, n, 1, is_watched=True) for n in plan.chunks),
        *(text_case(WATCHED_20, n, 20, is_watched=True) for n in plan.chunks),
        *(steps_case(STEPS, n) for n in plan.steps),
        *(history_case(HISTORY, n) for n in plan.messages),
    ]


async def sample(side: Side) -> float:
    """The CPU of one turn, in μs."""
    gc.collect(1)  # not all of it: pydantic's heap takes ten milliseconds to walk, and is nobody's garbage
    before = process_time()
    await side.run()
    return (process_time() - before) * 1e6


class Row(NamedTuple):
    """What one case took, sample by sample: the n-th of `bare` ran beside the n-th of `ours`."""

    case: Case
    bare: list[float]
    ours: list[float]

    @property
    def ratio(self) -> float:
        """How many times bare ours took, best by best."""
        return min(self.ours) / min(self.bare)

    def above(self, of: Callable[[Sequence[float]], float]) -> float:
        """What ours took more, in μs: by the median of the pairs, or between the two best."""
        if of is min:
            return min(self.ours) - min(self.bare)
        return of([ours - bare for bare, ours in zip(self.bare, self.ours, strict=True)])


async def measure(plan: Plan) -> list[Row]:
    """Run every case once per round, short ones more often: a few milliseconds are easily disturbed."""
    rows = [Row(case, [], []) for case in cases(plan)]
    for _ in range(plan.rounds):
        for case, bare, ours in rows:
            for _ in range(case.times):
                sides = [(bare, await case.bare()), (ours, await case.ours())]
                for took, side in sides if len(bare) % 2 else reversed(sides):
                    took.append(await sample(side))
                answers = {await side.said() for _, side in sides}
                assert len(answers) == 1, f"{case.group}, {case.size}: the two sides said different things"
    return rows


# Judging -----------------------------------------------------------------------------------------------------------


class Growth(NamedTuple):
    """What one more unit costs above bare, in μs, from the first size to the second and from there to the third.

    Between two sizes the fixed cost of a turn falls out; cost per unit of a whole turn would hide growth behind it.
    """

    group: str
    small: float
    large: float

    @property
    def factor(self) -> float:
        return self.large / self.small


class Goal(NamedTuple):
    """A promise and what was measured."""

    text: str
    limit: float
    measured: float

    @property
    def is_reached(self) -> bool:
        return self.measured <= self.limit


class Report(NamedTuple):
    """Everything one run has found."""

    rows: list[Row]
    best: dict[str, Growth]
    median: dict[str, Growth]
    goals: list[Goal]


def growth(rows: Sequence[Row], of: Callable[[Sequence[float]], float]) -> dict[str, Growth]:
    found: dict[str, Growth] = {}
    for group in UNIT:
        first, second, third = (row for row in rows if row.case.group == group)

        def slope(a: Row, b: Row) -> float:
            return (b.above(of) - a.above(of)) / (b.case.size - a.case.size)

        found[group] = Growth(group, slope(first, second), slope(second, third))
    return found


def judge(rows: list[Row]) -> Report:
    best = growth(rows, min)
    whole = {row.case.group: row.above(min) / row.case.size for row in rows}  # the largest size is the last
    goals = [
        *(Goal(f"μs per delta above bare: {group}", DELTA_GOAL, whole[group]) for group in (TEXT_1, TEXT_20)),
        Goal("μs per 3-call step above bare", STEP_GOAL, best[STEPS].small),
        *(Goal(f"growth: {group}", GROWTH_GOAL, best[group].factor) for group in UNIT),
    ]
    return Report(rows, best, growth(rows, median), goals)


def run(plan: Plan) -> Report:
    """Measure and judge."""
    return judge(asyncio.run(measure(plan)))


# Telling -----------------------------------------------------------------------------------------------------------


def show(report: Report) -> None:
    print(f"Python {platform.python_version()}, CPU time of the process in μs, best (median); gc on\n")
    print(f"{'scenario':<27}{'size':>7}{'bare':>20}{'ours':>22}{'ratio':>7}   above bare, each")
    for row in report.rows:
        case = row.case
        bare, ours = (f"{min(took):,.0f} ({median(took):,.0f})" for took in (row.bare, row.ours))
        each = f"{row.above(min) / case.size:.2f} ({row.above(median) / case.size:.2f}) per {UNIT[case.group]}"
        print(f"{case.group:<27}{case.size:>7,}{bare:>20}{ours:>22}{row.ratio:>7.1f}   {each}")
    print(f"\n{'one more costs, above bare':<30}{'small to middle':>18}{'middle to large':>18}{'growth':>15}")
    for group, best in report.best.items():
        usual = report.median[group]
        small, large = f"{best.small:.2f} ({usual.small:.2f})", f"{best.large:.2f} ({usual.large:.2f})"
        print(f"{group:<30}{small:>18}{large:>18}{f'{best.factor:.2f} ({usual.factor:.2f})':>15}")
    print()
    for goal in report.goals:
        resolution = "PASS" if goal.is_reached else "MISS"
        print(f"{resolution}  {goal.text:<50}{goal.measured:>8.2f}  (goal: <= {goal.limit:g})")


def as_json(report: Report) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "unit": "μs of CPU",
        "rows": [
            {"scenario": row.case.group, "size": row.case.size, "ratio": row.ratio, "bare": row.bare, "ours": row.ours}
            for row in report.rows
        ],
        "growth": {
            name: {group: {**found._asdict(), "factor": found.factor} for group, found in kind.items()}
            for name, kind in (("best", report.best), ("median", report.median))
        },
        "goals": [{**goal._asdict(), "is_reached": goal.is_reached} for goal in report.goals],
    }


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="What a turn costs above a loop written by hand.")
    parser.add_argument("--short", action="store_true", help="smaller and fewer: for tests")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample to a file")
    options = parser.parse_args(arguments)
    report = run(SHORT if options.short else LONG)
    show(report)
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(report), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
