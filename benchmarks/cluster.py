"""What a cluster adds to a stream: provider → worker → bus → node → client, many turns at once.

    python benchmarks/cluster.py [--short] [--turns 200] [--pace 0.1 0.05] [--long] [--json FILE]

The provider is a process of its own and writes into each delta when it sends it; the client, this process, looks at its
clock when it has read it. Both clocks are one. What lies between is the worker that asks the model, NATS, a node of the
API, which merges for 50 ms, and two times HTTP; all of it on one machine, with the client. `noise` is by how much a timer
of this process was late meanwhile. `cores` says how busy each part was: where they come near to what the machine has, the
times are those of a queue. `cpu us per delta` does not depend on who else uses it; the beginning and the end of turns are in
it, too.

With `--long` the acceptance of a cluster runs as well, at full size (`tests/cluster/acceptance.py`).

This is a report: it ends well whatever it finds, except for deltas that were lost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the root, where `tools` and `tests` are

STAMP = re.compile(rb"(\d+):(\d+\.\d+) ")
TICK = 0.02
SETTLING = 3.0  # seconds at the beginning that do not count: all turns begin at once, which is another question


class Plan(NamedTuple):
    """How much to measure."""

    turns: int = 200
    paces: tuple[float, ...] = (0.1, 0.05, 0.02)
    seconds: float = 20.0  # that each turn streams


# The provider ----------------------------------------------------------------------------------------------------------


class Stamped:
    """The bytes of an answer, each delta made when it is sent."""

    def __init__(self, deltas: int, pace: float) -> None:
        self._deltas, self._pace = deltas, pace

    def __iter__(self) -> Iterator[bytes | float]:
        """Say something, wait, say something."""
        yield b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        yield random.uniform(0, self._pace)  # turns are not in step with each other
        for number in range(self._deltas):
            yield _chunk(f'{{"content":"{number}:{time.time():.6f} "}}', "null")
            yield self._pace
        yield _chunk("{}", '"stop"') + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


def _chunk(delta: str, finish: str) -> bytes:
    head = '{"id":"c","object":"chat.completion.chunk","created":1,"model":"works","choices":[{"index":0,"delta":'
    data = f'data: {head}{delta},"finish_reason":{finish}}}]}}\n\n'.encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


async def provide(deltas: int, pace: float) -> None:
    """Be the provider until told to leave."""
    from everturn.testing.provider import Provider
    from everturn.testing.provider.answers import Answer

    class Clock(Provider):
        def answer(self, request: Any) -> Any:
            return Answer(200, cast("Any", Stamped(deltas, pace))), None

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Clock(record=False) as provider:
        print(provider.url, flush=True)
        await stop.wait()


@asynccontextmanager
async def provider(deltas: int, pace: float) -> AsyncGenerator[tuple[str, int]]:
    """A provider as a process: where it is, and which."""
    words = (sys.executable, __file__, "--provider", str(deltas), "--pace", str(pace))
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip(), process.pid
    finally:
        process.terminate()
        await process.wait()


# The client ------------------------------------------------------------------------------------------------------------


class Heard:
    """What came of one turn: when each delta came, and what it was."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, float, float]] = []  # number, when it was sent, how long it took
        self.messages = 0
        self.stored = self.text = b""

    def take(self, data: bytes) -> None:
        """Read one message."""
        if b'"delta":{' not in data:
            return
        now = time.time()
        self.messages += 1
        for found in STAMP.finditer(data):
            sent = float(found[2])
            self.seen.append((int(found[1]), sent, now - sent))


async def listen(cell: Any, web: Any, server: Any, record: Heard, number: int, gate: asyncio.Semaphore) -> None:
    """Begin a turn, and read it at another node than it was sent to."""
    from everturn.client.event_stream import SseDecoder

    async with gate:
        turn = await server.start_session(f"Count for {number}.", agent="works")
    address = cell.addresses[number % len(cell.addresses)]
    url = f"{address}/api/sessions/{turn.session}/turns/{turn.id}/events"
    frames = SseDecoder()
    async with web.get(url) as answer:
        assert answer.status == 200, await answer.text()
        async for data in answer.content.iter_any():
            for _, found in frames.feed(data):
                record.take(found)
    record.stored = (await server.session(turn.session).messages())[-1].text.encode()


