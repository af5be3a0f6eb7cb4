"""Words on a command line → the command they ask for, and an exit code.

What a command needs is imported when it is asked for: `everturn --help` answers at once, and knows nothing of it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn, TextIO

from everturn import EverturnError, __version__

INTERRUPTED = 130  # what shells say of a program that Ctrl-C has ended
NO_TERMINAL = "the demo asks you a question, and there is no terminal to ask on; run `everturn demo --auto`"


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, with the next thing to do."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see `{self.prog} --help`\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="everturn", description="A runtime for chat turns that call tools.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"everturn {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    about = "watch a turn: two tools at once, a question to you, Ctrl-C to cancel; offline"
    demo = commands.add_parser("demo", help=about, description=about[0].upper() + about[1:] + ".", allow_abbrev=False)
    demo.add_argument("--auto", action="store_true", help="answer the question by itself; needs no terminal")
    demo.add_argument("--fast", action="store_true", help="wait for nothing: no human pace, no slow tools")
    demo.add_argument("--no-color", action="store_true", help="plain text; so does NO_COLOR in the environment")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line asks, and return the exit code."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return 0
    code = 1
    try:
        code = _demo(options)
    except* EverturnError as failed:
        code = _complain(f"{failed.exceptions[0]}; please report this, and what you did before", 1)
    except* OSError as failed:  # a full disk, say: nobody reads on, and leaving must not try to write the rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = _complain(f"the output cannot be written: {_first(failed)}", 1)
    except* KeyboardInterrupt:  # pressed before, or after, the command listens for it
        code = INTERRUPTED
    return code


def _demo(options: argparse.Namespace) -> int:
    if not (options.auto or (_is_terminal(sys.stdin) and _is_terminal(sys.stdout))):
        return _complain(NO_TERMINAL, 2)
    from everturn import demo

    if (reconfigure := getattr(sys.stdout, "reconfigure", None)) is not None:
        reconfigure(errors="backslashreplace")  # a ? could hide a part of what is to be allowed
    is_plain = options.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    color = _is_terminal(sys.stdout) and not is_plain
    pace = {"word": 0.0, "moment": 0.0} if options.fast else {}
    return demo.play(demo.Options(options.auto, color, **pace))


def _first(group: BaseExceptionGroup[OSError]) -> str:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return getattr(error, "strerror", None) or str(error)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _complain(text: str, code: int) -> int:
    print(f"everturn: {text}", file=sys.stderr)
    return code
