"""What a person types, or what a pipe brings → lines, one after the other. What they mean is for others to know."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator


def typed(mark: str) -> Iterator[str]:
    """The lines a person types behind the mark, until they leave with Ctrl-D or Ctrl-C.

    With readline, where Python has it: the arrows move, older lines come back, and a pasted text is one message
    however many lines it has. `input` is in the main thread so that Ctrl-C reaches it and readline puts the terminal
    back as it was; the loop stands still meanwhile, and there is nothing in it that would mind.
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
