"""Terminal output of commands: error lines, confirmation questions, and a notice for slow operations."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    import threading

NOTICE_DELAY: Final = 1.0  # seconds before a slow operation is mentioned
_FILE_POSITION: Final = re.compile(r"(.+?\.toml):\d+:\d+: ")
NO_TERMINAL: Final = "cannot ask: input and output are not a terminal; check the text above, and pass --yes"


def print_error(text: str, code: int) -> int:
    """Print an error in one line on stderr, and return the exit code that was passed in."""
    if sys.stderr is None:  # `2>&-`: print(file=None) would write to stdout
        return code
    from everturn.terminal.text.screen import escape_unprintable  # imported only when there is an error to print

    # The text may quote a file or a server, which are untrusted.
    print(f"everturn: {escape_unprintable(join_problems(str(text)))}", file=sys.stderr)
    return code


def join_problems(text: str) -> str:
    """The first line of an error, and how many more there are: one mistake in a file often has several consequences."""
    first, *more = text.splitlines() or [""]
    if not more:
        return first
    place = _FILE_POSITION.match(first)
    command = f"everturn config check {shlex.quote(place[1])}" if place else "everturn config check"
    return f"{first} (and {len(more)} more: `{command}` lists them)"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is open, and is a terminal."""
    return stream is not None and stream.isatty()


def wants_color(options: argparse.Namespace) -> bool:
    """Whether stdout can show colours, and they are not turned off."""
    is_plain = getattr(options, "no_color", False) or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return is_terminal(sys.stdout) and not is_plain


def confirm(question: str, yes: bool = False) -> bool:
    """Ask the user to confirm; `yes` answers without a question.

    Raises:
        ConfigError: there is no terminal to ask on.
    """
    if yes:
        return True
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        from everturn.errors import ConfigError

        raise ConfigError(NO_TERMINAL)
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False


@contextmanager
def show_slow_operation(text: str, timeout: float | None = None) -> Generator[None]:
    """Show a notice with the elapsed time while a block takes longer than a second, and clear it at the end.

    The notice goes to stderr, and only if that is a terminal. It is cleared with blanks and carriage returns alone,
    which work on every terminal.
    """
    if not is_terminal(sys.stderr):
        yield
        return
    import threading

    is_done = threading.Event()
    thread = threading.Thread(
        target=_show_elapsed,
        args=(text, NOTICE_DELAY if timeout is None else timeout, is_done, sys.stderr),
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


def _show_elapsed(text: str, timeout: float, is_done: threading.Event, out: TextIO) -> None:
    import shutil
    import time

    started, width = time.monotonic(), 0
    while not is_done.wait(timeout):
        columns = shutil.get_terminal_size().columns - 1  # the last column would break the line
        line = f"{text} ({time.monotonic() - started:.0f} s; Ctrl-C leaves)"[:columns]
        out.write(f"\r{line:<{width}}")
        out.flush()
        width = len(line)
    if width:
        out.write(f"\r{'':<{width}}\r")
        out.flush()


def count_nouns(**counts: int) -> str:
    """Return numbers with their nouns, in the singular and with underscores as spaces: `1 session, 2 open turns`."""
    parts = [f"{number:,} {noun.replace('_', ' ')}{'' if number == 1 else 's'}" for noun, number in counts.items()]
    return ", ".join(parts)
