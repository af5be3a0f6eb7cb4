"""Event loop watchdog: a loop that stands still ends its process; one that is slow, or stopped from outside, does not."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from everturn import Chat, tool
from everturn.driver.driver import ActiveDrive
from everturn.testing import ScriptedModel, call, calls, say
from everturn.watchdog import BLOCKED_EXIT_CODE, LIMIT, TICK, LoopWatchdog, blocked_seconds, running_drive

LIMIT_HERE = 1.0
PROGRAM = """
import asyncio, re, sys, time
from everturn.watchdog import LoopWatchdog

async def blocked():
    time.sleep(1000)

async def backtracking():
    re.match(r"(a+)+$", "a" * 64 + "b")

async def stopped():
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(10):
        await asyncio.sleep(0.1)

async def slow():
    for _ in range(15):
        time.sleep(0.1)
        await asyncio.sleep(0)

async def main():
    watchdog = LoopWatchdog(float(sys.argv[2]), lambda driven: print("told", driven, flush=True))
    watchdog.start()
    await globals()[sys.argv[1]]()
    watchdog.stop()
    print("left in order", flush=True)

asyncio.run(main())
"""


def run(scenario: str, limit: float = LIMIT_HERE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, scenario, str(limit)], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_loop_that_is_blocked_ends_its_process_and_shows_the_stack() -> None:
    ended = run("blocked")

    assert ended.returncode == BLOCKED_EXIT_CODE
    assert ended.stdout == "told None\n"
    assert "in blocked" in ended.stderr


def test_a_loop_that_computes_without_letting_go_of_the_interpreter_ends_its_process() -> None:
    ended = run("backtracking")

    assert ended.returncode in (BLOCKED_EXIT_CODE, -signal.SIGVTALRM)
    assert "in backtracking" in ended.stderr


def test_a_loop_that_turns_slowly_is_left_alone() -> None:
    assert run("slow").stdout == "left in order\n"


def test_without_a_limit_nothing_is_watched() -> None:
    assert run("slow", 0).stdout == "left in order\n"


async def test_a_process_that_was_stopped_and_goes_on_is_left_alone() -> None:
    program = (sys.executable, "-c", PROGRAM, "stopped", str(LIMIT_HERE))
    pipes: dict[str, Any] = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*program, **pipes)
    assert process.stdin is not None
    assert process.stdout is not None
    async with asyncio.timeout(60):
        await process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(2 * LIMIT_HERE)
        process.stdin.write(b"\n")
        process.send_signal(signal.SIGCONT)

        assert await process.stdout.read() == b"left in order\n"
        assert await process.wait() == 0


@pytest.mark.parametrize(
    ("elapsed", "starved", "state", "counts"),
    [
        (TICK, 0.0, "S", TICK),  # it sleeps in a call
        (TICK, 0.0, "R", TICK),  # it computes
        (TICK, TICK, "R", 0.0),  # it would compute, and has no processor
        (TICK, 0.75 * TICK, "R", 0.25 * TICK),
        (30.0, 0.0, "S", 2 * TICK),  # this thread did not run either: the process was stopped
        (TICK, 0.0, "D", 0.0),  # it waits for a disk
    ],
)
def test_only_time_in_which_the_loop_could_have_turned_counts(
    elapsed: float, starved: float, state: str, counts: float
) -> None:
    assert blocked_seconds(elapsed, starved, state) == pytest.approx(counts)


def test_a_machine_with_a_dozen_hungry_processes_for_each_processor_needs_minutes_to_be_taken_for_a_wedge() -> None:
    """What counts at a load of 12 in a loop that computes all the time: its share of a processor."""
    assert sum(blocked_seconds(TICK, TICK * 11 / 12, "R") for _ in range(int(50 / TICK))) < LIMIT


async def test_the_drive_that_stands_in_the_way_is_known_by_name() -> None:
    caught: list[ActiveDrive | None] = []

    async def deep(look: Callable[[], None]) -> None:
        look()

    @tool(read_only=True)
    async def block() -> str:
        """Do something in a task of its own."""
        loop = asyncio.get_running_loop()
        from concurrent.futures import ThreadPoolExecutor

        def look() -> None:  # as the watchdog does it: from another thread, while this one stands still
            with ThreadPoolExecutor(1) as pool:
                caught.append(pool.submit(running_drive, loop).result())

        await asyncio.create_task(deep(look))
        return "done"

    async with Chat(ScriptedModel([calls(call("block"))], [say("ok")]), tools=[block], session="s") as chat:
        await (await chat.send("go"))

    assert [(driven.session, driven.tries) for driven in caught if driven is not None] == [("s", 1)]


async def test_one_that_only_watches_says_where_the_loop_stands_and_ends_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watchdog = LoopWatchdog(4 * TICK, ends=False)
    watchdog.start()

    await _stand_still(lambda: "the event loop has not turned for 1 s" in caplog.text)

    watchdog.stop()
    assert "_stand_still" in caplog.text


async def _stand_still(until: Callable[[], bool]) -> None:
    import time

    for _ in range(400):
        if until():
            return
        time.sleep(0.05)  # noqa: ASYNC251 - that is what it is about
