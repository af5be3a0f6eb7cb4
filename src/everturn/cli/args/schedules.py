"""Arguments of `everturn schedules`."""

from __future__ import annotations

import argparse
from typing import Any, Final

from everturn.cli.args.parser import add_command, parse_positive_int
from everturn.cli.args.sessions import add_store_options

SCHEDULES: Final = """\
List schedules. A schedule sends a message to an agent at planned times, and each planned time starts one turn, in the process
that serves the store. The command reads the store that `everturn serve` uses here, another --store, or a server (--connect).
"""
CODES: Final = "exit codes: 0 done, 2 no such schedule, store or server; nothing was changed"


def add_schedule_commands(commands: Any) -> None:
    """Add `everturn schedules` to the command line."""
    schedules = add_command(
        commands,
        "schedules",
        "send messages at planned times: list, create, pause and run schedules",
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
        ("show", "show a schedule and its last runs"),
        ("pause", "pause a schedule: it starts no runs until you resume it"),
        ("resume", "resume a paused schedule at its next planned time; times during the pause are skipped"),
        ("run", "start a run now, in addition to the planned ones"),
        ("delete", "delete a schedule; turns that it has started continue"),
    ):
        command = add_command(kinds, name, about, examples=(f"everturn schedules {name} report",), codes=CODES)
        command.add_argument("id", metavar="ID", help="schedule id, as `everturn schedules` shows it")
        command.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
        add_store_options(command, is_below=True)
    _add_create(kinds)


def _add_create(kinds: Any) -> None:
    create = add_command(
        kinds,
        "create",
        "create a schedule: send a message at planned times, or once",
        examples=('everturn schedules create --cron "0 9 * * *" --timezone America/New_York "Good morning"',),
        codes=CODES,
    )
    create.add_argument("text", metavar="TEXT", help="message to send")
    create.add_argument("--id", default="", help="id of the schedule (default: generated)")
    create.add_argument(
        "--cron", metavar="FIELDS", default="", help="planned times as a cron expression: minute hour day month weekday"
    )
    create.add_argument(
        "--at", metavar="TIME", default="", help="send once, at this time, such as 2026-12-01T09:00:00+01:00"
    )
    create.add_argument(
        "--timezone", metavar="NAME", default="UTC", help="time zone of --cron, an IANA name (default: UTC)"
    )
    create.add_argument(
        "--agent", metavar="NAME", default="", help="agent that gets the message (default: the first agent)"
    )
    create.add_argument(
        "--session", metavar="ID", default="", help="session for all runs (default: a new session for each run)"
    )
    create.add_argument(
        "--catch-up",
        choices=("skip", "once", "all"),
        default="once",
        help="planned times that passed while no process ran: skip them, run once, or run all (default: once)",
    )
    create.add_argument(
        "--max-catch-up",
        metavar="N",
        type=parse_positive_int,
        default=10,
        help="with --catch-up all: maximum number of runs (default: 10)",
    )
    create.add_argument(
        "--overlap",
        choices=("queue", "skip"),
        default="queue",
        help="if a turn of the session is still running: queue the run or skip it (default: queue)",
    )
    create.add_argument("--until", metavar="TIME", default="", help="start no run after this time")
    create.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    add_store_options(create, is_below=True)
