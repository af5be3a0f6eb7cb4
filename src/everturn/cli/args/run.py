"""Arguments of `everturn run`, and the options that `everturn permissions explain` shares with it."""

from __future__ import annotations

import argparse
from typing import Any, Final

from everturn.cli.args.parser import add_command, parse_positive_int

RUN: Final = """\
Send one message, print the answer and exit. Made for pipes and scripts.

If stdin is not a terminal, its text is added to the prompt; without a prompt, or with -, it is the prompt. stdout has the
answer of the model and nothing else; with --json it has one event per line. The command never waits for a person unless
you pass --ask or --wait: a call that needs approval is denied, the model is told so, and the exit code is 3.

In a project (a git repository, or a folder that you trusted in the terminal) the model has the files and the shell of the
folder, as in `everturn`: it may read, and asks before it changes anything.

The session is saved, and belongs to the folder. Continue the last one with -c; `everturn logs` shows what was run.

The agent, its tools and its rules come from the configuration (`everturn config show`); options add to them.
"""
EXAMPLES: Final = (
    'everturn run "What is a monad? One sentence."',
    'everturn run -c "And in two sentences?"                   # continues the last session of this folder',
    'git diff | everturn run --no-folder "Write a commit message for this" > message.txt',
    'everturn run --mode auto-edit "Fix the typos in README.md"',
    'everturn run --output-schema person.json "Who wrote README.md?" | jq -r .name',
    "everturn run --files . --allow 'write_file(notes/**)' \"Sum up README.md in notes/short.md\"",
    'everturn run --json "What time is it?" | jq -c \'select(.event.type == "CallFinished")\'',
    'everturn run --idempotency-key "$(date +%F)" "Write the report"   # from cron',
    'everturn run --connect http://127.0.0.1:8000 --agent support "Who is on call?"',
)
CODES: Final = """\
exit codes:
  0    the turn completed
  1    the turn failed, or a file of the answer could not be saved; stderr has the reason
  2    the options or the configuration are wrong; nothing was sent
  3    the turn completed, but a call was denied because nobody could approve it
  4    the turn reached a limit: steps, budget or time
  5    the turn is waiting for an approval (--wait)
  130  cancelled by Ctrl-C or SIGTERM; a second signal exits at once
  141  the reader of stdout exited (`| head`); the turn was cancelled
"""
TOOLS: Final = "Python file or module with tools, or one tool in it; the file is executed; repeatable"
RULE: Final = "allow calls of this turn: TOOL, TOOL(ARGUMENT=PATTERN), or a rule as an approval shows it; repeatable"


def add_run(commands: Any) -> None:
    """Add `everturn run` to the command line."""
    about = "send one message and print the answer: for pipes and scripts"
    run = add_command(commands, "run", about, RUN, examples=EXAMPLES, codes=CODES)
    run.add_argument("prompt", metavar="PROMPT", nargs="?", help="the message; - or nothing: read it from stdin")
    _add_output(run)
    _add_folder(run)
    _add_model(run)
    _add_rules(run)
    _add_reach(run)
    _add_store(run)


def _add_output(run: argparse.ArgumentParser) -> None:
    out = run.add_argument_group("input and output")
    out.add_argument("--json", action="store_true", help="print events instead of text, one JSON object per line")
    out.add_argument("--deltas", action="store_true", help="with --json: also print deltas while a step streams")
    out.add_argument(
        "--output-schema", metavar="FILE", default="", help="JSON Schema of the answer; stdout is then that JSON"
    )
    out.add_argument("--verbose", "-v", action="store_true", help="print calls, reasoning and cost on stderr")
    out.add_argument("--no-stdin", action="store_true", help="do not read stdin")
    out.add_argument("--attach", metavar="FILE", action="append", default=[], help="attach a file; repeatable")
    out.add_argument("--save", metavar="DIR", default="", help="save files that the model creates in this folder")


def _add_folder(run: argparse.ArgumentParser) -> None:
    here = run.add_argument_group("session and folder")
    here.add_argument(
        "-c", "--continue", dest="goes_on", action="store_true", help="continue this folder's last session"
    )
    here.add_argument("--no-save", action="store_true", help="do not save the session")
    _add_folder_tools(here)


def _add_folder_tools(group: Any) -> None:
    group.add_argument("--no-folder", action="store_true", help="no files and no shell of this folder")
    group.add_argument(
        "--mode",
        choices=("plan", "ask", "auto-edit"),
        default="",
        help="plan only reads, ask asks before it changes anything (default), auto-edit edits files",
    )


def _add_model(run: argparse.ArgumentParser) -> None:
    group = run.add_argument_group("model and agent")
    group.add_argument("--config", metavar="FILE", help="configuration file (TOML), instead of the default files")
    group.add_argument(
        "--agent", metavar="NAME", default="", help="agent from the configuration (default: the first one)"
    )
    group.add_argument(
        "-m", "--model", metavar="NAME", default="", help="model, such as openai:gpt-5.2; or EVERTURN_MODEL"
    )
    group.add_argument(
        "--base-url",
        metavar="URL",
        default="",
        help="OpenAI-compatible server, such as http://127.0.0.1:8000/v1; its key is EVERTURN_API_KEY",
    )
    group.add_argument("--system", metavar="TEXT", default="", help="system prompt")
    group.add_argument(
        "--max-steps",
        metavar="N",
        type=parse_positive_int,
        help="maximum number of model requests (default: the agent's)",
    )
    group.add_argument(
        "--budget", metavar="LIMITS", default="", help="limits, such as cost=1.00,calls=40; see `everturn chat`"
    )
    group.add_argument("--timeout", metavar="SECONDS", type=_seconds, help="end the turn after so many seconds")


def _add_rules(run: argparse.ArgumentParser) -> None:
    group = run.add_argument_group("permissions")
    group.add_argument("--allow", metavar="RULE", action="append", default=[], help=RULE)
    group.add_argument(
        "--deny", metavar="RULE", action="append", default=[], help="deny calls of this turn; overrides --allow"
    )
    group.add_argument("--permissions", metavar="FILE", default="", help="permission rules (TOML)")
    asks = group.add_mutually_exclusive_group()
    asks.add_argument(
        "--ask", action="store_true", help="ask for approval on the terminal, even if stdin and stdout are pipes"
    )
    asks.add_argument("--wait", action="store_true", help="leave the turn waiting in its store, and exit with code 5")


def _add_reach(run: argparse.ArgumentParser) -> None:
    reach = run.add_argument_group("tools (see `everturn chat --help`)")
    reach.add_argument("-t", "--tools", metavar="FILE[:NAME]", action="append", default=[], help=TOOLS)
    reach.add_argument("--files", metavar="DIR[:ro]", default="", help="file tools for a folder")
    reach.add_argument(
        "--virtual-files", action="store_true", help="file tools for files that are stored in the session"
    )
    reach.add_argument("--code", action="store_true", help="run_python and run_javascript, in sandboxes")
    reach.add_argument("--shell", metavar="DIR[:rw]", nargs="?", const="", help="run_shell, in a sandbox")
    reach.add_argument("--web", action="store_true", help="fetch_url: pages from the public web")
    reach.add_argument(
        "--mcp",
        metavar="FILE",
        action="append",
        default=[],
        help="tools of MCP servers that you already trust; repeatable",
    )


def add_explain_options(explain: argparse.ArgumentParser) -> None:
    """Add the options that select the configuration to explain: the same as those of `run`, so both read the same
    configuration."""
    group = explain.add_argument_group("which configuration to explain (the same options as `everturn run`)")
    group.add_argument("--config", metavar="FILE", help="configuration file (TOML), instead of the default files")
    group.add_argument(
        "--agent", metavar="NAME", default="", help="agent from the configuration (default: the first one)"
    )
    group.add_argument("--permissions", metavar="FILE", default="", help="permission rules (TOML)")
    _add_folder_tools(group)
    _add_reach(explain)
    explain.set_defaults(allow=[], deny=[], system="", budget="", max_steps=None, timeout=None)


def _add_store(run: argparse.ArgumentParser) -> None:
    group = run.add_argument_group("storage")
    group.add_argument(
        "--store",
        metavar="FILE",
        default="",
        help="store: a file such as talks.db, or a database URL (default: the one of the terminal)",
    )
    group.add_argument("--session", metavar="NAME", default="", help="session to continue or start")
    group.add_argument(
        "--idempotency-key",
        metavar="KEY",
        default="",
        help="send the message once per key; a repeat prints the same answer again",
    )
    group.add_argument("--resume", action="store_true", help="send nothing, and continue an unfinished turn")
    group.add_argument(
        "--connect",
        metavar="URL",
        default="",
        help="run it on a server; the API key is EVERTURN_TOKEN, or on this machine the token of `everturn serve`",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds
