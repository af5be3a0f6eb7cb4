"""Bounded reading of command lines: short ones in this process, longer ones in a worker process that can be killed.

The problem: the command line of a call is analysed on the event loop, before any gate opens, and its text is untrusted.
The parser, tree-sitter-bash, takes quadratic time for what it does not understand: 4 s for 16 KB. It cannot be
interrupted (its progress callback crashes the interpreter in tree-sitter 0.25), and a thread cannot be killed.

So a call whose commands have at most `SHORT` bytes together is read at once: the square of so little is a few
milliseconds, and there is no message to another process. Everything longer goes to one worker process, which is started
on first use. A command line that takes it longer than `worker.CPU_SECONDS` ends it, and is denied; so is a call that
finds too many others waiting. Only command lines that a model writes to be slow ever reach either limit.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Final

import msgspec

from everturn.core.rules.patterns import Subject
from everturn.errors import ConfigError
from everturn.permissions.shell.command_line import read_command
from everturn.permissions.shell.parser import MAX_BYTES, UnreadableCommand
from everturn.permissions.shell.worker import CommandReading

__all__ = ["SHORT", "read_commands", "read_short"]

SHORT: Final = 512  # bytes of all the commands of one call
LONGEST: Final = 4 * MAX_BYTES  # bytes of all the commands of one call
WALL_SECONDS: Final = 20.0  # the worker's own limit is CPU time; this is for one that hangs, or on Windows
MOST_WAITING: Final = 32  # calls
TOO_SLOW: Final = "this command line takes too long to judge; split it, or write it more plainly"
TOO_LONG: Final = "this command line is too long to judge ({size} bytes, at most {most})"
BUSY: Final = "too many command lines wait to be judged; try again later"
_START: Final = "import sys; sys.path[:] = sys.argv[1:]; from everturn.permissions.shell.worker import main; main()"


def read_short(text: str) -> Sequence[Subject]:
    """Read a command line at once; for synchronous callers.

    Raises:
        UnreadableCommand: it is not certain what it would run, or it is not short.
    """
    _check_length([text], SHORT)
    return read_command(text)


async def read_commands(texts: Sequence[str]) -> list[Sequence[Subject]]:
    """Read the command lines of one call.

    Raises:
        UnreadableCommand: it is not certain what one of them would run, or not in time.
        ConfigError: the parser is not installed.
    """
    if _size(texts) <= SHORT:
        return [read_command(text) for text in texts]
    for text in texts:
        _check_length([text], MAX_BYTES)
    _check_length(texts, LONGEST)
    return [_subjects(line) for line in await _worker().read(texts)]


def _size(texts: Sequence[str]) -> int:
    return sum(len(text) if text.isascii() else len(text.encode(errors="surrogatepass")) for text in texts)


def _check_length(texts: Sequence[str], most: int) -> None:
    if (size := _size(texts)) > most:
        raise UnreadableCommand(TOO_LONG.format(size=size, most=most))


def _subjects(line: CommandReading) -> Sequence[Subject]:
    if line.unreadable:
        raise UnreadableCommand(line.unreadable)
    if line.misconfigured:
        raise ConfigError(line.misconfigured)
    return line.subjects


class CommandWorker:
    """The worker process, and the one thread that communicates with it: the default thread pool may be busy."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = ThreadPoolExecutor(1, "everturn-commands")
        self._waiting = 0
        self._counting = threading.Lock()
        self._owner = os.getpid()

    async def read(self, texts: Sequence[str]) -> list[CommandReading]:
        """Send the command lines of a call, and wait for the result."""
        line = _encoded(texts)
        if self._waiting >= MOST_WAITING:
            raise UnreadableCommand(BUSY)
        self._count(1)
        future = self._thread.submit(self._exchange, line)
        future.add_done_callback(lambda _: self._count(-1))
        answer = await asyncio.wrap_future(future)
        if answer is None:
            raise UnreadableCommand(TOO_SLOW)
        return msgspec.json.decode(answer, type=list[CommandReading])

    def _count(self, change: int) -> None:
        with self._counting:
            self._waiting += change

    def _exchange(self, line: bytes) -> bytes | None:
        """Send one line to the process, and read one; None if none came in time. It runs in the thread."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        deadline, received = time.monotonic() + WALL_SECONDS, bytearray()
        with suppress(BrokenPipeError), selectors.DefaultSelector() as ready:
            process.stdin.write(line)
            ready.register(process.stdout, selectors.EVENT_READ)
            while not received.endswith(b"\n"):
                if not ready.select(max(0.0, deadline - time.monotonic())):
                    break
                data = os.read(process.stdout.fileno(), 65_536)
                if not data:
                    break
                received += data
        if received.endswith(b"\n"):
            return bytes(received)
        self.end()
        return None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.end()
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _START, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                cwd=os.path.abspath(os.sep),
                start_new_session=True,  # Ctrl+C is for the parent process
                bufsize=0,
            )
        return self._process

    def end(self) -> None:
        """Kill the process, if it is ours: after a fork it is the parent's."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.kill()
            with process:
                pass


def _encoded(texts: Sequence[str]) -> bytes:
    try:
        return msgspec.json.encode(texts) + b"\n"
    except UnicodeEncodeError:
        raise UnreadableCommand(
            "this command line contains an incomplete character (a lone surrogate); remove it"
        ) from None


@cache
def _worker() -> CommandWorker:
    """The worker of this process; it is started when a line is first read."""
    worker = CommandWorker()
    atexit.register(worker.end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_worker.cache_clear)
    return worker
