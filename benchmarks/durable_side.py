"""One side of `benchmarks/durable.py`, as a process whose CPU is its own: `durable_side.py KIND CONFIG`.

It says `ready`; a side that makes its own load then answers each line `turns at-once` with `done`. The turn is the same
everywhere: three rounds of one model message (0.7 KB) and three parallel tool results (0.35 KB), then a closing answer.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from itertools import count
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import restate as sdk

from everturn import Chat, tool
from everturn.app import App
from everturn.base_app import TurnStatus
from everturn.bus.memory import MemoryBus
from everturn.clock import SystemClock
from everturn.cluster import Cluster
from everturn.cluster.workers import loop_factory, tune_garbage_collector
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk, UsageChunk
from everturn.core.parts import Usage
from everturn.core.ports import Bus, Engine
from everturn.core.requests import ModelRequest
from everturn.core.store_ports import Store
from everturn.engine.inline import InlineEngine
from everturn.engine.restate import socket_url
from everturn.engine.restate.http import RestateClient
from everturn.engine.restate.worker import FOREVER, RETRIES, _SharedSocketServer
from everturn.stores.sql.store import SqlStore

ROUNDS, CALLS = 3, 3
MESSAGE = "The model thinks about the weather. " * 20  # 0.7 KB
RESULT = "fine for the rest of the week, says the office; " * 7  # 0.35 KB
CLOSING = "It stays fine."
SERVICE = "bare"
READY, DONE = "ready", "done"

One = Callable[[str], Awaitable[None]]


async def closed_loop(run_turn: One, turns: int, at_once: int) -> None:
    """Do so many turns, so many at once."""
    numbers = iter(range(turns))

    async def lane() -> None:
        for _ in numbers:
            await run_turn(os.urandom(8).hex())

    await asyncio.gather(*(lane() for _ in range(min(turns, at_once))))


# Ours -------------------------------------------------------------------------------------------------------------------


text: Callable[[int], str] | None = None  # another text of a length, for wal.py


def _text(default: str) -> str:
    return default if text is None else text(len(default))


class Script:
    """A model whose every answer is ready; which one it is, the request says."""

    name = "script"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        step = sum(message.role == "assistant" for message in request.messages)
        if step >= ROUNDS:
            yield [TextChunk(CLOSING), UsageChunk(Usage(input=100, output=20)), FinishChunk("stop")]
            return
        calls = [CallChunk(slot, f'{{"city": "Paris{slot}"}}', "weather", f"given_{slot}") for slot in range(CALLS)]
        yield [TextChunk(_text(MESSAGE)), *calls, UsageChunk(Usage(input=100, output=200)), FinishChunk("tool_calls")]


@tool(read_only=True, repeatable=True)  # every round makes the same calls
async def weather(city: str) -> str:
    """Tell the weather."""
    return _text(RESULT)


def make(store: Store | str | None = None, bus: Bus | None = None, engine: Engine | None = None) -> App:
    """A runtime that answers the turn."""
    return App(Script(), tools=[weather], store=store, bus=bus, engine=engine)


async def ours(config: dict[str, Any], stack: AsyncExitStack) -> One:
    """In this process, in memory or in a file. Nobody follows a turn: it is over when it says so."""
    if config.get("is_inline"):
        runtime = make(SqlStore.postgres(config["store"]), MemoryBus(), InlineEngine(SystemClock()))
    else:
        runtime = make(config["store"])
    stack.push_async_callback(runtime.aclose)
    ends: dict[str, asyncio.Event] = {}

    def hear(snapshot: TurnStatus) -> None:
        if snapshot.phase.is_terminal:
            ends[snapshot.session].set()

    runtime.listeners.append(hear)

    async def run_turn(name: str) -> None:
        ends[name] = end = asyncio.Event()
        await Chat(Script(), app=runtime, session=name).send("How is the weather?")
        await end.wait()
        del ends[name]

    return run_turn


async def cluster(config: dict[str, Any], stack: AsyncExitStack) -> None:
    """A worker of a cell."""
    await stack.enter_async_context(Cluster(**config["cluster"]).join(make))


# Bare -------------------------------------------------------------------------------------------------------------------


TABLES = """
CREATE TABLE IF NOT EXISTS bare_turns (id text PRIMARY KEY, state text NOT NULL, answer text);
CREATE TABLE IF NOT EXISTS bare_steps (turn text, n int, body bytea NOT NULL, PRIMARY KEY (turn, n));
"""


async def insert(config: dict[str, Any], stack: AsyncExitStack) -> One:
    """One INSERT, and so one transaction, for every step; and a row for the turn."""
    pool: Any = await stack.enter_async_context(asyncpg.create_pool(config["database"], min_size=16, max_size=16))
    await pool.execute(TABLES)
    add = "INSERT INTO bare_steps (turn, n, body) VALUES ($1, $2, $3)"

    async def run_turn(name: str) -> None:
        numbers = count(1)
        await pool.execute("INSERT INTO bare_turns (id, state) VALUES ($1, 'busy')", name)
        for _ in range(ROUNDS):
            body = json.dumps({"text": MESSAGE, "calls": ["weather"] * CALLS}).encode()
            await pool.execute(add, name, next(numbers), body)
            results = [json.dumps({"text": RESULT}).encode() for _ in range(CALLS)]
            await asyncio.gather(*(pool.execute(add, name, next(numbers), result) for result in results))
        await pool.execute("UPDATE bare_turns SET state = 'over', answer = $2 WHERE id = $1", name, CLOSING)

    return run_turn


async def journalled(config: dict[str, Any], stack: AsyncExitStack) -> None:
    """A handler with twelve journalled steps, on the server and with the settings that ours has."""
    turns = sdk.VirtualObject(
        SERVICE,
        inactivity_timeout=FOREVER,
        abort_timeout=FOREVER,
        journal_retention=timedelta(0),
        idempotency_retention=timedelta(0),
        invocation_retry_policy=RETRIES,
    )

    async def message() -> dict[str, Any]:
        return {"text": MESSAGE, "calls": ["weather"] * CALLS}

    async def result() -> dict[str, Any]:
        return {"text": RESULT}

    async def turn(context: sdk.ObjectContext) -> str:
        for _ in range(ROUNDS):
            await context.run_typed("model", message)
            await sdk.gather(*(context.run_typed(f"tool{slot}", result) for slot in range(CALLS)))
        return CLOSING

    turns.handler("turn")(turn)
    sock = socket.socket(fileno=config["fd"])
    server = _SharedSocketServer(sdk.app([turns], "bidi"), sock)
    serving = asyncio.get_running_loop().create_task(server.serve())
    stack.callback(serving.cancel)
    requests = RestateClient(config["restate"], config["admin"], SERVICE)
    stack.push_async_callback(requests.aclose)
    await requests.register(socket_url(sock))


SIDES: dict[str, Callable[[dict[str, Any], AsyncExitStack], Awaitable[One | None]]] = {
    "insert": insert,
    "restate": journalled,
    "cluster": cluster,
    "postgres": ours,
    "sqlite": ours,
    "memory": ours,
}


async def main(kind: str, config: dict[str, Any]) -> None:
    async with AsyncExitStack() as stack:
        run_turn = await SIDES[kind](config, stack)
        tune_garbage_collector()
        print(READY, flush=True)
        profile = cProfile.Profile() if config.get("profile") else None
        while line := await asyncio.to_thread(sys.stdin.readline):
            if line.strip() == "profile" and profile is not None:
                profile.enable()
            elif run_turn is not None:
                await closed_loop(run_turn, *map(int, line.split()))
                print(DONE, flush=True)
        if profile is not None:
            profile.disable()
            profile.dump_stats(config["profile"])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(main(sys.argv[1], json.loads(sys.argv[2])))
