"""Random schedules of long conversations: no request that a provider refuses, and the same bytes from two processes.

Each schedule is one session and some operations: messages with many calls, cut answers, cut results, late results,
steering, denials, forks, edits, other answers, other models, summaries on command, deleted summaries, and deaths of the
process. Every request is rendered in
all five wire formats and checked as the providers check it.

    EVERTURN_SCHEDULES=10000 pytest -n 2 tests/turn/test_compaction_schedules.py
    PYTHONHASHSEED=1 python -m tests.turn.test_compaction_schedules 0 10000 > one  # and with 2, then compare
"""

from __future__ import annotations

import asyncio
import os
import random
import string
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256
from typing import Any

import pytest

from everturn import Chat, TurnOptions, tool
from everturn.app import App
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk
from everturn.core.continuation import CONTINUE_REQUEST
from everturn.core.events import (
    CallStarted,
    CompactionStarted,
    LateResultReceived,
    MessageAdded,
    TurnFailed,
    TurnSuspended,
)
from everturn.core.hooks import RequestContext
from everturn.core.requests import ModelRequest
from everturn.errors import CommandRefused, EverturnError
from everturn.events import GateOpened
from everturn.testing import CountingIds, FakeClock, MemoryStore, MortalStore
from tests.helpers.window_model import WindowModel, events_of, is_summary_request, last_number, text_of

COUNT = int(os.environ.get("EVERTURN_SCHEDULES", "16"))
BATCH = 8
OPERATIONS = (
    *("send", "send", "send", "cut", "late", "steer", "ask", "fork", "edit", "rerun", "model", "compact", "undo"),
    *("die", "die"),
)


@tool(read_only=True)
def look(n: int) -> str:
    """Look at something."""
    return f"result {n} " + "lorem ipsum " * (20 + n * 37 % 120)


@tool(read_only=True, limit=400)
def scan(n: int) -> str:
    """Scan something: a result that is cut."""
    return f"result {n} " + "dolor sit amet " * (60 + n * 41 % 90)


@tool(approval="always")
def pay(n: int) -> str:
    """Pay something."""
    return f"result {n}"


