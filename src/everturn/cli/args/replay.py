"""Arguments of `everturn replay`."""

from __future__ import annotations

from typing import Any, Final

from everturn.cli.args.parser import NO_COLOR, RULES, add_command

REPLAY: Final = """\
Play a recorded turn again, offline. The runtime is real; the model, the tools, the people and the time are those of the
recording. Then it is compared with what was recorded, event for event, and shown.

A FILE is what `everturn export` writes: a turn (--turn) or a whole session, one that was downloaded from a server, or a
bare log. With --show it is only shown, whatever is in it; with --until it is said how things stood at a place in it.

With --diff nothing is played: it is said what another prompt, or other rules, would have made of it. What the model said
is kept, and its calls are judged anew. Several files give a line each.
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
  0  it is the same, or there is no difference
  1  something is different
  2  it cannot be read, or cannot be played again; one line says why
"""
UNTIL: Final = (
    "say how things stood behind an event, and what comes next: its number, step:2, gate, call:NAME, or the first "
    "of a kind such as CallStarted"
)


def add_replay(commands: Any) -> None:
    """Add `everturn replay` to the command line."""
    about = "play a recorded turn again, offline, and say what is different"
    replay = add_command(commands, "replay", about, REPLAY, examples=EXAMPLES, codes=CODES)
    replay.add_argument("files", metavar="FILE", nargs="+", help="a recording")
    how = replay.add_argument_group("how")
    how.add_argument("--show", action="store_true", help="only show what was recorded; nothing is played")
    how.add_argument("--until", metavar="PLACE", default="", help=UNTIL)
    how.add_argument("--pace", action="store_true", help="show it at the pace at which people read")
    how.add_argument("--json", action="store_true", help="print the events, one per line, and the rest on stderr")
    how.add_argument("--quiet", "-q", action="store_true", help="say only what came of it")
    how.add_argument("--no-color", action="store_true", help=NO_COLOR)
    how.add_argument(
        "--real-tools",
        metavar="FILE[:NAME]",
        action="append",
        default=[],
        help="let it happen on these tools instead of what was recorded of them; the file is run; may be given again",
    )
    _add_diff(replay)


def _add_diff(replay: Any) -> None:
    diff = replay.add_argument_group("what would have been different")
    diff.add_argument("--diff", action="store_true", help="say what these would have made of it")
    diff.add_argument("--system", metavar="TEXT", help="another prompt")
    diff.add_argument("--system-file", metavar="FILE", default="", help="the same, from a file")
    diff.add_argument("--permissions", metavar="FILE", default="", help=RULES)
    diff.add_argument("--config", metavar="FILE", help="the rules of a configuration, and the prompt and rules of")
    diff.add_argument("--agent", metavar="NAME", default="", help="an agent of it; else the one that was recorded")
    diff.add_argument(
        "--tools",
        metavar="FILE[:NAME]",
        action="append",
        default=[],
        help="the tools that were called, to know what their arguments are; the file is run; may be given again",
    )
    diff.add_argument(
        "--subject",
        metavar="NAME=KIND",
        action="append",
        default=[],
        help="of tools that are not given: what an argument is (path, url, command or text); may be given again",
    )
