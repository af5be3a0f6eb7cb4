"""Command lines made to be slow, and how long each holds the event loop.

python -m tests.permissions.slow_commands 300       # seconds; every token at every length, then random ones
"""

from __future__ import annotations

import asyncio
import random
import sys
import time

from everturn.errors import ToolError
from everturn.permissions.shell.bounded_reader import SHORT, read_commands
from everturn.permissions.shell.parser import MAX_BYTES

LIMIT = 0.05  # seconds of the loop's CPU time
UNITS = (
    *("a", "$(", ")", "`", "'", '"', "{", "}", "${x:-", "[]a]", "[", "]", "\\", "\\\n", "$((", "))", "<<E\n", "\nE\n"),
    *("|", "a|", "&&", ";", "sed '", "s/", "/", "awk '", "print", "find . -exec ", " \\; ", "env -S", "xargs ", "x="),
    *("=", "*", "?", "~", "$x", "a,", "if ", "then ", "fi;", "case x in x) ", "esac;", "[[ ", " ]]", "=~ ", "#", "!"),
    *("sudo ", "strace ", "timeout 1 ", " -", "--", "-e ", "$'", "\\x41", "<(", ">&2", "2>", "<<<", "for i in ", "do "),
    *("done;", "y/", "/[", "^", "I", "@", "$aa", "0", "-", ".0", "é", "eval ", "bash -c ", "{a,b}", "a=b ", "\n", "\t"),
)
STARTS = (
    *("", "echo ", "sed 's/", "sed '/", "awk 'BEGIN{", "git log ", "find . ", "x=", "[[ a =~ ", 'echo "', "echo ${x:-"),
    *("echo $((", "strace ", "env -S '", "bash -c '", "cat <<E\n", "python3"),
)
ENDS = ("", "'", '"', "}", "))", " ]]", "/'", "/x/'", "\nE\n", "<}")


def build_line(start: str, unit: str, size: int, end: str = "") -> str:
    """A line of at most so many bytes."""
    room = size - len((start + end).encode())
    return start + unit * max(1, room // len(unit.encode())) + end


async def loop_seconds(line: str) -> float:
    """How much CPU time the thread of the event loop takes to read a line; the better of two tries."""
    best = float("inf")
    for _ in range(2):
        began = time.thread_time()
        try:
            await read_commands([line])
        except ToolError:
            pass
        best = min(best, time.thread_time() - began)
        if best < LIMIT / 2:
            break
    return best


async def main(seconds: float) -> int:
    """Try them all, then random ones; say which was the worst."""
    ends, dice = time.monotonic() + seconds, random.Random()
    tried, slow, worst = 0, 0, (0.0, "")
    lines = [
        build_line(start, unit, size)
        for size in (64, 128, 256, 384, SHORT, SHORT + 1, 1024, 4096, MAX_BYTES)
        for start in STARTS
        for unit in UNITS
    ]
    while time.monotonic() < ends:
        if lines:
            line = lines.pop(0)
        else:
            unit = "".join(dice.choice(UNITS) for _ in range(dice.randint(2, 4)))
            line = build_line(
                dice.choice(STARTS), unit, dice.randint(20, dice.choice((SHORT, SHORT, MAX_BYTES))), dice.choice(ENDS)
            )
        took = await loop_seconds(line)
        tried += 1
        worst = max(worst, (took, line[:80]))
        if took > LIMIT:
            slow += 1
            print(f"{took:.3f} s: {len(line.encode())} bytes: {line[:100]!r}", flush=True)
    print(
        f"{tried} lines, {len(lines)} of the table left, {slow} above {LIMIT} s; the worst {worst[0] * 1000:.1f} ms: {worst[1]!r}"
    )
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 60)))
