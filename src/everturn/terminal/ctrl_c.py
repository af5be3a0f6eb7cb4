"""Ctrl-C → a word to whoever is busy; the second one leaves, whatever is under way."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Generator

INTERRUPTED = 130  # what shells say of a program that Ctrl-C has ended


@contextlib.contextmanager
def interrupts(tell: Callable[[], object]) -> Generator[None]:
    """Tell of the first Ctrl-C; the next one leaves at once, whatever is under way."""
    loop = asyncio.get_running_loop()

    def leave(*_: object) -> None:
        if os.isatty(1):  # the terminal has shown ^C; the shell wants a line of its own
            os.write(1, b"\n")
        os._exit(INTERRUPTED)

    def first(*_: object) -> None:
        signal.signal(signal.SIGINT, leave)
        loop.call_soon_threadsafe(tell)

    previous = signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
