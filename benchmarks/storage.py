"""What turns and forks take on the disk: bytes per turn at three sizes, and a thousand forks of a conversation of 1 MB.

    python benchmarks/storage.py [--short] [--json FILE]

New content is what people and the model have said and what tools gave back, as UTF-8. Everything else is ours: the log,
the messages made of it, the words to search by, indexes. The words are drawn from a small vocabulary by a seed, so they
compress as talk does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

from durable_side import CALLS, CLOSING, MESSAGE, RESULT, ROUNDS, Script, closed_loop, make

from everturn import Chat
from everturn.app import App
from everturn.core.chunks import Chunk, FinishChunk, TextChunk
from everturn.core.requests import ModelRequest
from everturn.stores.sql.store import SqlStore

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the root, where `tools` is

from tools.servers.postgres import PostgresServer, private_postgres

QUESTION = "How is the weather?"
TURN = len(QUESTION) + ROUNDS * (len(MESSAGE) + CALLS * len(RESULT)) + len(CLOSING)  # bytes that are content
AT_ONCE = 16
FORK_GOAL = 2.0  # times the new content
WORDS = [
    f"{a}{b}{c}" for a in ("ka", "lo", "mi", "ser", "ta") for b in ("n", "ra", "vel", "do") for c in ("", "ly", "ing")
]

Size = Callable[[], Awaitable[int]]


def words(seed: int, size: int) -> str:
    """Text of so many bytes."""
    chosen = random.Random(seed).choices(WORDS, k=size // 3)
    return " ".join(chosen)[:size]


class Talk:
    """A model that answers with as much as it was told."""

    name = "talk"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        prompt = request.messages[-1].text
        yield [TextChunk(prompt[::-1]), FinishChunk("stop")]


async def turns(store: SqlStore, size: Size, counts: Sequence[int]) -> list[dict[str, Any]]:
    """Turns of twelve steps, each in a session of its own: (turns so far, bytes per turn since the last row)."""
    app = make(store)
    rows: list[dict[str, Any]] = []

    async def run_turn(name: str) -> None:
        await (await Chat(Script(), app=app, session=name).send(QUESTION))

    await run_turn("first")
    before, done = await size(), 0
    for count in counts:
        await closed_loop(run_turn, count - done, AT_ONCE)
        now = await size()
        rows.append({"turns": count, "bytes_per_turn": (now - before) / (count - done), "content": TURN})
        before, done = now, count
    await app.aclose()
    return rows


async def forks(store: SqlStore, size: Size, long: int, count: int, length: int) -> dict[str, Any]:
    """Forks from the end of a long conversation, each a new branch of one question and one answer."""
    app = App(Talk(), store=store)
    chat = Chat(Talk(), app=app, session="long")
    for number in range(max(1, long // 20_000)):
        await (await chat.send(words(-number - 1, 10_000)))
    leaf = (await chat.messages())[-1]
    before = await size()

    async def run_fork(name: str) -> None:
        await (await chat.send(words(int(name, 16), length), after=leaf))

    await closed_loop(run_fork, count, AT_ONCE)
    grown = await size() - before
    await app.aclose()
    content = count * 2 * length
    return {"forks": count, "conversation": long, "grown": grown, "content": content, "times": grown / content}


async def on_sqlite(home: Path, plan: dict[str, Any]) -> dict[str, Any]:
    async def run(name: str, do: Callable[[SqlStore, Size], Awaitable[Any]]) -> Any:
        path = home / name
        store = SqlStore.sqlite(path)

        async def size() -> int:
            # Its pages, wherever they are just now: the journal is emptied in its own time, and starts again.
            with closing(sqlite3.connect(path)) as connection:
                return connection.execute(
                    "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
                ).fetchone()[0]

        try:
            return await do(store, size)
        finally:
            await store.aclose()

    return {
        "turns": await run("turns.db", lambda store, size: turns(store, size, plan["turns"])),
        "forks": await run("forks.db", lambda store, size: forks(store, size, *plan["forks"])),
    }


async def on_postgres(postgres: PostgresServer, plan: dict[str, Any]) -> dict[str, Any]:
    async def run(schema: str, do: Callable[[SqlStore, Size], Awaitable[Any]]) -> Any:
        await postgres.sql(f"CREATE SCHEMA {schema}")
        store = SqlStore.postgres(postgres.url, schema)

        async def size() -> int:
            query = (
                "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
            )
            await postgres.sql("VACUUM")  # as it is once the server has cleaned up
            return int(await postgres.sql(f"{query} WHERE nspname = '{schema}' AND relkind = 'r'") or 0)

        try:
            return await do(store, size)
        finally:
            await store.aclose()

    return {
        "turns": await run("turns", lambda store, size: turns(store, size, plan["turns"])),
        "forks": await run("forks", lambda store, size: forks(store, size, *plan["forks"])),
    }


async def measure(plan: dict[str, Any]) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="everturn-storage-")))
        postgres = await stack.enter_async_context(private_postgres(home))
        return {"sqlite": await on_sqlite(home, plan), "postgres": await on_postgres(postgres, plan)}


LONG = {"turns": (10, 100, 1_000), "forks": (1_000_000, 1_000, 2_000)}
SHORT = {"turns": (2, 4), "forks": (40_000, 5, 2_000)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="only to see that it works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    found = asyncio.run(measure(SHORT if options.short else LONG))
    for name, side in found.items():
        for row in side["turns"]:
            times = row["bytes_per_turn"] / row["content"]
            print(
                f"{name}: up to {row['turns']} turns, {row['bytes_per_turn']:.0f} bytes a turn, {times:.2f} × its content"
            )
        fork = side["forks"]
        resolution = "met" if fork["times"] < FORK_GOAL else "missed"
        print(
            f"{name}: {fork['forks']} forks of {fork['conversation']} bytes: {fork['times']:.2f} × the new content, {resolution}"
        )
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
