"""Arguments of `everturn logs`."""

from __future__ import annotations

import argparse
from typing import Any, Final

from everturn.cli.args.parser import add_command, parse_positive_int
from everturn.cli.args.sessions import CODES, add_store_options

LOGS: Final = """\
List the conversations of this folder, the last one first: those of `everturn run`, the terminal and editors. `show` prints a
conversation, and `answer` prints only its last answer.
"""
SESSION: Final = "session id, as `everturn logs` shows it (default: the last one of this folder)"


def add_logs(commands: Any) -> None:
    """Add `everturn logs` to the command line."""
    logs = add_command(
        commands,
        "logs",
        "list and show the conversations of this folder",
        LOGS,
        examples=(
            "everturn logs",
            "everturn logs show                  the last conversation of this folder",
            "everturn logs answer > answer.txt   its last answer again, as `everturn run` printed it",
            "everturn logs --all -n 50 --json",
        ),
        codes=CODES,
    )
    logs.add_argument("-a", "--all", action="store_true", help="list the conversations of all folders")
    logs.add_argument(
        "-n",
        "--limit",
        metavar="N",
        type=parse_positive_int,
        default=10,
        help="maximum number of conversations (default: 10)",
    )
    logs.add_argument("--json", action="store_true", help="print JSON, one object per line")
    add_store_options(logs)
    kinds = logs.add_subparsers(dest="about", metavar="show|answer")
    show = add_command(
        kinds,
        "show",
        "print a conversation, with the models, tokens and cost of its answers",
        examples=("everturn logs show", "everturn logs show SESSION --json"),
        codes=CODES,
    )
    show.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON, one message per line")
    answer = add_command(
        kinds,
        "answer",
        "print only the last answer of a conversation",
        examples=("everturn logs answer", "everturn logs answer SESSION | jq ."),
        codes="exit codes: 0 done, 2 no such session, or it has no answer",
    )
    for command in (show, answer):
        command.add_argument("session", metavar="SESSION", nargs="?", default="", help=SESSION)
        command.add_argument("-a", "--all", action="store_true", default=argparse.SUPPRESS, help="look in all folders")
        add_store_options(command, is_below=True)
