"""Terminal input typed while the program starts: kept in order until the full-screen UI reads it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final

STDIN: Final = 0
TOLD: Final = (signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()))


class EarlyInput:
    """What was typed before the terminal was told to keep keys as they are pressed, and the way back."""

    def __init__(self, typed: str = "", restore: Callable[[], None] = lambda: None) -> None:
        self.typed, self.restore = typed, restore


@contextmanager
def early_input() -> Generator[EarlyInput]:
    """Let the terminal keep each key as it is pressed, and echo none; Ctrl+C still interrupts.

    Until a program says so, a terminal works line by line: Enter arrives as Ctrl+J, and Ctrl+Q and Ctrl+S do not arrive.
    """
    try:
        import termios
    except ImportError:  # not on this system
        yield EarlyInput()
        return
    before = termios.tcgetattr(STDIN)

    def restore() -> None:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(STDIN, termios.TCSANOW, before)

    def leave(number: int, _frame: FrameType | None) -> None:
        restore()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    handlers = {number: signal.signal(number, leave) for number in TOLD}
    try:
        yield EarlyInput(_switch(), restore)
    finally:
        restore()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _switch() -> str:
    """Change the mode; what was typed before."""
    import termios

    mode: list[Any] = termios.tcgetattr(STDIN)
    mode[0] &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
    mode[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
    mode[6][termios.VMIN], mode[6][termios.VTIME] = 0, 0  # a read does not wait
    termios.tcsetattr(STDIN, termios.TCSANOW, mode)
    typed = b""
    while data := os.read(STDIN, 4096):
        typed += data
    mode[6][termios.VMIN] = 1
    termios.tcsetattr(STDIN, termios.TCSANOW, mode)
    return typed.decode("utf-8", "ignore")
