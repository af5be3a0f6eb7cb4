"""Event loop watchdog: a thread that ends the process when its event loop is blocked.

The problem. A tool that blocks (`time.sleep`, a socket without a timeout, an endless loop) stops the event loop, and with
it every session this process drives. Nothing outside notices: granian answers Restate's pings from threads of its own, so
the connection looks alive, and Restate hands the sessions to no other worker. Only the process itself can tell.

What counts. A thread asks the loop to run a callback and, while that has not run, adds up time. It does not add up

- time in which the thread itself did not run: the process was stopped (SIGSTOP), the machine suspended or starved;
- time in which the loop's thread waited for a processor (`/proc/self/task/TID/schedstat`): a busy machine makes a loop slow
  and does not stop it;
- time in which the loop's thread waited for a disk (state D), paging included.

What remains is time in which the loop's thread slept in a call or computed, without running the callback. After half of the
limit the stack is logged as a warning. At the limit the stacks of all threads are written to stderr, `on_wedge` is called
with the drive (the context of the running task names it), and the process exits: connections break, and the engine hands its
sessions to other workers, as after any crash.

A thread cannot run while something holds the GIL (a regular expression that backtracks). For that case a timer of the
kernel counts the processor time of the process, and the thread resets it whenever it runs: when it fires,
faulthandler writes the stacks and SIGVTALRM ends the process. It counts processor time, so a stopped process is safe.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextvars import Context
from pathlib import Path

from everturn.driver.driver import CURRENT_DRIVE, ActiveDrive

log = logging.getLogger(__name__)

LIMIT = 5.0  # seconds
TICK = 0.25  # seconds between two checks
GRACE = 3.0  # seconds for last log records; an unread stderr, or a database that is down, must not keep the process
BLOCKED_EXIT_CODE = 70  # the exit code: EX_SOFTWARE

Report = Callable[[ActiveDrive | None], None]


def blocked_seconds(elapsed: float, starved: float, state: str) -> float:
    """How much of the time between two checks counts against the loop."""
    if state == "D":
        return 0.0
    return max(0.0, min(elapsed, 2 * TICK) - max(0.0, starved))


class LoopWatchdog:
    """Watches the event loop in which it is started. Without `ends` it only logs."""

    def __init__(self, limit: float = LIMIT, on_wedge: Report | None = None, *, ends: bool = True) -> None:
        self._limit, self._on_wedge, self._ends = limit, on_wedge, ends
        self._stopped = threading.Event()
        self._has_turned = True

    def start(self) -> None:
        """Start watching; called in the loop's thread. A limit of 0 disables it."""
        if self._limit <= 0:
            return
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._tid = threading.get_native_id()
        if self._ends:
            faulthandler.register(signal.SIGVTALRM, all_threads=True, chain=True)
            signal.setitimer(signal.ITIMER_VIRTUAL, self._limit)
        threading.Thread(target=self._watch, name="loop-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Stop watching."""
        self._stopped.set()
        if self._ends and self._limit > 0:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def _mark_turned(self) -> None:
        self._has_turned = True

    def _watch(self) -> None:
        blocked_for, reported = 0.0, 0  # seconds that count; 1: a warning was logged, 2: the end was
        before, starved_before = time.monotonic(), self._scheduling()[0]
        while not self._stopped.wait(TICK):
            if self._ends:
                signal.setitimer(signal.ITIMER_VIRTUAL, self._limit)
            now, (starved, state) = time.monotonic(), self._scheduling()
            blocked_for += blocked_seconds(now - before, starved - starved_before, state)
            before, starved_before = now, starved
            if self._has_turned:
                blocked_for, reported, self._has_turned = 0.0, 0, False
                try:
                    self._loop.call_soon_threadsafe(self._mark_turned)
                except RuntimeError:  # the loop was closed
                    return
            elif blocked_for >= self._limit and reported < 2:
                reported = 2
                self._report_and_exit()
            elif blocked_for >= self._limit / 2 and reported < 1:
                reported = 1
                log.warning("the event loop has not turned for %.1f s; it is at:\n%s", blocked_for, self._stack())

    def _scheduling(self) -> tuple[float, str]:
        """How many seconds the loop's thread has waited for a processor so far, and its state; Linux only."""
        try:
            task = Path(f"/proc/self/task/{self._tid}")
            starved = int((task / "schedstat").read_text().split()[1]) / 1e9
            return starved, (task / "stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError, ValueError):
            return 0.0, ""

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread)  # pyright: ignore[reportPrivateUsage]
        return "".join(traceback.format_stack(frame)[-8:]) if frame is not None else "(its thread is gone)"

    def _report_and_exit(self) -> None:
        if not self._ends:
            log.critical("the event loop has not turned for %g s; it is at:\n%s", self._limit, self._stack())
            return
        threading.Thread(target=self._exit_after_grace, daemon=True).start()
        # First: the thread that holds the lock of a log handler may be the one that hangs.
        faulthandler.dump_traceback(all_threads=True)
        driven = running_drive(self._loop)
        try:
            if self._on_wedge is not None:
                self._on_wedge(driven)
        except Exception as error:
            log.warning("that session %s stopped its worker was not written down: %r", driven, error)
        activity = f"driving session {driven.session}" if driven is not None else "in no drive"
        log.critical("the event loop has not turned for %g s, %s; this worker ends", self._limit, activity)
        os._exit(BLOCKED_EXIT_CODE)

    def _exit_after_grace(self) -> None:
        time.sleep(GRACE)
        os._exit(BLOCKED_EXIT_CODE)


def running_drive(loop: asyncio.AbstractEventLoop) -> ActiveDrive | None:
    """The drive whose task currently runs in a loop; called from another thread."""
    task = asyncio.current_task(loop)
    if task is None:
        return None
    get_context = getattr(task, "get_context", None)  # Python 3.12
    context = (
        get_context()
        if get_context is not None
        else next((referent for referent in gc.get_referents(task) if isinstance(referent, Context)), None)
    )
    return context.get(CURRENT_DRIVE) if context is not None else None
