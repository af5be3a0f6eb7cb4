"""What a person types, or what a pipe brings → lines, one after the other. What they mean is for others to know."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator

LONGEST = 4095  # bytes; a terminal takes no more of one line, and drops the rest without a word


def typed(mark: str) -> Iterator[str]:
    """The lines a person types behind the mark, until they leave with Ctrl-D or Ctrl-C.

    With readline, where Python has it: the arrows move, older lines come back, and a pasted text is one message
    however many lines it has. `input` is in the main thread so that Ctrl-C reaches it and readline puts the terminal
    back as it was; the loop stands still meanwhile. MCP servers are caught up with before the next line is acted on.
    """
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # pyright: ignore[reportUnusedImport]  # `input` uses it from now on
    while True:
        # A loop has a handler of its own, which would let `input` wait on.
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            line = input(mark)
        except (EOFError, KeyboardInterrupt):
            print()  # the shell wants a line of its own
            return
        finally:
            signal.signal(signal.SIGINT, previous)
        yield line


def piped() -> Iterator[str]:
    """The lines of the standard input, to its end."""
    for line in sys.stdin:
        yield line.removesuffix("\n")


async def read_line() -> str | None:
    """A line that a person types while the loop goes on; None at the end of the input. It may be cancelled.

    Nothing is left behind that would take the next line from whoever asks next.
    """
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()
    line: asyncio.Future[bytes] = loop.create_future()

    def give(data: bytes) -> None:
        if not line.done():
            line.set_result(data)

    def take() -> None:
        loop.remove_reader(stdin)  # here, and not when we are resumed: the next line is for who asks next
        give(_read(stdin))

    def wait() -> None:
        data = _read(stdin)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(give, data)

    try:
        loop.add_reader(stdin, take)
    except (NotImplementedError, PermissionError):
        # Windows, or a file. A thread that is a daemon and locks nothing lets the process end while it waits.
        threading.Thread(target=wait, daemon=True).start()
        data = await line
    else:
        try:
            data = await line
        finally:
            loop.remove_reader(stdin)
    return data.decode(errors="replace").removesuffix("\n") if data else None


def _read(stdin: int) -> bytes:
    try:
        return os.read(stdin, 1 << 16)
    except OSError:
        return b""


def is_too_long(line: str) -> bool:
    """Whether a line is as long as a terminal lets them be, so that its end may be lost."""
    return len(line.encode(errors="replace")) >= LONGEST


def is_more_typed() -> bool:
    """Whether something was typed, or pasted, that nobody has read yet."""
    with contextlib.suppress(OSError, ValueError):
        return bool(select.select([sys.stdin.fileno()], [], [], 0.05)[0])
    return False


def forget_typed() -> None:
    """Drop what was typed before there was a question: it cannot be the answer to it."""
    try:
        import termios
    except ImportError:  # Windows
        return
    with contextlib.suppress(termios.error, OSError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
