"""Bounded process output: reads the pipes of a process until it ends, writes or uses too much, or its time is over.

Reading blocks, in a thread of its own; `run_in_thread` awaits it without blocking the event loop, and a cancelled wait
returns only when the process is dead.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from everturn.core.sandbox import KillReason

T = TypeVar("T")
READ = 65_536
CHECK_INTERVAL = 0.05  # seconds between two checks of the usage
PIPE_TIMEOUT = 2.0  # seconds for the pipes of a killed process to end


class StopSignal:
    """Wakes a thread that waits for pipes."""

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        self._lock = threading.Lock()
        self.is_set = False

    def set(self) -> None:
        """Request the thread to stop."""
        with self._lock:
            self.is_set = True
            if self._writer >= 0:
                os.write(self._writer, b"x")

    def close(self) -> None:
        """Release the pipe; no thread waits any more."""
        with self._lock:
            os.close(self.reader)
            os.close(self._writer)
            self._writer = -1


async def run_in_thread(work: Callable[[StopSignal], T]) -> T:
    """Do blocking work in a thread of its own; a pool would be blocked by runs that take minutes.

    If this is cancelled the work is told to stop, and has ended when the cancellation is propagated.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    stop = StopSignal()
    results: list[T] = []
    failed: list[BaseException] = []

    def body() -> None:
        try:
            results.append(work(stop))
        except BaseException as error:
            failed.append(error)
        finally:
            stop.close()
            with contextlib.suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(lambda: done.done() or done.set_result(None))

    threading.Thread(target=body, name="sandbox", daemon=True).start()
    cancelled: asyncio.CancelledError | None = None
    while not done.done():
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError as error:
            cancelled = error
            stop.set()
    if cancelled is not None:
        raise cancelled
    if failed:
        raise failed[0]
    return results[0]


class ProcessLimits(Struct, frozen=True):
    """The limits of a run's time and output."""

    seconds: float
    keep: int  # bytes of each stream that are kept
    flood: int  # bytes of both after which it is killed


class ProcessOutput(Struct, frozen=True):
    """The output, and why it was killed."""

    stdout: bytes
    stderr: bytes
    killed: KillReason
    is_stdout_cut: bool
    is_stderr_cut: bool


def read_output(
    stdout: int,
    stderr: int,
    pidfd: int,
    bounds: ProcessLimits,
    stop: StopSignal | None,
    kill: Callable[[], None],
    watch: Callable[[], KillReason],
) -> ProcessOutput:
    """Read both pipes until they and the process have ended; kill it if there is a reason. Excess output is dropped."""
    now = time.monotonic()
    deadline, watched = now + bounds.seconds, now + CHECK_INTERVAL
    kept: dict[int, bytearray] = {stdout: bytearray(), stderr: bytearray()}
    cut = dict.fromkeys(kept, False)
    total, open_count = 0, len(kept) + 1
    killed: KillReason = ""
    why: KillReason = ""
    with selectors.DefaultSelector() as waiting:
        for descriptor in (stdout, stderr, pidfd):
            waiting.register(descriptor, selectors.EVENT_READ)
        if stop is not None:
            waiting.register(stop.reader, selectors.EVENT_READ)
        while open_count:
            now = time.monotonic()
            if now >= watched:
                watched = now + CHECK_INTERVAL
                why = why or ("" if killed else watch())
            if now >= deadline:
                if killed:
                    break  # the pipes of a dead process end by themselves; one that does not is not waited for
                why = why or "time"
            if why and not killed:
                killed, deadline = why, now + PIPE_TIMEOUT
                kill()
            for key, _ in waiting.select(max(0.001, min(watched, deadline) - now)):
                if stop is not None and key.fd == stop.reader:
                    waiting.unregister(stop.reader)
                    why = why or "cancelled"
                    continue
                data = b"" if key.fd == pidfd else os.read(key.fd, READ)
                if not data:
                    waiting.unregister(key.fd)
                    open_count -= 1
                    continue
                remaining = max(0, bounds.keep - len(kept[key.fd]))
                kept[key.fd] += data[:remaining]
                cut[key.fd] = cut[key.fd] or len(data) > remaining
                total += len(data)
                if total > bounds.flood:
                    why = why or "output"
    return ProcessOutput(bytes(kept[stdout]), bytes(kept[stderr]), killed, cut[stdout], cut[stderr])


def read_until(pipe: int, until: bytes, seconds: float, most: int = READ) -> bytes:
    """Read until these bytes have come, the pipe ends, it is too much or too late, and return what was read."""
    deadline, received = time.monotonic() + seconds, bytearray()
    with selectors.DefaultSelector() as waiting:
        waiting.register(pipe, selectors.EVENT_READ)
        while until not in received and len(received) < most and waiting.select(max(0.0, deadline - time.monotonic())):
            data = os.read(pipe, READ)
            if not data:
                break
            received += data
    return bytes(received)
