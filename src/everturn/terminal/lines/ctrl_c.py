"""Ctrl-C handling: the first Ctrl-C calls a function (which cancels the turn), the second exits the process at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Generator

EXIT_INTERRUPTED = 130  # the exit code that shells use for a program ended by Ctrl-C


@contextlib.contextmanager
def handle_ctrl_c(tell: Callable[[], object]) -> Generator[None]:
    """Call `tell` at the first Ctrl-C; the next one exits the process at once, whatever is running."""
    loop = asyncio.get_running_loop()

    def leave(*_: object) -> None:
        if os.isatty(1):  # the terminal has shown ^C; the shell wants a line of its own
            os.write(1, b"\n")
        os._exit(EXIT_INTERRUPTED)

    def first(*_: object) -> None:
        signal.signal(signal.SIGINT, leave)
        loop.call_soon_threadsafe(tell)

    previous = signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
