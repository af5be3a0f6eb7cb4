"""One peer in one process: jobs come in on stdin, a line of JSON each, and results go out the same way.

    python bench.py PEER BASE        started by run.py, in the peer's own environment; standard library only

A turn counts only if every character of text reached the callback and every tool ran; otherwise the job fails. Making
a conversation is not measured. CPU is user and system time of this process, and the garbage collector stays on.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from resource import RUSAGE_SELF, getrusage
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from scenarios import SCENARIOS, history
from toolbox import RAN

BATCH = 5  # conversations made at a time, between measured turns
TICK = 0.01
KEPT: list[object] = []  # an openai client that is collected unclosed can stall the other streams of its loop


class Adapter(Protocol):
    async def new(self) -> Any: ...
    async def turn(self, conversation: Any, on_text: Callable[[str], None], /) -> None: ...


class Job(NamedTuple):
    """What to measure. `seq` ends after `turns`, or sooner when it has used `seconds` of CPU."""

    mode: str  # seq, conc or open
    scenario: str
    turns: int
    flight: int = 1
    seconds: float = 0.5
    warm: int = 2
    least: int = 3
    patience: float = 300.0


def cpu() -> float:
    used = getrusage(RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


SAMPLE = json.dumps({"choices": [{"index": 0, "delta": {"content": " the quick brown fox"}}], "usage": None})


class Meter:
    """CPU used meanwhile, and how fast the machine was: a shared one may be twice as fast from one blink to the next.

    Beside the job, every 10 ms, it does a small fixed piece of work, which is not counted. `speed` is how many of them
    would have fitted into a second of CPU.
    """

    async def __aenter__(self) -> Meter:
        self._speeds, self._own = list[float](), 0.0
        self._others = asyncio.all_tasks()
        self._began = cpu()
        self._work()
        self._beside = asyncio.create_task(self._keep_working())
        return self

    def _work(self) -> None:
        before = cpu()
        for _ in range(100):
            json.loads(SAMPLE)["choices"][0]["delta"]["content"].split()
        took = max(cpu() - before, 1e-6)  # a coarse clock may not have moved
        self._own += took
        self._speeds.append(1 / took)

    async def _keep_working(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self._work()

    async def __aexit__(self, *error: object) -> None:
        # What a turn has left running is its own to pay for.
        if left := asyncio.all_tasks() - self._others - {self._beside}:
            await asyncio.wait(left, timeout=0.1)
        self._beside.cancel()
        self._work()
        self.cpu, self.speed = cpu() - self._began - self._own, sum(self._speeds) / len(self._speeds)


class Bench:
    def __init__(self, make: Callable[..., Adapter], base: str, job: Job) -> None:
        self.job, self.scenario = job, SCENARIOS[job.scenario]
        tools = (self.scenario.tool,) if self.scenario.tool else ()
        self.adapter = make(base, self.scenario.model, tools, history(self.scenario.history))
        KEPT.append(self.adapter)
        self.turns = self.pieces = 0
        self.ran_before = sum(RAN.values())

    async def one(self, conversation: Any, on_first: Callable[[], None] | None = None) -> None:
        seen = 0

        def on_text(text: str) -> None:
            nonlocal seen
            if not seen and on_first is not None:
                on_first()
            seen += len(text)
            self.pieces += 1

        await self.adapter.turn(conversation, on_text)
        self.turns += 1
        if seen != self.scenario.characters:
            raise AssertionError(f"{seen} characters came, {self.scenario.characters} were sent")

    async def seq(self) -> dict[str, Any]:
        """Turns one after the other."""
        job, took, scaled, done = self.job, 0.0, 0.0, 0
        while done < job.least or (done < job.turns and took < job.seconds):
            batch = [await self.adapter.new() for _ in range(BATCH if done >= job.least else 1)]
            async with Meter() as meter:
                for conversation in batch:
                    await self.one(conversation)
            took, scaled, done = took + meter.cpu, scaled + meter.cpu * meter.speed, done + len(batch)
        return {"cpu": took / done, "speed": scaled / took}

    async def conc(self) -> dict[str, Any]:
        """Turns side by side: another one begins when one is over."""
        waiting = [await self.adapter.new() for _ in range(self.job.turns)]

        async def worker() -> None:
            while waiting:
                await self.one(waiting.pop())

        async with Meter() as meter:
            await asyncio.gather(*(worker() for _ in range(self.job.flight)))
        return {"cpu": meter.cpu / self.job.turns, "speed": meter.speed}

    async def open(self) -> dict[str, Any]:
        """Turns begun at once and held open by a slow model: how late is a timer, once all of them have begun?"""
        conversations = [await self.adapter.new() for _ in range(self.job.flight)]
        opened, all_open, memory = 0, 0.0, resident()
        late: list[float] = []

        def on_first() -> None:
            nonlocal opened, all_open, memory
            opened += 1
            if opened == len(conversations):
                all_open, memory = perf_counter(), resident() - memory

        async def tick() -> None:
            while True:
                before, is_steady = perf_counter(), all_open
                await asyncio.sleep(TICK)
                if is_steady:
                    late.append(perf_counter() - before - TICK)

        gc.collect()
        began, before = perf_counter(), cpu()
        ticker = asyncio.create_task(tick())
        turns = [asyncio.create_task(self.one(conversation, on_first)) for conversation in conversations]
        # What comes after the first end is no longer a thousand open turns.
        await asyncio.wait(turns, return_when=asyncio.FIRST_COMPLETED)
        ticker.cancel()
        await asyncio.gather(*turns)
        if not late:
            raise AssertionError("the first turn was over before the last had begun")
        late.sort()
        lag = {name: late[int((len(late) - 1) * at)] for name, at in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))}
        used = (cpu() - before) / len(turns)
        return {"cpu": used, "lag": lag, "ramp": all_open - began, "memory": memory, "ticks": len(late)}

    async def run(self) -> dict[str, Any]:
        for _ in range(self.job.warm):
            await self.one(await self.adapter.new())
        gc.collect()
        found = await getattr(self, self.job.mode)()
        ran, must = sum(RAN.values()) - self.ran_before, self.turns * self.scenario.calls
        if ran != must:
            raise AssertionError(f"{ran} calls ran, the model made {must}")
        return {**found, "turns": self.turns - self.job.warm, "pieces": self.pieces / self.turns}


def resident() -> int:
    """Bytes of this process in memory, where the system tells."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def main(peer: str, base: str) -> None:
    adapter = importlib.import_module(f"adapters.{peer}")
    about = {"version": f"{adapter.DISTRIBUTION} {version(adapter.DISTRIBUTION)}"}
    print("RESULT " + json.dumps(about), flush=True)  # ready
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            job = Job(**json.loads(line))
            try:
                bench = Bench(adapter.Adapter, base, job)
                found = runner.run(asyncio.wait_for(bench.run(), job.patience))
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {error}"[:400]}
            print("RESULT " + json.dumps(found), flush=True)
        os._exit(0)  # closing clients is not measured, and some peers leave threads behind


if __name__ == "__main__":
    main(*sys.argv[1:])
