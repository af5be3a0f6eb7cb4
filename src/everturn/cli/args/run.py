"""Arguments of `everturn run`, and the options that `everturn permissions explain` shares with it."""

from __future__ import annotations

import argparse
from typing import Any, Final

from everturn.cli.args.parser import add_command, parse_positive_int

RUN: Final = """\
Send one message, print the answer, and leave: for pipes and scripts.

What comes on stdin, if that is not a terminal, is added to the prompt; without a prompt, or with -, it is the prompt.
On stdout is what the model says, as it comes, and nothing else; or with --json every event, one per line. It never
waits for a person unless it is told to: what asks is denied, the model is told so, and the exit code says it.

The agent, its tools and its rules are those of the configuration (`everturn config show`); options add to them.
"""
EXAMPLES: Final = (
    'everturn run "What is a monad? One sentence."',
    'git diff | everturn run "Write a commit message for this" > message.txt',
    "everturn run --files . --allow 'write_file(notes/**)' \"Sum up README.md in notes/short.md\"",
    'everturn run --json "What time is it?" | jq -c \'select(.event.type == "CallFinished")\'',
    'everturn run --store talks.db --idempotency-key "$(date +%F)" "Write the report"   # from cron',
    'everturn run --connect http://127.0.0.1:8000 --agent support "Who is on call?"',
)
CODES: Final = """\
exit codes:
  0    the turn completed
  1    the turn failed, or something of its answer could not be kept; one line on stderr says why
  2    what was asked for makes no sense, or cannot be had here; nothing was sent
  3    the turn completed, but something was denied because nobody was there to ask
  4    the turn came to a limit: of its steps, its budget or its time
  5    the turn waits for somebody (--wait)
  130  cancelled, by Ctrl-C or SIGTERM; a second one leaves at once
  141  whoever read the output has gone away (`| head`); the turn was cancelled
"""
TOOLS: Final = "a Python file or module with tools, or one of them; it is run; may be given again"
RULE: Final = "a rule for this turn: TOOL, TOOL(ARGUMENT=PATTERN), or a rule as it is shown where one is asked; may be given again"


def add_run(commands: Any) -> None:
    """Add `everturn run` to the command line."""
    about = "send one message and print the answer: for pipes and scripts"
    run = add_command(commands, "run", about, RUN, examples=EXAMPLES, codes=CODES)
    run.add_argument("prompt", metavar="PROMPT", nargs="?", help="what is said; - or nothing: what comes on stdin")
    _add_output(run)
    _add_model(run)
    _add_rules(run)
    _add_reach(run)
    _add_store(run)


def _add_output(run: argparse.ArgumentParser) -> None:
    out = run.add_argument_group("in and out")
    out.add_argument("--json", action="store_true", help="print events instead of text, one JSON object per line")
    out.add_argument("--deltas", action="store_true", help="with --json: also what is shown while a step streams")
    out.add_argument("--verbose", "-v", action="store_true", help="tell on stderr of calls, thoughts and cost")
    out.add_argument("--no-stdin", action="store_true", help="leave stdin alone, whatever it is")
    out.add_argument(
        "--attach", metavar="FILE", action="append", default=[], help="let a file go with it; may be given again"
    )
    out.add_argument("--save", metavar="DIR", default="", help="write every file that a model makes there")


def _add_model(run: argparse.ArgumentParser) -> None:
    group = run.add_argument_group("who answers")
    group.add_argument("--config", metavar="FILE", help="a configuration, in TOML, instead of the usual files")
    group.add_argument("--agent", metavar="NAME", default="", help="an agent of the configuration; else the first one")
    group.add_argument("--model", metavar="NAME", default="", help="such as openai:gpt-5.2; or EVERTURN_MODEL")
    group.add_argument(
        "--base-url",
        metavar="URL",
        default="",
        help="a server of your own, such as http://127.0.0.1:8000/v1; its key is read from EVERTURN_API_KEY",
    )
    group.add_argument("--system", metavar="TEXT", default="", help="what the model is told before the message")
    group.add_argument("--max-steps", metavar="N", type=parse_positive_int, help="model requests at most (default: 10)")
    group.add_argument("--budget", metavar="LIMITS", default="", help="such as cost=1.00,calls=40; see `everturn chat`")
    group.add_argument("--timeout", metavar="SECONDS", type=_seconds, help="after which the turn is ended")


def _add_rules(run: argparse.ArgumentParser) -> None:
    group = run.add_argument_group("what it may do")
    group.add_argument("--allow", metavar="RULE", action="append", default=[], help=RULE)
    group.add_argument("--deny", metavar="RULE", action="append", default=[], help="the same; it beats every --allow")
    group.add_argument("--permissions", metavar="FILE", default="", help="rules for tools, in TOML")
    asks = group.add_mutually_exclusive_group()
    asks.add_argument("--ask", action="store_true", help="ask on the terminal, though stdin and stdout may be pipes")
    asks.add_argument("--wait", action="store_true", help="let the turn wait in its store, and leave with code 5")


def _add_reach(run: argparse.ArgumentParser) -> None:
    reach = run.add_argument_group("what it may reach (see `everturn chat --help`)")
    reach.add_argument("--tools", metavar="FILE[:NAME]", action="append", default=[], help=TOOLS)
    reach.add_argument("--files", metavar="DIR[:ro]", default="", help="file tools beneath a folder")
    reach.add_argument("--virtual-files", action="store_true", help="file tools on files that the session keeps")
    reach.add_argument("--code", action="store_true", help="run_python and run_javascript, in sandboxes")
    reach.add_argument("--shell", metavar="DIR[:rw]", nargs="?", const="", help="run_shell, in a sandbox")
    reach.add_argument("--web", action="store_true", help="fetch_url: pages of the public web")
    reach.add_argument(
        "--mcp", metavar="FILE", action="append", default=[], help="tools of MCP servers that you trust already"
    )


def add_explain_options(explain: argparse.ArgumentParser) -> None:
    """Add the options that select the configuration to explain: the same as those of `run`, so both read the same
    configuration."""
    group = explain.add_argument_group("what is explained: the calls of `everturn run` with the same words")
    group.add_argument("--config", metavar="FILE", help="a configuration, in TOML, instead of the usual files")
    group.add_argument("--agent", metavar="NAME", default="", help="an agent of the configuration; else the first one")
    group.add_argument("--permissions", metavar="FILE", default="", help="rules for tools, in TOML")
    _add_reach(explain)
    explain.set_defaults(allow=[], deny=[], system="", budget="", max_steps=None, timeout=None)


def _add_store(run: argparse.ArgumentParser) -> None:
    group = run.add_argument_group("where it is kept, and where it runs")
    group.add_argument(
        "--store", metavar="FILE", default="", help="a file such as talks.db, or a database; else memory"
    )
    group.add_argument("--session", metavar="NAME", default="", help="the session to go on with, or to begin")
    group.add_argument(
        "--idempotency-key",
        metavar="KEY",
        default="",
        help="the same message with the same key is sent once; said again, its answer is printed again",
    )
    group.add_argument("--resume", action="store_true", help="send nothing, and go on with what was left unfinished")
    group.add_argument(
        "--connect",
        metavar="URL",
        default="",
        help="let a server do it; EVERTURN_TOKEN is shown there, or on this machine the token of `everturn serve`",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds
