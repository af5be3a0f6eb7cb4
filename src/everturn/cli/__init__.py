"""Words on a command line → the command they ask for, and an exit code.

What a command needs is imported when it is asked for: `everturn --help` answers at once, and knows nothing of it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TextIO

from everturn import EverturnError
from everturn.cli.words import make_parser as _parser
from everturn.core.canonical import clean
from everturn.core.options import TurnOptions
from everturn.core.ports import Model
from everturn.errors import BadArguments, ConfigError, EngineUnavailable, StoreBusy, StoreUnavailable

INTERRUPTED = 130  # what shells say of a program that Ctrl-C has ended
BROKEN_PIPE = 141  # and of one whose reader has gone away
NO_TERMINAL = "the demo asks you a question, and there is no terminal to ask on; run `everturn demo --auto`"
NO_STORE = "--session names a conversation in a --store; say which, such as --store talks.db"
NO_MODEL = (
    "which model? For example `everturn chat --model openai:gpt-5.2` with OPENAI_API_KEY set, or "
    "`everturn chat --model llama3 --base-url http://127.0.0.1:11434/v1` for a server of your own"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line asks, and return the exit code."""
    parser, words = _parser(), list(sys.argv[1:] if argv is None else argv)
    # The words behind `mcp` are for a parser of its own, which is loaded only then.
    is_mcp = words[:1] == ["mcp"]
    options = argparse.Namespace(command="mcp", words=words[1:]) if is_mcp else parser.parse_args(words)
    if options.command is None:
        parser.print_help()
        return 0
    code = 1
    if sys.stdout is None:  # `>&-`
        return _complain("there is nowhere to write to: the output is closed", 1)
    if (reconfigure := getattr(sys.stdout, "reconfigure", None)) is not None:
        reconfigure(errors="backslashreplace")  # a ? could hide a part of what is to be allowed
    try:
        code = COMMANDS[options.command](options)
    except* EverturnError as failed:
        code = _complain(f"{failed.exceptions[0]}; please report this, and what you did before", 1)
    except* BrokenPipeError:  # `| head` has read enough, and that is no news
        _write_no_more()
        code = BROKEN_PIPE
    except* OSError as failed:  # a full disk, say
        _write_no_more()
        code = _complain(f"the output cannot be written: {_first(failed)}", 1)
    except* KeyboardInterrupt:  # pressed before, or after, the command listens for it
        code = INTERRUPTED
    return code


def _demo(options: argparse.Namespace) -> int:
    if not (options.auto or (_is_terminal(sys.stdin) and _is_terminal(sys.stdout))):
        return _complain(NO_TERMINAL, 2)
    from everturn import demo

    pace = {"word": 0.0, "moment": 0.0} if options.fast else {}
    return demo.play(demo.Options(options.auto, _wants_color(options), **pace))


def _chat(options: argparse.Namespace) -> int:
    name = clean(options.model or os.environ.get("EVERTURN_MODEL", ""))
    if not name:
        return _complain(NO_MODEL, 2)
    if sys.stdin is None:  # `<&-`
        return _complain("there is nothing to read: the input is closed", 2)
    from everturn.models.named import named
    from everturn.models.vendors import VENDORS
    from everturn.terminal import talk

    def vendor(name: str) -> str:
        return name.partition(":")[0] if name.partition(":")[0] in VENDORS else ""

    def make_model(wanted: str) -> Model:
        # The server that was named is that of one vendor, or of none; the others have their own.
        base_url = options.base_url if vendor(wanted) in ("", vendor(name)) else ""
        return named(wanted, base_url=base_url)

    if options.session and not options.store:
        return _complain(NO_STORE, 2)
    try:
        begin = talk.Options(
            name,
            clean(options.system),
            _wants_color(options),
            _is_terminal(sys.stdin) and _is_terminal(sys.stdout),
            tuple(options.attach),
            options.save,
            options.store,
            clean(options.session),
            tuple(options.tools),
            options.permissions,
            TurnOptions(result=options.review, by_hand=tuple(options.by_hand), budget=talk.read_budget(options.budget)),
            talk.Reach(
                options.files,
                options.virtual_files,
                options.code,
                options.shell,
                options.web,
                tuple(options.mcp),
            ),
        )
        return talk.talk(begin, make_model)
    except (ConfigError, StoreBusy, StoreUnavailable) as error:
        return _complain(str(error), 2)