def summed(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds."""
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return {
        name: round(1000 * ordered[round(share * last)], 1)
        for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("worst", 1.0))
    }


async def measure(turns: int, pace: float, seconds: float) -> dict[str, Any]:
    """Stream many turns at once."""
    from tools.chaos.api import api_cell
    from tools.servers.process import process_family

    deltas = int((seconds + SETTLING) / pace)
    async with provider(deltas, pace) as (url, pid), api_cell(provider=url) as cell:
        servers = [await cell.server([address]) for address in cell.addresses]
        web = await cell.web()
        records = [Heard() for _ in range(turns)]
        gate, noise = asyncio.Semaphore(16), list[float]()
        looking = asyncio.create_task(_look(noise))

        def cpu() -> dict[str, float]:
            house = cell.house
            assert house.restate is not None
            assert house.nats is not None
            return {
                "nodes": sum(node.cpu() for node in house.nodes),
                "workers": sum(parent.cpu() for parent in house.parents),
                "provider": process_family(pid).seconds,
                "engine": house.restate.cpu(),
                "database": house.postgres.cpu(),
                "bus": house.nats.cpu(),
                "client": time.process_time(),
            }

        before, began = cpu(), time.monotonic()
        jobs = (listen(cell, web, servers[n % 3 - 1], record, n, gate) for n, record in enumerate(records))
        await asyncio.gather(*jobs)
        lasted = time.monotonic() - began
        used = {part: spent - before[part] for part, spent in cpu().items()}
        looking.cancel()
    start = min(record.seen[0][1] for record in records if record.seen)
    # All turns are under way from the moment in which the last of them has begun.
    full = max(record.seen[0][1] for record in records if record.seen) + 1.0
    took = [took for record in records for _, sent, took in record.seen if sent >= full]
    lost = [n for n, record in enumerate(records) if [number for number, _, _ in record.seen] != list(range(deltas))]
    wrong = [n for n, record in enumerate(records) if len(STAMP.findall(record.stored)) != deltas]
    count = sum(len(record.seen) for record in records)
    return {
        "turns": turns,
        "pace": pace,
        "deltas": count,
        "per second": round(turns / pace),
        "begun within": round(full - 1.0 - start, 1),
        "measured": len(took),
        "added ms": summed(took) if took else {},
        "deltas per message": round(count / max(sum(record.messages for record in records), 1), 2),
        "noise ms": summed(noise),
        "cores": {part: round(spent / lasted, 2) for part, spent in used.items()},
        "cpu us per delta": {part: round(1e6 * spent / max(count, 1)) for part, spent in used.items()},
        "load": round(os.getloadavg()[0], 1),
        "turns that lost something": len(lost),
        "turns whose stored text is not what was sent": len(wrong),
    }


async def _look(late: list[float]) -> None:
    while True:
        began = time.monotonic()
        await asyncio.sleep(TICK)
        late.append(time.monotonic() - began - TICK)


def report(found: Sequence[dict[str, Any]]) -> int:
    """Print it; how many turns went wrong."""
    for measurement in found:
        print(json.dumps(measurement), flush=True)
    if found and all(measurement["added ms"] for measurement in found):
        print("p50, in ms:", *(f"{measurement['pace']:g} s: {measurement['added ms']['p50']}" for measurement in found))
    return sum(
        measurement["turns that lost something"] + measurement["turns whose stored text is not what was sent"]
        for measurement in found
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--short", action="store_true", help="few turns, for a short time")
    parser.add_argument("--long", action="store_true", help="and the acceptance of a cluster, which takes minutes")
    parser.add_argument("--turns", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--pace", type=float, nargs="*", default=[], help="seconds between two deltas of a turn")
    parser.add_argument("--json", type=Path, help="write what was measured there, too")
    parser.add_argument("--provider", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.provider:
        asyncio.run(provide(options.provider, options.pace[0]))
        return
    plan = Plan(turns=12, paces=(0.05,), seconds=3.0) if options.short else Plan()
    turns, seconds, paces = options.turns or plan.turns, options.seconds or plan.seconds, options.pace or plan.paces
    found = [asyncio.run(measure(turns, pace, seconds)) for pace in paces]
    if options.json:
        options.json.write_text(json.dumps(found, indent=2), encoding="utf-8")
    wrong = report(found)
    if options.long:
        from tests.cluster.acceptance import PARTS, run

        wrong += asyncio.run(run(list(PARTS)))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
