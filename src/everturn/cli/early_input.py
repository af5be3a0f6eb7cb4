"""Early terminal input: keys typed while the program starts are held in order until the full-screen UI reads them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final

STDIN: Final = 0
TERMINATION_SIGNALS: Final = (signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()))


class EarlyInput:
    """Text typed before the terminal was switched to unbuffered mode, and the function that restores the old mode."""

    def __init__(self, typed: str = "", restore: Callable[[], None] = lambda: None) -> None:
        self.typed, self.restore = typed, restore


@contextmanager
def capture_early_input() -> Generator[EarlyInput]:
    """Switch the terminal to unbuffered input without echo; Ctrl+C still interrupts.

    Without this, a terminal works line by line: Enter arrives as Ctrl+J, and Ctrl+Q and Ctrl+S do not arrive.
    """
    try:
        import termios
    except ImportError:  # not on this platform
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

    handlers = {number: signal.signal(number, leave) for number in TERMINATION_SIGNALS}
    try:
        yield EarlyInput(_enter_raw_mode(), restore)
    finally:
        restore()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _enter_raw_mode() -> str:
    """Switch the terminal mode, and return what was typed before."""
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
