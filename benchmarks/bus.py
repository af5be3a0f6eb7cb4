"""What it costs to carry a delta between nodes, beside bare NATS publish and subscribe of the same messages.

    python benchmarks/bus.py [--short] [--server nats-server]

A server of its own, a process that publishes and a process that reads. Turns stream side by side, one reader each, at
the pace of a model. The bare side sends messages made beforehand: as many as the bus does, and as long. Rounds take turns,
so a noisy machine disturbs both alike: trust the ratios, not the seconds. CPU is that of all three processes. Beside
them stands the bare side with a stream that captures the messages, which is what lets a reader come late.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import process_time
from typing import Any

import nats
from nats.aio.client import Client

from everturn import wire
from everturn.bus.nats import NatsBus
from everturn.core.deltas import LogAdvanced, TextDelta

GOAL = 1.3  # times the CPU of bare publish and subscribe
PACE = 0.01  # seconds between two deltas of a turn
BATCH = 5  # deltas in a message: what comes within the 50 ms over which the bus merges
WORD = "some "
SIDES = ("bare", "captured", "ours")


# The two sides -----------------------------------------------------------------------------------------------------


def subject(turn: int) -> str:
    return f"bare.d.turn{turn}"


def message(turn: int, offset: int) -> bytes:
    """What the bus sends for a batch."""
    return b"%d%b" % (
        offset // len(WORD) * 10,
        wire.dump_frames([TextDelta(f"turn{turn}", 1, 0, offset, WORD * BATCH)]),
    )


async def publish_bare(nc: Client, turns: int, deltas: int) -> float:
    """Publish messages made beforehand, at the pace in which the bus would."""
    prepared = [[message(turn, at * len(WORD)) for turn in range(turns)] for at in range(0, deltas, BATCH)]
    gc.freeze()  # what was made beforehand is nobody's garbage
    begun = process_time()
    names = [f"turn{turn}" for turn in range(turns)]
    for at in range(deltas):
        await asyncio.sleep(PACE)
        for name in names:
            _ = [TextDelta(name, 1, 0, at * len(WORD), WORD)]  # whoever drives makes them, with any bus
        if at % BATCH == BATCH - 1:
            for turn, data in enumerate(prepared[at // BATCH]):
                await nc.publish(subject(turn), data)
    await nc.flush()
    return process_time() - begun


async def publish_ours(bus: NatsBus, turns: int, deltas: int) -> float:
    """Publish deltas, as a driver does for each batch of chunks."""
    names = [f"turn{turn}" for turn in range(turns)]
    for name in names:
        bus.publish(name, [LogAdvanced(1)])
    await bus.flush()
    gc.freeze()
    begun = process_time()
    for at in range(deltas):
        await asyncio.sleep(PACE)
        for name in names:
            bus.publish(name, [TextDelta(name, 1, 0, at * len(WORD), WORD)])
    await bus.flush()
    return process_time() - begun


async def read_bare(nc: Client, turns: int, deltas: int) -> Callable[[], Awaitable[int]]:
    """Subscribe to every turn; how many messages came."""
    left, done, count = turns * (deltas // BATCH), asyncio.Event(), 0

    async def on_message(message: Any) -> None:
        nonlocal count
        count += 1
        if count == left:
            done.set()

    for turn in range(turns):
        await nc.subscribe(subject(turn), cb=on_message)
    await nc.flush()

    async def end() -> int:
        await done.wait()
        return count

    return end


async def read_ours(bus: NatsBus, turns: int, deltas: int) -> Callable[[], Awaitable[int]]:
    """Follow every turn; how many messages came."""
    size = deltas * len(WORD)

    async def read(turn: int) -> int:
        shown, count = 0, 0
        tail = bus.tail(f"turn{turn}")
        while shown < size:
            for frame in await anext(tail):
                if isinstance(frame, TextDelta):
                    shown += len(frame.text)
                    count += 1
        await tail.aclose()
        return count

    reading = [asyncio.create_task(read(turn)) for turn in range(turns)]
    await asyncio.sleep(0)
    await bus.flush()

    async def end() -> int:
        return sum(await asyncio.gather(*reading))

    return end


async def role(job: str, side: str, url: str, turns: int, deltas: int) -> None:
    """A process of its own: say when it is ready, and what it used when it is done."""
    node: Any
    if side == "ours":
        node = await NatsBus.connect(url, prefix="ours")
        publish, read, close = publish_ours, read_ours, node.aclose
    else:
        node = await nats.connect(url, no_echo=True)
        publish, read, close = publish_bare, read_bare, node.close
    if job == "read":
        end = await read(node, turns, deltas)
        print("ready", flush=True)
        begun = process_time()
        count = await end()
        print(process_time() - begun, count, flush=True)
    else:
        print(await publish(node, turns, deltas), 0, flush=True)
    await close()


# The run -----------------------------------------------------------------------------------------------------------


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_side(side: str, binary: str, turns: int, deltas: int) -> tuple[float, float, float, int]:
    """CPU seconds of publisher, reader and server, and how many messages crossed."""
    with socket.socket() as probe, tempfile.TemporaryDirectory() as folder:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
        probe.close()
        quiet = subprocess.DEVNULL
        server = subprocess.Popen(
            [binary, "-a", "127.0.0.1", "-p", port, "-js", "-sd", folder], stdout=quiet, stderr=quiet
        )
        try:
            url = f"nats://127.0.0.1:{port}"
            while socket.socket().connect_ex(("127.0.0.1", int(port))):
                time.sleep(0.02)
            if side == "captured":
                asyncio.run(capture(url))
            rest = [side, url, str(turns), str(deltas)]
            command = [sys.executable, __file__]
            reader = subprocess.Popen([*command, "read", *rest], stdout=subprocess.PIPE, text=True)
            assert reader.stdout is not None
            reader.stdout.readline()
            before = cpu_of(server.pid)
            publisher = subprocess.run([*command, "publish", *rest], stdout=subprocess.PIPE, text=True, check=True)
            read, count = reader.communicate()[0].split()
            return float(publisher.stdout.split()[0]), float(read), cpu_of(server.pid) - before, int(count)
        finally:
            server.terminate()
            server.wait()


async def capture(url: str) -> None:
    nc = await nats.connect(url)
    await nc.jetstream().add_stream(name="bare", subjects=["bare.d.*"], storage="memory", no_ack=True)
    await nc.close()


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--server", default=shutil.which("nats-server") or "/usr/sbin/nats-server")
    options = parser.parse_args()
    turns, deltas, rounds = (50, 300, 2) if options.short else (100, 500, 5)
    found: dict[str, list[tuple[float, float, float, int]]] = {side: [] for side in SIDES}
    for at in range(rounds):
        for side in SIDES if at % 2 else reversed(SIDES):
            found[side].append(measure_side(side, options.server, turns, deltas))
    print(f"{turns} turns, {turns * deltas} deltas; best of {rounds}; CPU ms per 1,000 deltas\n")
    print(
        "| side | publisher | reader | server | all | × bare | × captured | messages |\n|---|---|---|---|---|---|---|---|"
    )
    best = {side: min(samples, key=lambda sample: sum(sample[:3])) for side, samples in found.items()}
    total = {side: sum(sample[:3]) for side, sample in best.items()}
    for side, (*parts, count) in best.items():
        cells = [f"{part / turns / deltas * 1e6:.1f}" for part in (*parts, total[side])]
        cells += [f"{total[side] / total[base]:.2f}" for base in ("bare", "captured")]
        print(f"| {side} | {' | '.join(cells)} | {count} |")
    print(f"\ngoal: ≤ {GOAL} × bare")


if __name__ == "__main__":
    if sys.argv[1:2] in (["read"], ["publish"]):
        asyncio.run(role(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
    else:
        main()
