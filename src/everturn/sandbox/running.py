"""A process → what it wrote, bounded: read through pipes until it ends, floods, eats too much, or its time is over.

It blocks, in a thread of its own; `in_thread` waits for it without blocking anybody, and a cancelled wait returns only
when the process is dead.
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

from everturn.core.sandboxes import Killed

T = TypeVar("T")
READ = 65_536
WATCH = 0.05  # seconds between two looks at what is used
AFTER_DEATH = 2.0  # seconds that the pipes of a killed process have to end


class Stop:
    """Something a thread that waits for pipes can be woken by."""

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        self._lock = threading.Lock()
        self.is_set = False

    def set(self) -> None:
        """Say that nobody wants it any more."""
        with self._lock:
            self.is_set = True
            if self._writer >= 0:
                os.write(self._writer, b"x")

    def close(self) -> None:
        """Nobody waits any more."""
        with self._lock:
            os.close(self.reader)
            os.close(self._writer)
            self._writer = -1


async def in_thread(work: Callable[[Stop], T]) -> T:
    """Do blocking work in a thread of its own; a pool would be held up by runs that take minutes.

    If this is cancelled the work is told to stop, and has ended when the cancellation goes on.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    stop = Stop()
    came: list[T] = []
    failed: list[BaseException] = []

    def body() -> None:
        try:
            came.append(work(stop))
        except BaseException as error:
            failed.append(error)
        finally:
            stop.close()
            with contextlib.suppress(RuntimeError):  # the loop is gone
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
    return came[0]


class Bounds(Struct, frozen=True):
    """How much a run may write and take."""

    seconds: float
    keep: int  # bytes of each stream that are kept
    flood: int  # bytes of both after which it is killed


class Read(Struct, frozen=True):
    """What was read, and why no more."""

    stdout: bytes
    stderr: bytes
    killed: Killed
    is_stdout_cut: bool
    is_stderr_cut: bool


def read_all(
    stdout: int,
    stderr: int,
    pidfd: int,
    bounds: Bounds,
    stop: Stop | None,
    kill: Callable[[], None],
    watch: Callable[[], Killed],
) -> Read:
    """Read both pipes until they and the process have ended; kill it if there is a reason. What floods is not kept."""
    now = time.monotonic()
    deadline, watched = now + bounds.seconds, now + WATCH
    kept: dict[int, bytearray] = {stdout: bytearray(), stderr: bytearray()}
    cut = dict.fromkeys(kept, False)
    total, left = 0, len(kept) + 1
    killed: Killed = ""
    why: Killed = ""
    with selectors.DefaultSelector() as waiting:
        for one in (stdout, stderr, pidfd):
            waiting.register(one, selectors.EVENT_READ)
        if stop is not None:
            waiting.register(stop.reader, selectors.EVENT_READ)
        while left:
            now = time.monotonic()
            if now >= watched:
                watched = now + WATCH
                why = why or ("" if killed else watch())
            if now >= deadline:
                if killed:
                    break  # the pipes of the dead end by themselves; one that does not is not waited for
                why = why or "time"
            if why and not killed:
                killed, deadline = why, now + AFTER_DEATH
                kill()
            for key, _ in waiting.select(max(0.001, min(watched, deadline) - now)):
                if stop is not None and key.fd == stop.reader:
                    waiting.unregister(stop.reader)
                    why = why or "cancelled"
                    continue
                data = b"" if key.fd == pidfd else os.read(key.fd, READ)
                if not data:
                    waiting.unregister(key.fd)
                    left -= 1
                    continue
                room = max(0, bounds.keep - len(kept[key.fd]))
                kept[key.fd] += data[:room]
                cut[key.fd] = cut[key.fd] or len(data) > room
                total += len(data)
                if total > bounds.flood:
                    why = why or "output"
    return Read(bytes(kept[stdout]), bytes(kept[stderr]), killed, cut[stdout], cut[stderr])


def read_soon(pipe: int, until: bytes, seconds: float, most: int = READ) -> bytes:
    """Read until these bytes have come, the pipe ends, it is too much or too late: whatever there is by then."""
    deadline, came = time.monotonic() + seconds, bytearray()
    with selectors.DefaultSelector() as waiting:
        waiting.register(pipe, selectors.EVENT_READ)
        while until not in came and len(came) < most and waiting.select(max(0.0, deadline - time.monotonic())):
            data = os.read(pipe, READ)
            if not data:
                break
            came += data
    return bytes(came)
