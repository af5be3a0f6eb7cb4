"""Words on a command line → the command they ask for, and an exit code.

What a command needs is imported when it is asked for: `everturn --help` answers at once, and knows nothing of it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, TextIO

from everturn import EverturnError, __version__
from everturn.core.canonical import clean
from everturn.core.ports import Model
from everturn.errors import ConfigError, EngineUnavailable, StoreBusy, StoreUnavailable

INTERRUPTED = 130  # what shells say of a program that Ctrl-C has ended
BROKEN_PIPE = 141  # and of one whose reader has gone away
NO_TERMINAL = "the demo asks you a question, and there is no terminal to ask on; run `everturn demo --auto`"
NO_MODEL = (
    "which model? For example `everturn chat --model openai:gpt-5.2` with OPENAI_API_KEY set, or "
    "`everturn chat --model llama3 --base-url http://127.0.0.1:11434/v1` for a server of your own"
)
CHAT = """\
Talk to a model, line by line. Answers are shown while they come; /help there says what else there is.

Ctrl-C while an answer comes cancels it. Ctrl-C or Ctrl-D at the prompt leaves.
The conversation is kept in memory, and ends with the command; with --store it is kept, and can be gone on with.

Where the input is not a terminal, each of its lines is answered, without a prompt.
Where the output is not a terminal, it is what the model says and nothing else; the rest goes to stderr.

Models that make pictures, voices and transcripts are asked the same way; a type can be said behind the name:
  everturn chat --model openai:whisper-1 --attach talk.mp3 </dev/null
  echo "a red cat" | everturn chat --model mine@image-gen --base-url http://127.0.0.1:8000/v1 --save .
"""
CHAT_CODES = """\
exit codes:
  0    you left, or every line of the input was answered
  1    a line of the input was not answered, a file had no --save to go to, or the output could not be written
  2    there is no such model, no key for it, or no such file or folder; nothing was sent
  130  Ctrl-C while lines of an input were answered, or twice during an answer
"""


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
    chat = commands.add_parser(
        "chat",
        help="talk to a model, line by line",
        description=CHAT,
        epilog=CHAT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    chat.add_argument("--model", metavar="NAME", help="such as openai:gpt-5.2; or EVERTURN_MODEL in the environment")
    chat.add_argument(
        "--base-url",
        metavar="URL",
        default="",
        help="a server of your own, such as http://127.0.0.1:8000/v1; its key is read from EVERTURN_API_KEY",
    )
    chat.add_argument("--system", metavar="TEXT", default="", help="what the model is told before the conversation")
    chat.add_argument(
        "--attach",
        metavar="FILE",
        action="append",
        default=[],
        help="let a file go with the first message, or alone where the input is empty; may be given again",
    )
    chat.add_argument(
        "--save", metavar="DIR", default="", help="write every file that a model makes there; none is written over"
    )
    chat.add_argument(
        "--store", metavar="FILE", default="", help="keep the conversation in a file such as talks.db, or a database"
    )
    chat.add_argument("--session", metavar="NAME", default="", help="the conversation in it to go on with, or to begin")
    _add_cluster(commands)
    for command in (demo, chat):
        command.add_argument("--no-color", action="store_true", help="plain text; so does NO_COLOR in the environment")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _add_cluster(commands: Any) -> None:
    about = (
        "drive sessions beside other workers: PostgreSQL keeps them, Restate says who drives, NATS shows the live edge"
    )
    worker = commands.add_parser(
        "worker", help=about, description=about[0].upper() + about[1:] + ".", allow_abbrev=False
    )
    worker.add_argument("target", metavar="MODULE:FUNCTION", help="makes the Runtime; given store, bus and engine")
    worker.add_argument("--workers", type=_positive, default=1, metavar="N", help="processes, one by one started again")
    places = {
        "database": ("URL", "postgresql://user@host/database"),
        "restate": ("URL", "the ingress of Restate, http://127.0.0.1:8080"),
        "admin": ("URL", "the admin API of Restate, http://127.0.0.1:9070"),
        "nats": ("URL", "nats://127.0.0.1:4222"),
        "listen": ("HOST:PORT", "where Restate calls these workers, 127.0.0.1:9080"),
        "advertise": ("URL", "the address of these workers as Restate sees it, where it is another"),
    }
    for name, (what, help) in places.items():
        worker.add_argument(f"--{name}", metavar=what, default="", help=f"{help}; or EVERTURN_{name.upper()}")
    worker.add_argument(
        "--writes", type=int, default=0, metavar="N", help="the log format to write while older workers still run"
    )
    about = "what runs, what waits, and what is stuck, in a store"
    ps = commands.add_parser("ps", help=about, description=about[0].upper() + about[1:] + ".", allow_abbrev=False)
    ps.add_argument("--store", metavar="FILE", required=True, help="a file such as talks.db, or a database")


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line asks, and return the exit code."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
        return 0
    code = 1
    if sys.stdout is None:  # `>&-`
        return _complain("there is nowhere to write to: the output is closed", 1)
    if (reconfigure := getattr(sys.stdout, "reconfigure", None)) is not None:
        reconfigure(errors="backslashreplace")  # a ? could hide a part of what is to be allowed
    try:
        code = {"demo": _demo, "chat": _chat, "worker": _worker, "ps": _ps}[options.command](options)
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

    is_typed = _is_terminal(sys.stdin) and _is_terminal(sys.stdout)
    begin = talk.Options(
        name,
        clean(options.system),
        _wants_color(options),
        is_typed,
        tuple(options.attach),
        options.save,
        options.store,
        clean(options.session),
    )
    if options.session and not options.store:
        return _complain("--session names a conversation in a --store; say which, such as --store talks.db", 2)
    try:
        return talk.talk(begin, make_model)
    except (ConfigError, StoreBusy, StoreUnavailable) as error:
        return _complain(str(error), 2)


def _worker(options: argparse.Namespace) -> int:
    import asyncio
    import logging

    from everturn.cluster import Cluster
    from everturn.cluster.processes import supervise, work

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    names = ("database", "restate", "admin", "nats", "listen", "advertise")
    given = {name: getattr(options, name) or os.environ.get(f"EVERTURN_{name.upper()}", "") for name in names}
    found: dict[str, Any] = {"listen": "127.0.0.1:9080"}
    found.update((name, value) for name, value in given.items() if value)
    found["writes"] = options.writes
    cluster = Cluster(**found)

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    try:
        if options.workers > 1:
            asyncio.run(supervise(options.target, cluster, options.workers, say))
        else:
            asyncio.run(work(options.target, cluster, say))
    except (ConfigError, StoreUnavailable, EngineUnavailable) as error:
        return _complain(str(error), 2)
    return 0


def _ps(options: argparse.Namespace) -> int:
    import asyncio

    from everturn.cluster.overview import overview

    try:
        for line in asyncio.run(overview(options.store)):
            print(line)
    except (ConfigError, StoreUnavailable) as error:
        return _complain(str(error), 2)
    return 0


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
