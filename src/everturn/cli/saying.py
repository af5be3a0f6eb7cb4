"""What a command has to say → a line for whoever reads it: a complaint, a question, or that something takes its time."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    import threading

PATIENCE: Final = 1.0  # seconds that something may take before anything is said of it
NOBODY: Final = "there is nobody to ask: input and output are no terminal; read what is said above, and say --yes"


def complain(text: str, code: int) -> int:
    """Say what is wrong, in one line, and give the exit code back."""
    if sys.stderr is None:  # `2>&-`; what is printed to nothing would be printed to stdout
        return code
    first, *more = str(text).splitlines() or [""]
    rest = f" (and {len(more)} more: `everturn config check` lists them)" if more else ""
    from everturn.terminal.screen import printable  # only who complains pays for it

    # A file or a server may be quoted here, and says what it likes.
    print(f"everturn: {printable(first)}{rest}", file=sys.stderr)
    return code


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person sits at the other end."""
    return stream is not None and stream.isatty()


def wants_color(options: argparse.Namespace) -> bool:
    """Whether colours are wanted, and can be shown."""
    is_plain = getattr(options, "no_color", False) or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return is_terminal(sys.stdout) and not is_plain


def agreed(question: str, yes: bool = False) -> bool:
    """Whether it is wanted: as was said, or as a person says now.

    Raises:
        ConfigError: there is nobody to ask.
    """
    if yes:
        return True
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        from everturn.errors import ConfigError

        raise ConfigError(NOBODY)
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False


@contextmanager
def long_wait(text: str, patience: float | None = None) -> Generator[None]:
    """Say on a terminal what takes longer than a second, and for how long it has; take it back when it is over.

    It goes to stderr, and only where that is a terminal. Nothing but blanks and returns is used to clear it, so that
    any terminal can.
    """
    if not is_terminal(sys.stderr):
        yield
        return
    import threading

    over = threading.Event()
    teller = threading.Thread(
        target=_tell, args=(text, PATIENCE if patience is None else patience, over, sys.stderr), daemon=True
    )
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _tell(text: str, patience: float, over: threading.Event, out: TextIO) -> None:
    import shutil
    import time

    begun, width = time.monotonic(), 0
    while not over.wait(patience):
        room = shutil.get_terminal_size().columns - 1  # the last column would break the line
        line = f"{text} ({time.monotonic() - begun:.0f} s; Ctrl-C leaves)"[:room]
        out.write(f"\r{line:<{width}}")
        out.flush()
        width = len(line)
    if width:
        out.write(f"\r{'':<{width}}\r")
        out.flush()