def _permissions(options: argparse.Namespace) -> int:
    import asyncio

    from everturn.terminal import permissions

    try:
        if options.about == "check":
            lines, code = permissions.check(options.permissions)
        else:
            if options.session and not options.store:
                return _complain(NO_STORE, 2)
            lines, code = asyncio.run(
                permissions.explain(
                    clean(options.tool),
                    [clean(word) for word in options.arguments],
                    tools=options.tools,
                    rules=options.permissions,
                    subjects=options.subject,
                    store=options.store,
                    session=clean(options.session),
                )
            )
    except (ConfigError, BadArguments, StoreBusy, StoreUnavailable) as error:
        return _complain(str(error), 2)
    for line in lines:
        print(line)
    return code


def _mcp(options: argparse.Namespace) -> int:
    from everturn.cli.mcp import mcp

    return mcp(options.words)


def _doctor(options: argparse.Namespace) -> int:
    from everturn.cli.doctor import doctor

    return doctor([*(["--json"] if options.json else []), *(["--no-color"] if options.no_color else [])])


def _worker(options: argparse.Namespace) -> int:
    import asyncio

    from everturn.cluster import Cluster
    from everturn.cluster.processes import supervise, work

    names = ("database", "restate", "admin", "nats", "listen", "advertise")
    given = {name: getattr(options, name) for name in names}

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    try:
        if options.target and options.config:
            return _complain("a worker is made of MODULE:FUNCTION or of --config; say one of them", 2)
        if options.target:
            import logging

            logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
            found: dict[str, Any] = {"listen": "127.0.0.1:9080"}
            known = {name: given[name] or os.environ.get(f"EVERTURN_{name.upper()}", "") for name in names}
            found.update((name, value) for name, value in known.items() if value)
            target, cluster = options.target, Cluster(**found, writes=options.writes)
        else:
            from everturn.cli.serving import prepare_worker

            target, cluster = prepare_worker(options, given)
        if options.workers > 1:
            asyncio.run(supervise(target, cluster, options.workers, say))
        else:
            asyncio.run(work(target, cluster, say))
    except (ConfigError, StoreUnavailable, EngineUnavailable) as error:
        return _complain(str(error), 2)
    return 0


def _ps(options: argparse.Namespace) -> int:
    import asyncio

    from everturn.cluster.overview import overview

    try:
        if not (store := options.store):
            from everturn.cli.people import store_meant, there

            store = there(store_meant(options))
        for line in asyncio.run(overview(store)):
            print(line)
    except (ConfigError, StoreUnavailable) as error:
        return _complain(str(error), 2)
    return 0


def _serve(options: argparse.Namespace) -> int:
    try:
        from everturn.cli.serving import serve

        return serve(options)
    except (ConfigError, StoreBusy, StoreUnavailable, EngineUnavailable) as error:
        return _complain(str(error), 2)


def _config(options: argparse.Namespace) -> int:
    from everturn.cli.configuring import config

    try:
        return config(options)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2


def _people(options: argparse.Namespace) -> int:
    from everturn.cli.people import people

    try:
        return people(options)
    except (ConfigError, StoreUnavailable) as error:
        return _complain(str(error), 2)


COMMANDS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {
    "demo": _demo,
    "chat": _chat,
    "permissions": _permissions,
    "mcp": _mcp,
    "doctor": _doctor,
    "worker": _worker,
    "ps": _ps,
    "serve": _serve,
    "config": _config,
    "login": _people,
    "keys": _people,
    "users": _people,
}


def _wants_color(options: argparse.Namespace) -> bool:
    is_plain = options.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return _is_terminal(sys.stdout) and not is_plain


def _write_no_more() -> None:
    """Nobody reads on: leaving must not try to write the rest."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
