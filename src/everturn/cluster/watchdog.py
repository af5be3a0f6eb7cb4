"""Event loop watchdog: a thread that ends the process when its event loop has stopped turning.

The problem. A tool that blocks (`time.sleep`, a socket without a timeout, an endless loop) stops the event loop, and with
it every session this process drives. Nobody outside notices: granian answers Restate's pings from threads of its own, so
the connection looks alive, and Restate hands the sessions to nobody else. Only the process itself can tell.

What counts. A thread asks the loop to run a callback and, while that has not run, adds up time. It does not add up

- time in which the thread itself did not run: the process was stopped (SIGSTOP), the machine suspended or starved;
- time in which the loop's thread waited for a processor (`/proc/self/task/TID/schedstat`): a busy machine makes a loop slow
  and does not stop it;
- time in which the loop's thread waited for a disk (state D), paging included.

What remains is time in which the loop's thread slept in a call or computed, without turning. After half of the limit the
stack is logged as a warning. At the limit the stacks of all threads are written to stderr, `on_wedge` is told which drive it
was (the context of the task that runs names it), and the process exits: connections break, and the engine hands its
sessions to other workers, as after any death.

A thread cannot run while something holds the GIL (a regular expression that backtracks). For that case a timer of the
kernel counts the processor time of the process, which the thread winds up again whenever it runs: when it fires,
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

from everturn.turn.driver import DRIVEN, Driven

log = logging.getLogger(__name__)

LIMIT = 5.0  # seconds
TICK = 0.25  # seconds between two looks
GRACE = 3.0  # seconds for last words; a stderr that nobody reads, or a database that is away, must not keep us
WEDGED = 70  # the exit code: EX_SOFTWARE

Report = Callable[[Driven | None], None]


def counted(elapsed: float, starved: float, state: str) -> float:
    """How much of the time between two looks counts against the loop."""
    if state == "D":
        return 0.0
    return max(0.0, min(elapsed, 2 * TICK) - max(0.0, starved))


class LoopWatchdog:
    """Watches the event loop in which it is started. Without `ends` it only says what it sees."""

    def __init__(self, limit: float = LIMIT, on_wedge: Report | None = None, *, ends: bool = True) -> None:
        self._limit, self._on_wedge, self._ends = limit, on_wedge, ends
        self._stopped = threading.Event()
        self._has_turned = True

    def start(self) -> None:
        """Begin to watch; called in the loop's thread. A limit of 0 watches nothing."""
        if self._limit <= 0:
            return
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._tid = threading.get_native_id()
        if self._ends:
            faulthandler.register(signal.SIGVTALRM, all_threads=True, chain=True)
            signal.setitimer(signal.ITIMER_VIRTUAL, self._limit)
        threading.Thread(target=self._watch, name="loop-watchdog", daemon=True).start()

    def stop(self) -> None:
        """Watch no longer."""
        self._stopped.set()
        if self._ends and self._limit > 0:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def _turn(self) -> None:
        self._has_turned = True

    def _watch(self) -> None:
        still, said = 0.0, 0  # seconds that count; 1: a warning was logged, 2: that it is over
        before, starved_before = time.monotonic(), self._scheduling()[0]
        while not self._stopped.wait(TICK):
            if self._ends:
                signal.setitimer(signal.ITIMER_VIRTUAL, self._limit)
            now, (starved, state) = time.monotonic(), self._scheduling()
            still += counted(now - before, starved - starved_before, state)
            before, starved_before = now, starved
            if self._has_turned:
                still, said, self._has_turned = 0.0, 0, False
                try:
                    self._loop.call_soon_threadsafe(self._turn)
                except RuntimeError:  # it was closed
                    return
            elif still >= self._limit and said < 2:
                said = 2
                self._wedged()
            elif still >= self._limit / 2 and said < 1:
                said = 1
                log.warning("the event loop has not turned for %.1f s; it is at:\n%s", still, self._stack())

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

    def _wedged(self) -> None:
        if not self._ends:
            log.critical("the event loop has not turned for %g s; it is at:\n%s", self._limit, self._stack())
            return
        threading.Thread(target=self._leave_in_any_case, daemon=True).start()
        faulthandler.dump_traceback(
            all_threads=True
        )  # first: whoever holds the lock of a log handler may be what hangs
        driven = driven_by(self._loop)
        try:
            if self._on_wedge is not None:
                self._on_wedge(driven)
        except Exception as error:
            log.warning("that session %s stopped its worker was not written down: %r", driven, error)
        what = f"driving session {driven.session}" if driven is not None else "in no drive"
        log.critical("the event loop has not turned for %g s, %s; this worker ends", self._limit, what)
        os._exit(WEDGED)

    def _leave_in_any_case(self) -> None:
        time.sleep(GRACE)
        os._exit(WEDGED)


def driven_by(loop: asyncio.AbstractEventLoop) -> Driven | None:
    """The drive whose task runs in a loop at this moment; asked from another thread."""
    task = asyncio.current_task(loop)
    if task is None:
        return None
    get_context = getattr(task, "get_context", None)  # Python 3.12
    context = (
        get_context()
        if get_context is not None
        else next((one for one in gc.get_referents(task) if isinstance(one, Context)), None)
    )
    return context.get(DRIVEN) if context is not None else None
