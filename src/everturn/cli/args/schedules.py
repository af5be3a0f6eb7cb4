"""Arguments of `everturn schedules`."""

from __future__ import annotations

import argparse
from typing import Any, Final

from everturn.cli.args.parser import add_command, parse_positive_int
from everturn.cli.args.sessions import add_store_options

SCHEDULES: Final = """\
List the schedules: messages that are sent to an agent at planned times. Each planned time starts one turn, in the process
that serves the store. They are in the store that `everturn serve` would use here, in a --store, or at a server (--connect).
"""
CODES: Final = "exit codes: 0 it is done, 2 there is no such schedule, store or server; nothing was changed"


def add_schedule_commands(commands: Any) -> None:
    """Add `everturn schedules` to the command line."""
    schedules = add_command(
        commands,
        "schedules",
        "list messages that are sent at planned times; create, pause, run one",
        SCHEDULES,
        examples=(
            "everturn schedules",
            'everturn schedules create --id report --cron "0 9 * * 1-5" --timezone Europe/Berlin "Write the report"',
            'everturn schedules create --at 2026-12-24T18:00:00+01:00 "Remind me of the goose"',
            "everturn schedules show report",
            "everturn schedules pause report",
            "everturn schedules run report --connect http://127.0.0.1:8000",
        ),
        codes=CODES,
    )
    schedules.add_argument("--json", action="store_true", help="print JSON, one object per line")
    add_store_options(schedules)
    kinds = schedules.add_subparsers(dest="about", metavar="show|create|pause|resume|run|delete")
    for name, about in (
        ("show", "print a schedule and its last runs"),
        ("pause", "start no more runs until it is resumed"),
        ("resume", "continue with the next planned time; those of the pause are left out"),
        ("run", "start a run now, beside the planned ones"),
        ("delete", "delete a schedule; turns that it has started go on"),
    ):
        command = add_command(kinds, name, about, examples=(f"everturn schedules {name} report",), codes=CODES)
        command.add_argument("id", metavar="ID", help="as `everturn schedules` shows it")
        command.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="as JSON")
        add_store_options(command, is_below=True)
    _add_create(kinds)


def _add_create(kinds: Any) -> None:
    create = add_command(
        kinds,
        "create",
        "send a message at planned times, or once at a time",
        examples=('everturn schedules create --cron "0 9 * * *" --timezone America/New_York "Good morning"',),
        codes=CODES,
    )
    create.add_argument("text", metavar="TEXT", help="the message")
    create.add_argument("--id", default="", help="its name (default: one is made)")
    create.add_argument("--cron", metavar="FIELDS", default="", help="minute hour day month weekday")
    create.add_argument("--at", metavar="TIME", default="", help="once, such as 2026-12-01T09:00:00+01:00")
    create.add_argument("--timezone", metavar="NAME", default="UTC", help="IANA name (default: UTC)")
    create.add_argument("--agent", metavar="NAME", default="", help="who takes its turns (default: the first agent)")
    create.add_argument(
        "--session", metavar="ID", default="", help="session of all its turns (default: a new one each)"
    )
    create.add_argument(
        "--catch-up",
        choices=("skip", "once", "all"),
        default="once",
        help="for planned times that passed while no process ran (default: once)",
    )
    create.add_argument(
        "--max-catch-up", metavar="N", type=parse_positive_int, default=10, help="with all: turns at most (default: 10)"
    )
    create.add_argument(
        "--overlap",
        choices=("queue", "skip"),
        default="queue",
        help="while a turn of its session runs (default: queue)",
    )
    create.add_argument("--until", metavar="TIME", default="", help="plan no run after this time")
    create.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="as JSON")
    add_store_options(create, is_below=True)
