"""Input lines of a chat: what a person types, or what a pipe delivers, one line after the other."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator

MAX_LINE_BYTES = 4095  # bytes; a terminal takes no more of one line, and drops the rest silently


def read_typed_lines(mark: str) -> Iterator[str]:
    """Yield the lines that a person types behind the mark, until they leave with Ctrl-D or Ctrl-C.

    With readline, where Python has it: the arrow keys move, older lines come back, and a pasted text is one message
    however many lines it has. `input` runs in the main thread, so that Ctrl-C reaches it and readline restores the
    terminal; the event loop stands still meanwhile. The chat loop waits for MCP servers before it runs the next line.
    """
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # pyright: ignore[reportUnusedImport]  # `input` uses it from now on
    while True:
        # The event loop's own handler would leave `input` waiting.
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            line = input(mark)
        except (EOFError, KeyboardInterrupt):
            print()  # the shell wants a line of its own
            return
        finally:
            signal.signal(signal.SIGINT, previous)
        yield line


def read_piped_lines() -> Iterator[str]:
    """Yield the lines of the standard input, to its end."""
    for line in sys.stdin:
        yield line.removesuffix("\n")


async def read_line() -> str | None:
    """Return a line that a person types while the event loop runs; None at the end of the input. It may be cancelled.

    After that nothing is left behind that would take the line of the next reader.
    """
    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()
    line: asyncio.Future[bytes] = loop.create_future()

    def give(data: bytes) -> None:
        if not line.done():
            line.set_result(data)

    def take() -> None:
        loop.remove_reader(stdin)  # here, and not after the await: the next line belongs to the next reader
        give(_read(stdin))

    def wait() -> None:
        data = _read(stdin)
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nothing awaits the line
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
    """Return whether a line has the maximal length of a terminal's line, so that its end may be lost."""
    return len(line.encode(errors="replace")) >= MAX_LINE_BYTES


def has_unread_input() -> bool:
    """Return whether there is typed or pasted input that has not been read."""
    with contextlib.suppress(OSError, ValueError):
        return bool(select.select([sys.stdin.fileno()], [], [], 0.05)[0])
    return False


def discard_typed_input() -> None:
    """Discard what was typed before a question appeared: it cannot be the answer to it."""
    try:
        import termios
    except ImportError:  # Windows
        return
    with contextlib.suppress(termios.error, OSError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
