"""Words on a command line → the command they ask for, and an exit code.

What a command needs is imported when it is asked for: `everturn --help` answers at once, and knows nothing of it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, TextIO

from everturn import errors
from everturn.cli.saying import complain, is_terminal
from everturn.cli.words import make_parser as _parser

INTERRUPTED = 130  # what shells say of a program that Ctrl-C has ended
BROKEN_PIPE = 141  # and of one whose reader has gone away
COMMANDS: Final[Mapping[str, str]] = {
    "chat": "everturn.cli.chatting:chat",
    "run": "everturn.cli.running:run",
    "demo": "everturn.cli.telling:demo",
    "serve": "everturn.cli.serving:serve",
    "worker": "everturn.cli.working:worker",
    "sessions": "everturn.cli.keeping:sessions",
    "ps": "everturn.cli.working:ps",
    "replay": "everturn.cli.replaying:replay",
    "permissions": "everturn.cli.permitting:permissions",
    "version": "everturn.cli.telling:version",
    "export": "everturn.cli.keeping:export",
    "import": "everturn.cli.keeping:bring_in",
    "login": "everturn.cli.people:people",
    "keys": "everturn.cli.people:people",
    "users": "everturn.cli.people:people",
    "completion": "everturn.cli.completing:completion",
}
"""Where each command is, with the function that does it: given what was said, it returns the exit code."""

SAID: Final = (
    errors.ConfigError,
    errors.BadArguments,
    errors.StoreBusy,
    errors.StoreUnavailable,
    errors.EngineUnavailable,
    errors.ServerUnavailable,
    errors.UnknownSession,
    errors.UnknownTurn,
    errors.UnknownAgent,
    errors.SessionBusy,
    errors.KeyConflict,
    errors.UnreadableLog,
    errors.NotRecognised,
    errors.Forbidden,
    errors.TooMuch,
    errors.NeedsLogin,
)
"""What a person can do something about: its text is all there is to say. Everything else is a bug of ours."""

NEXT: Final[Mapping[type[Exception], str]] = {
    errors.StoreUnavailable: "is it running, and is this its address? `everturn doctor` looks",
    errors.EngineUnavailable: "is it running, and is this its address? `everturn doctor` looks",
    errors.ServerUnavailable: "is it running? `everturn serve` starts one",
    errors.NotRecognised: "`everturn keys add USER` makes a key where the server runs; set EVERTURN_TOKEN to it",
    errors.Forbidden: "ask whoever runs the server for another role",
}
"""What to do about what does not say so itself."""


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line asks, and return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:  # `>&-`
        return complain("there is nowhere to write to: the output is closed", 1)
    _take_every_character(sys.stdout)
    code = 1
    try:
        code = _do(words)
        sys.stdout.flush()
    except* SAID as failed:
        code = complain(_with_next(_first(failed)), 2)
    except* errors.EverturnError as failed:
        code = complain(f"{_first(failed)}; please report this, and what you did before", 1)
    except* BrokenPipeError:  # `| head` has read enough, and that is no news
        _write_no_more()
        code = BROKEN_PIPE
    except* OSError as failed:  # a full disk, say
        _write_no_more()
        error = _first(failed)
        code = complain(f"the output cannot be written: {getattr(error, 'strerror', None) or error}", 1)
    except* KeyboardInterrupt:  # pressed before, or after, the command listens for it
        code = INTERRUPTED
    return code


def _do(words: list[str]) -> int:
    if not words:
        return _begin()
    if words[0] == "help":  # as many say it
        words = [*words[1:], "--help"]
    try:
        if words[:1] == ["mcp"]:  # it has a parser of its own, for `everturn mcp --model …` means `mcp serve`
            return import_module("everturn.cli.mcp").mcp(words[1:])
        options = _parser().parse_args(words)
    except SystemExit as left:  # the help was printed, or what is wrong
        return left.code if isinstance(left.code, int) else 0
    if options.command is None:
        return _help()
    if options.command in ("doctor", "config"):
        return {"doctor": _doctor, "config": _config}[options.command](options)
    return _function(COMMANDS[options.command])(options)


def _begin() -> int:
    """Nothing was said: talk, or choose a model first. Where there is no terminal nobody could."""
    if is_terminal(sys.stdin) and is_terminal(sys.stdout):
        return import_module("everturn.cli.first_run").begin()
    return _help()


def _help() -> int:
    _parser().print_help()
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from everturn.cli.doctor import doctor

    return doctor([*(["--json"] if options.json else []), *(["--no-color"] if options.no_color else [])])


def _config(options: argparse.Namespace) -> int:
    from everturn.cli.configuring import config

    try:
        return config(options)
    except errors.ConfigError as error:  # a line for each thing that is wrong
        from everturn.terminal.screen import printable

        print("\n".join(map(printable, str(error).split("\n"))), file=sys.stderr)
        return 2


def _function(place: str) -> Callable[[argparse.Namespace], int]:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _take_every_character(out: TextIO) -> None:
    reconfigure: Any = getattr(out, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # a ? could hide a part of what is to be allowed


def _write_no_more() -> None:
    """Nobody reads on: leaving must not try to write the rest."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _with_next(error: BaseException) -> str:
    then = next((text for kind, text in NEXT.items() if isinstance(error, kind)), "")
    return f"{error}; {then}" if then else str(error)


def _first(error: Any) -> BaseException:
    while hasattr(error, "exceptions"):
        error = error.exceptions[0]
    return error
