"""Arguments of `everturn replay`."""

from __future__ import annotations

from typing import Any, Final

from everturn.cli.args.parser import NO_COLOR, RULES, add_command

REPLAY: Final = """\
Replay a recorded turn offline. The runtime is real; the model, the tools, the people and the clock come from the
recording. The result is compared with the recording, event by event.

FILE is what `everturn export` writes: a turn (--turn), a whole session, a download from a server, or a bare log. --show
only prints it; --until prints the state at one position.

--diff replays nothing: it shows what another prompt or other rules would have changed. The answers of the model stay, and
its calls are evaluated again. Several files print one line each.
"""
EXAMPLES: Final = (
    "everturn export SESSION --turn TURN -o lunch.jsonl",
    "everturn replay lunch.jsonl",
    "everturn replay --show --pace lunch.jsonl",
    "everturn replay --until gate lunch.jsonl",
    "everturn replay --diff --permissions new.toml recordings/*.jsonl",
    'everturn replay --diff --system "Answer in one sentence." lunch.jsonl',
    "everturn replay --real-tools mytools.py lunch.jsonl",
)
CODES: Final = """\
exit codes:
  0  no difference
  1  something is different
  2  the file cannot be read or replayed; stderr has the reason
"""
UNTIL: Final = (
    "print the state after an event: its number, step:2, gate, call:NAME, or the first event of a type such as "
    "CallStarted"
)


def add_replay(commands: Any) -> None:
    """Add `everturn replay` to the command line."""
    about = "replay a recorded turn offline, and show differences"
    replay = add_command(commands, "replay", about, REPLAY, examples=EXAMPLES, codes=CODES)
    replay.add_argument("files", metavar="FILE", nargs="+", help="recording that `everturn export` wrote")
    how = replay.add_argument_group("options")
    how.add_argument("--show", action="store_true", help="print the recording; replay nothing")
    how.add_argument("--until", metavar="PLACE", default="", help=UNTIL)
    how.add_argument("--pace", action="store_true", help="print at reading speed")
    how.add_argument(
        "--json", action="store_true", help="print the events as JSON, one per line; messages go to stderr"
    )
    how.add_argument("--quiet", "-q", action="store_true", help="print only the result")
    how.add_argument("--no-color", action="store_true", help=NO_COLOR)
    how.add_argument(
        "--real-tools",
        metavar="FILE[:NAME]",
        action="append",
        default=[],
        help="run these real tools instead of the recorded results; the file is executed; repeatable",
    )
    _add_diff(replay)


def _add_diff(replay: Any) -> None:
    diff = replay.add_argument_group("what would change")
    diff.add_argument("--diff", action="store_true", help="show what the options below would have changed")
    diff.add_argument("--system", metavar="TEXT", help="another system prompt")
    diff.add_argument("--system-file", metavar="FILE", default="", help="the same, from a file")
    diff.add_argument("--permissions", metavar="FILE", default="", help=RULES)
    diff.add_argument(
        "--config", metavar="FILE", help="use the rules of a configuration, and the prompt and rules of its agent"
    )
    diff.add_argument(
        "--agent", metavar="NAME", default="", help="agent of the configuration (default: the recorded one)"
    )
    diff.add_argument(
        "--tools",
        metavar="FILE[:NAME]",
        action="append",
        default=[],
        help="Python file with the called tools, to know their arguments; it is executed; repeatable",
    )
    diff.add_argument(
        "--subject",
        metavar="NAME=KIND",
        action="append",
        default=[],
        help="for tools without --tools: the kind of an argument (path, url, command or text); repeatable",
    )
