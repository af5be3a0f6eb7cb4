"""Arguments of the commands for stored sessions: sessions, export and import."""

from __future__ import annotations

import argparse
from typing import Any, Final

from everturn.cli.args.parser import add_command, parse_positive_int
from everturn.cli.args.server import FILE

SESSIONS: Final = """\
List the conversations, those touched last first: when, what they are doing, their ids and titles.

They are those of the store that `everturn serve` and `everturn chat` would use here, of a --store, or of a server
(--connect). A server wants to be shown an API key: in EVERTURN_TOKEN, or, on this machine, the operator's own token.
"""
WHERE: Final = "a file such as talks.db, or a database"
CONNECT: Final = "ask a server instead, such as http://127.0.0.1:8000; its key is read from EVERTURN_TOKEN"
EXPORT: Final = """\
Write a conversation to one file: its log, what was sent to it, and the files it speaks of. With --turn, one turn of it,
to be played again with `everturn replay`. What is private in it is in the file, too.
"""
IMPORT: Final = """\
Make a conversation of a file that `everturn export` wrote. Nothing of it goes on by itself: what was under way is over,
and what was allowed there is not allowed here.
"""
CODES: Final = "exit codes: 0 it is done, 2 there is no such session, store, file or server; nothing was changed"


def add_session_commands(commands: Any) -> None:
    """Add the session commands to the command line."""
    _add_sessions(commands)
    export = add_command(
        commands,
        "export",
        "write a conversation, or one turn of it, to a file",
        EXPORT,
        examples=(
            "everturn export SESSION",
            "everturn export SESSION -o talk.zip --store talks.db",
            "everturn export SESSION --turn last -o turn.jsonl",
            "everturn export SESSION -o - | ssh elsewhere everturn import -",
        ),
        codes=CODES,
    )
    export.add_argument("session", metavar="SESSION", help="its id, as `everturn sessions` shows it")
    export.add_argument(
        "-o", "--output", metavar="FILE", default="", help="file to write (default: SESSION.zip; -: stdout)"
    )
    export.add_argument("--turn", metavar="TURN", default="", help="one turn alone, by its id; or `last`")
    export.add_argument("--force", action="store_true", help="write over a file that is there")
    add_store_options(export)
    import_file = add_command(
        commands,
        "import",
        "make a conversation of a file that was exported",
        IMPORT,
        examples=(
            "everturn import talk.zip",
            "everturn import talk.zip --store talks.db --session other",
            "everturn import talk.zip --connect http://127.0.0.1:8000",
        ),
        codes=CODES,
    )
    import_file.add_argument("file", metavar="FILE", help="as `everturn export` wrote it; - is stdin")
    import_file.add_argument(
        "--session", metavar="ID", default="", help="session id here (default: the same as before)"
    )
    add_store_options(import_file)


def _add_sessions(commands: Any) -> None:
    sessions = add_command(
        commands,
        "sessions",
        "list the conversations; read one, search them, erase one",
        SESSIONS,
        examples=(
            "everturn sessions",
            'everturn sessions --search "lunch at noon"',
            "everturn sessions show SESSION",
            "everturn sessions erase SESSION --store talks.db",
            "everturn sessions --json | jq -r 'select(.state == \"waiting\").id'",
        ),
        codes=CODES,
    )
    sessions.add_argument(
        "--search", metavar="WORDS", default="", help="only those with messages that have these words"
    )
    sessions.add_argument(
        "--limit", metavar="N", type=parse_positive_int, default=20, help="sessions at most (default: 20)"
    )
    sessions.add_argument("--before", metavar="CURSOR", default="", help="older ones: what the page before has told")
    sessions.add_argument("--json", action="store_true", help="as JSON, one object per line")
    add_store_options(sessions)
    kinds = sessions.add_subparsers(dest="about", metavar="show|erase")
    show = add_command(
        kinds,
        "show",
        "print the messages of a conversation, as text",
        examples=("everturn sessions show SESSION | less", "everturn sessions show SESSION --json"),
        codes=CODES,
    )
    show.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="as JSON, one message per line")
    erase = add_command(
        kinds,
        "erase",
        "take everything out of a conversation, for good; you are asked first",
        examples=("everturn sessions erase SESSION", "everturn sessions erase SESSION --yes"),
        codes="exit codes: 0 it is erased, 1 you did not agree, 2 there is no such session, or a turn is under way in it",
    )
    erase.add_argument("--yes", action="store_true", help="do not ask")
    for command in (show, erase):
        command.add_argument("session", metavar="SESSION", help="its id, as `everturn sessions` shows it")
        add_store_options(command, is_below=True)


def add_store_options(command: argparse.ArgumentParser, *, is_below: bool = False) -> None:
    """Add the options that select the store or server.

    A subcommand has no defaults of its own, so that it keeps the values given to its parent command.
    """
    group = command.add_argument_group("where they are")

    def default(value: Any) -> Any:
        return argparse.SUPPRESS if is_below else value

    group.add_argument("--store", metavar="FILE", default=default(""), help=WHERE)
    group.add_argument("--config", metavar="FILE", default=default(None), help=FILE)
    group.add_argument("--connect", metavar="URL", default=default(""), help=CONNECT)
    group.add_argument("--tenant", metavar="ID", default=default("local"), help="tenant, in a store (default: local)")