class SameBytes:
    """Checks that a step is sent the same request by whoever sends it."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, int, int], str] = {}

    def on_before_request(self, ctx: RequestContext) -> None:
        if is_summary_request(ctx.body):
            return
        key = (ctx.turn, ctx.step, ctx.run.state.compactions)  # type: ignore[attr-defined]
        text = text_of(ctx.body)
        assert self.seen.setdefault(key, text) == text, f"step {key} differs"


class Schedule:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.store, self.same = MemoryStore(), SameBytes()
        self.window = self.dice.choice((2_000, 2_500, 4_000))
        self.calls, self.models = 0, list[WindowModel]()
        self.processes = 0
        self.trace: list[str] = []
        self.released = asyncio.Event()
        self.tools = [look, scan, self.wait_tool(), pay]

    def wait_tool(self) -> Any:
        @tool
        async def wait(n: int) -> str:
            """Wait: a result that arrives after the turn was cancelled."""
            await self.released.wait()
            return f"result {n} " + "late news " * 60

        return wait

    def answer(self, request: ModelRequest) -> list[Chunk]:
        user_messages = [
            message for message in request.messages if message.role == "user" and message != CONTINUE_REQUEST
        ]
        number, prompt = last_number(request), user_messages[-1].text
        if request.tools and "pay" in prompt and request.messages[-1].role != "tool":
            return [CallChunk(0, '{"n": 1}', "pay", "p")]
        if request.tools and prompt.startswith("wait") and request.messages[-1].role != "tool":
            return [CallChunk(0, '{"n": 1}', "wait", "w")]
        if request.tools and "scan to" in prompt and number < len(prompt) % 4:
            return [CallChunk(0, f'{{"n": {number + 1}}}', "scan", "c")]
        if request.tools and "count to" in prompt and number < len(prompt) % 9:
            calls = [
                CallChunk(slot, f'{{"n": {number + 1}}}', "look", f"i{slot}") for slot in range(1 + len(prompt) % 2)
            ]
            return [TextChunk("hm"), *calls]
        text = TextChunk("answer " * (10 + len(prompt) % 100))
        if len(prompt) % 5 == 0 and (
            request.messages[-1] != CONTINUE_REQUEST or len(prompt) % 3
        ):  # cut, once or for ever
            return [text, FinishChunk("length")]
        return [text]

    def open(self, lives: int | None = None, before: bool = False) -> tuple[Chat, MortalStore]:
        self.processes += 1
        store = MortalStore(self.store, lives, before_next=before)
        is_known = self.dice.random() < 0.7
        models = [
            WindowModel(
                self.answer,
                lambda prompt: f"Goal: go on {len(prompt)}.",
                window=self.window if is_known else None,
                hidden_window=self.window,
                name=name,
            )
            for name in ("one", "two")
        ]
        self.models += models
        ids = CountingIds(string.ascii_letters[min(self.processes, 51)])
        app = App(models[0], tools=self.tools, plugins=[self.same], store=store, clock=FakeClock(), ids=ids)
        app.add_model(models[1])
        return Chat(models[0], session="s", app=app, options=TurnOptions(max_steps=14)), store

    async def finish(self, turn: Any) -> None:
        gates: list[Any] = []
        async for event in turn:
            if isinstance(event, GateOpened):
                gates.append(event.gate)
            if isinstance(event, TurnSuspended):
                for gate in gates:
                    with suppress(EverturnError):
                        await turn.answer(gate, **self.dice.choice(({"allow": "once"}, {"deny": "no"})))

    async def be_late(self, chat: Chat, text: str) -> None:
        """Cancel a turn while its tool runs, let the tool end, and go on."""
        self.released.clear()
        turn = await chat.send(text)
        async for event in turn:
            if isinstance(event, CallStarted):
                await turn.cancel()
        self.released.set()
        for _ in range(50):
            await asyncio.sleep(0)
        await self.finish(await chat.send("count to it and say what was late"))

    async def operate(self, chat: Chat, name: str) -> None:
        words = "words " * self.dice.randint(1, 150)
        text = f"count to it {words}{'x' * self.dice.randint(0, 9)}"
        messages = await chat.messages()
        own = [message for message in messages if message.role == "user"]
        answers = [message for message in messages if message.role == "assistant"]
        notices = [message for message in messages if message.role == "notice"]
        match name:
            case "steer":
                turn = await chat.send(text)
                steered = await chat.send("count to more " + words, steer=True)
                await self.finish(turn)
                await self.finish(steered)
            case "ask":
                await self.finish(await chat.send("pay " + words))
            case "cut":
                await self.finish(await chat.send("scan to count to it " + words))
            case "late":
                await self.be_late(chat, "wait " + words)
            case "fork" if messages:
                await self.finish(await chat.send(text, after=self.dice.choice(messages)))
            case "edit" if own:
                await self.finish(await chat.edit(self.dice.choice(own), text))
            case "rerun" if answers:
                await self.finish(await chat.rerun(self.dice.choice(answers)))
            case "model":
                await self.finish(await chat.send(text, model="two"))
            case "compact" if messages:
                await self.finish(await chat.compact())
            case "undo" if notices:
                with suppress(CommandRefused):  # a message that was admitted before a death is being answered
                    await chat.delete(self.dice.choice(notices))
            case _:
                await self.finish(await chat.send(text))

    async def run(self) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        chat, store = self.open()
        for _ in range(self.dice.randint(4, 9)):
            name = self.dice.choice(OPERATIONS)
            self.trace.append(name)
            if name == "die":
                await chat.app.aclose()
                head = len(await self.store.events("s")) if self.processes > 1 or len(self.trace) > 1 else 0
                chat, store = self.open(head + self.dice.randint(2, 40), self.dice.random() < 0.5)
                await self.die(chat, store)
                chat, store = self.open()
                await self.go_on(chat)
            else:
                await self.operate(chat, name)
        await self.operate(chat, "send")
        await chat.app.aclose()

    async def die(self, chat: Chat, store: MortalStore) -> None:
        """Let a process work until it dies, or is done."""
        work = asyncio.ensure_future(self.operate(chat, self.dice.choice(OPERATIONS[:-2])))
        died = asyncio.ensure_future(store.died.wait())
        await asyncio.wait({work, died}, return_when="FIRST_COMPLETED")
        store.kill()
        for task in (work, died):
            task.cancel()
        await asyncio.gather(work, died, return_exceptions=True)
        await chat.app.aclose()

    async def go_on(self, chat: Chat) -> None:
        """Let another process bring the open turns to their end."""
        self.released.set()
        await chat.app.start()
        with suppress(EverturnError):
            for turn in await self.store.open_turns("s"):
                await self.finish(chat.turn(turn))


async def run_schedule(seed: int) -> Schedule:
    """Run a schedule, and check that no turn of it failed."""
    schedule = Schedule(seed)
    try:
        await asyncio.wait_for(schedule.run(), 120)
    except BaseException as error:
        error.add_note(f"seed {seed}: {schedule.trace}")
        raise
    log = await schedule.store.events("s")
    failed = [event.problem for event in events_of(log, TurnFailed)]
    assert failed == [], f"seed {seed}: {schedule.trace}"
    return schedule


@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
async def test_no_schedule_makes_a_request_that_is_refused_or_differs(first: int) -> None:
    compactions = late = 0
    for seed in range(first, min(first + BATCH, COUNT)):
        schedule = await run_schedule(seed)
        log = await schedule.store.events("s")
        compactions += len(events_of(log, CompactionStarted)) + len(events_of(log, MessageAdded))
        late += len(events_of(log, LateResultReceived))
    assert compactions
    assert late or first


def test_two_processes_send_the_same_bytes() -> None:
    """The order of sets and the addresses of objects differ between processes; requests do not."""
    command = [sys.executable, "-m", "tests.turn.test_compaction_schedules", "0", "6"]
    outputs = [
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True, text=True)
        for seed in ("1", "2")
    ]
    first, second = (output.stdout for output in outputs)
    assert first == second
    assert len(set(first.split())) == 6


async def print_digests(first: int, end: int) -> None:
    """Print a digest of the requests of each schedule, for a comparison of two processes."""
    for seed in range(first, end):
        schedule = await run_schedule(seed)
        digests = "".join(model.digest.hexdigest() for model in schedule.models)
        print(sha256(digests.encode()).hexdigest(), flush=True)


if __name__ == "__main__":
    asyncio.run(print_digests(int(sys.argv[1]), int(sys.argv[2])))
