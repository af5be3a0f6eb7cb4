"""Command line: `main` parses the arguments, runs the command they name, and returns the exit code.

A command's module is imported only when that command runs, so `everturn --help` stays fast. Errors that the user can
fix are printed in one line with a next step; every other error asks for a bug report.

Sub-packages and modules, in the order of the flow:

- `args`: the argument parser of every command, with help texts, examples and exit codes
- `commands`: one module per command; each command is a function from the parsed options to an exit code
- `run`: input, output, gates and the local or remote chat of `everturn run`
- `store`: the store or server that a command works on, and store sharing between processes
- `doctor`: the checks of `everturn doctor`
- `model_option`: the vendor of a bare `--model` name
- `first_run`: bare `everturn` on a machine without a configuration: choose a model, write the configuration, chat
- `first_run_texts`: messages and configuration template of the first run, in English and Chinese
- `folder_start`: `everturn` in a folder: the questions of trust, and which session it continues
- `early_input`: keys typed while the full-screen UI starts
- `config_options`: the configuration file and the store that the options of a command name
- `garbage_collector`: paused until the first screen of the full-screen UI
- `connect_token`: the token for `--connect URL`
- `port_owner`: which user listens on a local port
- `output`: error lines, confirmation questions and the notice for slow operations
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, TextIO

from everturn import errors
from everturn.cli.args.commands import make_chat_parser
from everturn.cli.args.commands import make_parser as _parser
from everturn.cli.garbage_collector import pause_garbage_collector
from everturn.cli.output import is_terminal, print_error

INTERRUPTED = 130  # the exit code by which shells mean that Ctrl-C ended a program
BROKEN_PIPE = 141  # and that the reader of its output closed the pipe
COMMANDS: Final[Mapping[str, str]] = {
    "chat": "everturn.cli.commands.chat:chat",
    "run": "everturn.cli.commands.run:run",
    "logs": "everturn.cli.commands.logs:logs",
    "acp": "everturn.cli.commands.acp:acp",
    "demo": "everturn.cli.commands.version:demo",
    "serve": "everturn.cli.commands.serve:serve",
    "worker": "everturn.cli.commands.worker:worker",
    "router": "everturn.cli.commands.router:router",
    "sessions": "everturn.cli.commands.sessions:sessions",
    "schedules": "everturn.cli.commands.schedules:schedules",
    "webhooks": "everturn.cli.commands.webhooks:webhooks",
    "hooks": "everturn.cli.commands.hooks:hooks",
    "ps": "everturn.cli.commands.worker:ps",
    "replay": "everturn.cli.commands.replay:replay",
    "eval": "everturn.cli.commands.evals:eval_command",
    "permissions": "everturn.cli.commands.permissions:permissions",
    "version": "everturn.cli.commands.version:version",
    "export": "everturn.cli.commands.sessions:export",
    "import": "everturn.cli.commands.sessions:import_session",
    "admin": "everturn.cli.commands.admin:admin",
    "backup": "everturn.cli.commands.backup:backup",
    "migrate": "everturn.cli.commands.migrate:migrate",
    "login": "everturn.cli.commands.accounts:run_account_command",
    "keys": "everturn.cli.commands.accounts:run_account_command",
    "users": "everturn.cli.commands.accounts:run_account_command",
    "auth": "everturn.cli.commands.auth:auth",
    "models": "everturn.cli.commands.models:models",
    "completion": "everturn.cli.commands.completion:completion",
}
"""Command name → "module:function" of the function that runs it; that function takes the parsed options and returns the
exit code."""

USES_MODELS: Final = frozenset(("run", "serve", "worker", "doctor", "eval"))
"""Commands that look for keys of models; `chat` does so itself."""

USER_ERRORS: Final = (
    errors.ConfigError,
    errors.BadArguments,
    errors.StoreBusy,
    errors.StoreUnavailable,
    errors.EngineUnavailable,
    errors.ServerUnavailable,
    errors.UnknownSession,
    errors.UnknownTurn,
    errors.UnknownAgent,
    errors.UnknownSchedule,
    errors.UnknownWebhook,
    errors.UnknownShare,
    errors.UnknownLink,
    errors.HookRefused,
    errors.SessionBusy,
    errors.KeyConflict,
    errors.UnreadableLog,
    errors.NotRecognised,
    errors.Forbidden,
    errors.TooMuch,
    errors.NeedsLogin,
)
"""Errors that the user can fix: only their text is printed. Every other EverturnError is a bug in Everturn."""

NEXT_STEPS: Final[Mapping[type[Exception], str]] = {
    errors.StoreUnavailable: "is it running, and is this its address? `everturn doctor` tests the connection",
    errors.EngineUnavailable: "is it running, and is this its address? `everturn doctor` tests the connection",
    errors.ServerUnavailable: "is it running? `everturn serve` starts one",
    errors.NotRecognised: "`everturn keys add USER` makes a key where the server runs; set EVERTURN_TOKEN to it",
    errors.Forbidden: "ask the operator of the server for another role",
}
"""Next step to print after an error whose own text names none."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, and return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:  # `>&-`
        return print_error("there is nowhere to write to: the output is closed", 1)
    _escape_unencodable(sys.stdout)
    code = 1
    try:
        code = _dispatch(words)
        sys.stdout.flush()
    except* USER_ERRORS as failed:
        code = print_error(_add_next_step(_first_leaf(failed)), 2)
    except* errors.EverturnError as failed:
        code = print_error(f"{_first_leaf(failed)}; please report this, and what you did before", 1)
    except* BrokenPipeError:  # `| head` has read enough, which is not an error
        _discard_stdout()
        code = BROKEN_PIPE
    except* OSError as failed:  # a full disk, say
        _discard_stdout()
        error = _first_leaf(failed)
        code = print_error(f"the output cannot be written: {getattr(error, 'strerror', None) or error}", 1)
    except* KeyboardInterrupt:  # pressed before the command handles it, or afterwards
        code = INTERRUPTED
    return code


