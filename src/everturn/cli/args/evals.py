"""Arguments of `everturn eval`."""

from __future__ import annotations

from typing import Any, Final

from everturn.cli.args.parser import RULES, add_command
from everturn.cli.args.sessions import add_store_options

EVAL: Final = """\
Run recorded sessions again with a change, and check that they still do what they must.

DATASET is a folder of recordings, with or without a dataset.toml that has checks. Without checks, a case passes if it
makes the same calls that act as its recording.

Depths:
  pure   recorded answers, today's code and rules; nothing runs, nothing is requested (the default)
  step   the model is asked at each recorded step, with the recorded history
  turn   the model answers freely; tool calls and approvals are answered from the recording. A call that is not in the
         recording ends the run as divergent; a tool that acts never runs (the default with --model)
  live   the tools run; those that may run only once are denied unless --allow-tool names them

`everturn eval make --session ID -o FOLDER` writes sessions of a store as a dataset, and
`everturn eval make --rated down -o FOLDER` the turns whose answers people rated down.
"""
EXAMPLES: Final = (
    "everturn eval make --session SESSION -o refunds",
    "everturn eval make --rated down -o complaints",
    "everturn eval refunds",
    "everturn eval refunds --permissions new.toml",
    "everturn eval refunds --depth turn --change shorter.toml --model openai:gpt-5.2 --tools shop.py -k 5",
    "everturn eval refunds --report report.html --report junit.xml",
)
CODES: Final = """\
exit codes:
  0  every case passed
  1  a case failed
  2  more samples are divergent than --divergent-limit accepts
  3  the evaluation cannot run; stderr or the report has the reason
"""


def add_eval(commands: Any) -> None:
    """Add `everturn eval` to the command line."""
    about = "evaluate a change on recorded sessions"
    command = add_command(commands, "eval", about, EVAL, examples=EXAMPLES, codes=CODES)
    command.add_argument("dataset", metavar="DATASET", help="folder, dataset.toml or recording; or `make`")
    _add_change(command)
    _add_run(command)
    make = command.add_argument_group("make a dataset")
    make.add_argument("--session", metavar="ID", action="append", default=[], help="session to write; repeatable")
    make.add_argument("--turn", metavar="TURN", default="", help="one turn of the session, with the messages before it")
    make.add_argument(
        "--rated",
        choices=("up", "down"),
        default="",
        help="a case for each answer that people rated so; without --session, of all sessions",
    )
    make.add_argument("-o", "--output", metavar="FOLDER", default="", help="folder of the dataset to write")
    add_store_options(command)


def _add_change(command: Any) -> None:
    change = command.add_argument_group("what differs from the recordings")
    change.add_argument(
        "--change",
        metavar="FILE",
        default="",
        help="TOML file with the change: system, permissions, params, max_steps, model",
    )
    change.add_argument("--system", metavar="TEXT", help="other instructions for the agent")
    change.add_argument("--system-file", metavar="FILE", default="", help="the same, from a file")
    change.add_argument("--permissions", metavar="FILE", default="", help=RULES)
    change.add_argument("--model", metavar="NAME", default="", help="model to ask (default: the recorded answers)")
    change.add_argument(
        "--agent", metavar="NAME", default="", help="agent of --config whose instructions and rules are used"
    )
    change.add_argument(
        "--tools",
        metavar="FILE[:NAME]",
        action="append",
        default=[],
        help="Python file with today's tools; it is executed; repeatable",
    )


def _add_run(command: Any) -> None:
    how = command.add_argument_group("options")
    how.add_argument(
        "--depth",
        choices=("pure", "step", "turn", "live"),
        default="",
        help="how much is run again; see above (default: pure; turn with --model)",
    )
    how.add_argument("-k", "--samples", metavar="N", type=int, default=1, help="number of runs per case (default: 1)")
    how.add_argument(
        "--match",
        choices=("identity", "name"),
        default="identity",
        help="compare tools with the recording by identity (name, schema, description, origin) or by name (default: identity)",
    )
    how.add_argument(
        "--on-miss",
        choices=("stop", "run", "emulate"),
        default="stop",
        help="what to do with a read_only call that is not in the recording: end the run, run the tool, or let the model emulate its result (default: stop)",
    )
    how.add_argument(
        "--allow-tool", metavar="NAME", action="append", default=[], help="tool that may run at depth live; repeatable"
    )
    how.add_argument(
        "--fork-at",
        metavar="STEP",
        type=int,
        default=0,
        help="at depth turn: keep the recorded answers up to this step of the last turn; the model answers after it",
    )
    how.add_argument("--judge", metavar="NAME", default="", help="model for checks of kind judge")
    how.add_argument(
        "--run",
        metavar="FOLDER",
        default="",
        help="store the run in this folder; the same command continues an interrupted run",
    )
    how.add_argument(
        "--branches",
        metavar="STORE",
        default="",
        help="write each case with its samples as sibling answers into a store, to compare them; needs --run",
    )
    how.add_argument(
        "--against", metavar="FILE", default="", help="JSON report to compare with, instead of the recordings"
    )
    how.add_argument(
        "--divergent-limit",
        metavar="SHARE",
        type=float,
        default=0.0,
        help="accepted share of divergent samples, from 0 to 1 (default: 0)",
    )
    how.add_argument(
        "--report",
        metavar="FILE",
        action="append",
        default=[],
        help="write a report: .json, .xml (JUnit), .md, .html, or .eval (log of Inspect); repeatable",
    )
    how.add_argument("--quiet", "-q", action="store_true", help="print only the summary")
