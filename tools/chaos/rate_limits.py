"""Rate-limit campaign: several processes share the limit of one API key; one tenant floods, another one sends a little.

    python -m tools.chaos.rate_limits [--short] [--database postgresql://…]

Three processes with an App each, on one PostgreSQL, and a model server that answers 429 above its limit. Measured: how
many requests the server refuses, how long the small tenant waits alone and beside the flood, and what a process that is
killed with SIGKILL costs the others. `--unlimited` leaves the limiter out, to see what it is good for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from everturn import App
from everturn.core.rate_limits import RateLimit
from everturn.models.registry import get_model
from everturn.models.retry import RetryPolicy
from everturn.stores.registry import get_store
from tools.chaos.figures import write_figures

DATABASE = os.environ.get("EVERTURN_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")
PROCESSES = 3
FLOOD = 12  # turns of the flooding tenant that each process keeps waiting
REFUSED_GOAL, WAIT_GOAL = 0.01, 3.0
ANSWER = (
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"fine"}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":1,"total_tokens":21}}\n\ndata: [DONE]\n\n'
)


class Provider:
    """A model server with a rate limit: a token bucket that holds two seconds of it. It tells nothing in headers."""

    def __init__(self, per_minute: float, answer_time: float = 0.0) -> None:
        self._answer_time = answer_time  # seconds from a request that was taken to its answer
        self._rate = per_minute / 60
        self._level = self._capacity = 2 * self._rate
        self._at = time.monotonic()
        self.refused, self.accepted = 0, list[float]()
        self.answered: Counter[str] = Counter()  # marker of a message -> answers

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(size))
                await self._answer(writer, str(body["messages"][-1]["content"]))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, marker: str) -> None:
        now = time.monotonic()
        self._level = min(self._capacity, self._level + (now - self._at) * self._rate)
        self._at = now
        if self._level < 1:
            self.refused += 1
            data = b'{"error":{"message":"rate limit reached","type":"rate_limit_error"}}'
            head = f"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: {len(data)}\r\n\r\n"
            writer.write(head.encode() + data)
        else:
            self._level -= 1
            self.accepted.append(now)
            self.answered[marker] += 1
            await asyncio.sleep(self._answer_time)
            head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(ANSWER)}\r\n\r\n"
            writer.write(head.encode() + ANSWER)
        await writer.drain()


# A process -----------------------------------------------------------------------------------------------------------


async def work(options: argparse.Namespace) -> None:
    """Run an App, and send what the parent asks for: lines of JSON from stdin."""
    limit = None if options.unlimited else RateLimit(requests_per_minute=options.limit, burst_seconds=0)
    retry = RetryPolicy(attempts=50, initial_delay=0.2, max_delay=2.0)
    model = get_model("m", base_url=options.provider, key="k", window=1000, rate_limit=limit, retry=retry)
    async with App(model, store=options.database) as app:
        print(json.dumps({"ready": os.getpid()}), flush=True)
        lines, flood, number = await _stdin(), list[asyncio.Task[None]](), 0
        while line := await lines.readline():
            request = json.loads(line)
            if request["do"] == "flood":
                flood = [asyncio.create_task(_flood(app, f"{options.name}-{at}")) for at in range(FLOOD)]
            elif request["do"] == "calm":
                for task in flood:
                    task.cancel()
            else:
                number += 1
                await asyncio.gather(
                    *(_one(app, "small", f"small-{number}-{at}", True) for at in range(request["count"]))
                )
                print(json.dumps({"burst": number}), flush=True)


async def _stdin() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def _flood(app: App, name: str) -> None:
    for number in range(10**6):
        await _one(app, "big", f"{name}-{number}", False)


async def _one(app: App, tenant: str, marker: str, is_told: bool) -> None:
    began = time.monotonic()
    await (await app.chat(tenant=tenant).send(marker))
    if is_told:
        print(json.dumps({"took": time.monotonic() - began}), flush=True)


# The campaign --------------------------------------------------------------------------------------------------------


class Node:
    """A process of the campaign."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def tell(self, **fields: Any) -> None:
        """Ask it for something."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(fields).encode() + b"\n")

    async def hear(self) -> dict[str, Any]:
        """Its next line."""
        assert self.process.stdout is not None
        return json.loads(await asyncio.wait_for(self.process.stdout.readline(), 180))

    async def burst(self, count: int) -> list[float]:
        """Have it send messages of the small tenant, and return how long each took."""
        self.tell(do="burst", count=count)
        times: list[float] = []
        while "burst" not in (reply := await self.hear()):
            times.append(reply["took"])
        return times


async def start(options: argparse.Namespace, url: str, database: str) -> list[Node]:
    """Start the processes, and wait until all of them are ready."""
    nodes: list[Node] = []
    for number in range(PROCESSES):
        arguments = ["--name", f"p{number}", "--provider", url, "--database", database, "--limit", str(options.limit)]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tools.chaos.rate_limits", "work", *arguments),
            *(["--unlimited"] if options.unlimited else []),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        nodes.append(Node(process))
    for node in nodes:
        await node.hear()
    return nodes


def highest(times: list[float], share: float = 0.99) -> float:
    """A high percentile."""
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


async def campaign(options: argparse.Namespace) -> dict[str, float]:
    """Run the phases, and return the figures."""
    rate = options.limit / 60
    count, bursts = max(5, int(rate)), options.bursts
    provider = Provider(options.limit, options.answer_time)
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    schema = f"everturn_limits_{os.getpid()}"
    nodes: list[Node] = []
    try:
        nodes = await start(options, url, f"{options.database}?schema={schema}")
        alone: list[float] = []
        for _ in range(bursts):
            alone += await nodes[0].burst(count)
            await asyncio.sleep(1.0)
        for node in nodes:
            node.tell(do="flood")
        await asyncio.sleep(2.0)
        beside: list[float] = []
        for _ in range(bursts):
            beside += await nodes[0].burst(count)
        used = _rate(provider, time.monotonic() - 3.0, 3.0) / rate
        os.kill(nodes[2].process.pid, signal.SIGKILL)
        killed = time.monotonic()
        await nodes[2].process.wait()
        del nodes[2]
        await asyncio.sleep(options.after)
        after = _rate(provider, killed, options.after) / rate
        for node in nodes:
            node.tell(do="calm")
        open_turns = await _drain(f"{options.database}", schema, 20.0)
        again = {marker for marker, times in provider.answered.items() if times > 1}
        answers = await answers_in_log(f"{options.database}?schema={schema}", again)
        total = provider.refused + len(provider.accepted)
        return {
            "requests": total,
            "refused": provider.refused / total,
            "alone_p99": highest(alone),
            "beside_p99": highest(beside),
            "wait_ratio": highest(beside) / highest(alone),
            "limit_used": used,
            "limit_used_after_kill": after,
            "sent_again": len(again),
            "sent_again_without_kill": sum(not marker.startswith("p2-") for marker in again),
            "answered_twice": sum(count != 1 for count in answers.values()),
            "turns_left_open": open_turns,
        }
    finally:
        for node in nodes:
            if node.process.returncode is None:
                node.process.kill()
                await node.process.wait()
        server.close()
        connection = await _connect(options.database)
        await connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
        await connection.close()


async def _connect(database: str) -> Any:
    connect: Any = getattr(asyncpg, "connect")  # noqa: B009 - it has no types
    return await connect(database)


def _rate(provider: Provider, since: float, seconds: float) -> float:
    return sum(since <= at < since + seconds for at in provider.accepted) / seconds


async def _drain(database: str, schema: str, most: float) -> int:
    """Wait until no turn is open, those of the killed process included; return how many are left."""
    connection = await _connect(database)
    try:
        deadline = time.monotonic() + most
        while True:
            left = await connection.fetchval(f"SELECT count(*) FROM {schema}.turns WHERE state <> 'over'")
            if not left or time.monotonic() > deadline:
                return left
            await asyncio.sleep(0.5)
    finally:
        await connection.close()


async def answers_in_log(database: str, markers: set[str]) -> dict[str, int]:
    """How many answers the log has to each of these messages: a request that was sent again is still one answer."""
    store = get_store(database)
    counts = dict.fromkeys(markers, 0)
    try:
        for info in await store.sessions() if markers else []:
            messages = await store.path(info.id, info.leaf)
            if messages and messages[0].text in counts:
                counts[messages[0].text] += sum(message.role == "assistant" for message in messages)
    finally:
        await store.aclose()
    return counts


def is_good(found: dict[str, float]) -> bool:
    """Whether the figures are within the goals.

    A request whose process dies before its step is written is sent again by the next one; only a few are under way then.
    They are all of the killed process, and the log has one answer to each message.
    """
    return (
        found["refused"] <= REFUSED_GOAL
        and found["wait_ratio"] <= WAIT_GOAL
        and found["sent_again"] <= FLOOD  # at most those that were under way
        and found["sent_again_without_kill"] == 0
        and found["answered_twice"] == 0
        and found["turns_left_open"] == 0
        and found["limit_used_after_kill"] >= 0.75 * found["limit_used"]
    )


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", nargs="?", default="run", choices=("run", "work"))
    parser.add_argument("--short", action="store_true", help="smaller: for tests")
    parser.add_argument("--unlimited", action="store_true", help="leave the limiter out")
    parser.add_argument("--database", default=DATABASE)
    parser.add_argument("--limit", type=float, default=180.0, help="requests per minute")
    parser.add_argument(
        "--answer-time", type=float, default=0.0, help="seconds for an answer: requests are under way at the kill"
    )
    parser.add_argument("--json", default="", help="write the figures there")
    parser.add_argument("--name", default="")
    parser.add_argument("--provider", default="")
    options = parser.parse_args(arguments)
    options.bursts, options.after = (2, 4.0) if options.short else (8, 10.0)
    return options


def main() -> int:
    """Run the campaign, or one of its processes."""
    options = parse()
    if options.mode == "work":
        asyncio.run(work(options))
        return 0
    found = asyncio.run(campaign(options))
    for name, value in found.items():
        print(f"{name:24}{value:12.3f}")
    write_figures(options.json, found)
    print("PASS" if is_good(found) else "MISS")
    return 0 if is_good(found) else 1


if __name__ == "__main__":
    sys.exit(main())