def _dispatch(words: list[str]) -> int:
    if not words or (words[0].startswith("-") and not _is_root_option(words[0])):
        return _start_without_command(words)
    if words[0] == "help":  # as git and others have it
        if words[1:] == ["all"]:
            return _help(shows_all=True)
        words = [*words[1:], "--help"]
    try:
        if words[:1] == ["mcp"]:  # it has its own parser, because `everturn mcp --model …` means `mcp serve`
            return import_module("everturn.cli.commands.mcp").mcp(words[1:])
        options = _parser().parse_args(words)
    except SystemExit as system_exit:  # argparse has printed the help, or the error
        return system_exit.code if isinstance(system_exit.code, int) else 0
    if options.command is None:
        return _help()
    if options.command in USES_MODELS:
        import_module("everturn.config.key_store").use_stored_keys()
    if options.command in ("doctor", "config"):
        return {"doctor": _doctor, "config": _config}[options.command](options)
    return _load_function(COMMANDS[options.command])(options)


def _is_root_option(word: str) -> bool:
    """Whether a word is an option of `everturn` itself, or a misspelt one; all others are options of `everturn chat`."""
    from difflib import get_close_matches

    return word in ("-h", "--help", "--version") or bool(get_close_matches(word, ("--help", "--version"), cutoff=0.8))


def _start_without_command(words: list[str]) -> int:
    """`everturn` without a command: the assistant in this folder, after choosing a model on the first run.

    Without a terminal, bare `everturn` prints the help; options are then those of `everturn chat`.
    """
    try:
        options = make_chat_parser().parse_args(["chat", "--here", *words])
    except SystemExit as system_exit:  # argparse has printed the error
        return system_exit.code if isinstance(system_exit.code, int) else 0
    if is_terminal(sys.stdin) and is_terminal(sys.stdout):
        pause_garbage_collector()  # the chat resumes it
        if options.model or options.config or options.connect:
            return _load_function(COMMANDS["chat"])(options)
        return import_module("everturn.cli.first_run").start_first_run(words)
    if not words:
        return _help()
    return print_error("there is no terminal to talk on; `everturn run` answers in a pipe", 2)


def _help(*, shows_all: bool = False) -> int:
    _parser(shows_all=shows_all).print_help()
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from everturn.cli.commands.doctor import doctor

    named = [f"--{name}={value}" for name in ("config", "store") if (value := getattr(options, name))]
    return doctor([*named, *(["--json"] if options.json else []), *(["--no-color"] if options.no_color else [])])


def _config(options: argparse.Namespace) -> int:
    from everturn.cli.commands.config import config

    try:
        return config(options)
    except errors.ConfigError as error:  # one line per problem
        from everturn.terminal.text.screen import escape_unprintable

        print("\n".join(map(escape_unprintable, str(error).split("\n"))), file=sys.stderr)
        return 2


def _load_function(place: str) -> Callable[[argparse.Namespace], int]:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def _escape_unencodable(out: TextIO) -> None:
    reconfigure: Any = getattr(out, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # a "?" could hide a part of what the user is asked to allow


def _discard_stdout() -> None:
    """Point stdout at /dev/null, because its reader is gone: the flush at exit must not fail on the rest."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _add_next_step(error: BaseException) -> str:
    next_step = next((text for kind, text in NEXT_STEPS.items() if isinstance(error, kind)), "")
    text = str(error)
    names_next_step = text.startswith("the database refused:") and "; " in text
    return f"{text}; {next_step}" if next_step and not names_next_step else text


def _first_leaf(error: Any) -> BaseException:
    while hasattr(error, "exceptions"):
        error = error.exceptions[0]
    return error
