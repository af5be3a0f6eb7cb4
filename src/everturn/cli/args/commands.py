"""Root parser of the command line: all commands in groups, and the arguments of demo, doctor, version, completion and
permissions."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from typing import Any, Final

from everturn import __version__
from everturn.cli.args.acp import add_acp
from everturn.cli.args.cells import add_router
from everturn.cli.args.chat import add_chat
from everturn.cli.args.evals import add_eval
from everturn.cli.args.logs import add_logs
from everturn.cli.args.mcp import add_mcp
from everturn.cli.args.models import add_model_commands
from everturn.cli.args.operations import add_operation_commands
from everturn.cli.args.parser import NO_COLOR, RULES, Parser, add_command, command_summaries
from everturn.cli.args.replay import add_replay
from everturn.cli.args.run import add_explain_options, add_run
from everturn.cli.args.schedules import add_schedule_commands
from everturn.cli.args.server import FILE, STORE, add_server_commands
from everturn.cli.args.sessions import add_session_commands
from everturn.cli.args.webhooks import add_webhook_commands

GROUPS: Final = {
    "Daily use": ("chat", "run", "logs", "sessions", "acp", "demo"),
    "Set up": ("auth", "models", "config", "permissions", "doctor", "completion", "version"),
    "Files": ("export", "import", "replay", "eval"),
    "Serve": ("serve", "worker", "router", "ps", "mcp", "schedules", "webhooks", "hooks", "login", "keys", "users"),
    "Operate": ("backup", "migrate", "admin"),
}
"""Heading → its commands, in the order in which `everturn help all` lists them."""
FIRST_GROUPS: Final = ("Daily use", "Set up", "Files")
"""The groups of `everturn --help`; `everturn help all` lists the others as well."""

HELP_HEADER: Final = """\
Everturn: chat turns that call tools, and survive crashes.

usage: everturn                  chat in this folder; on the first run, choose a model
       everturn COMMAND ...      `everturn COMMAND --help` shows options and examples
"""
HELP_FOOTER: Final = """\
examples:
  everturn                                  chat in this folder, with its files
  everturn -c                               continue the last session of this folder
  git diff | everturn run "Review this"     one answer in a pipe
  everturn logs show                        what was run here last

options:
  -h, --help   show this help
  --version    show the version

`everturn help all` lists all commands.
Something does not work? Run `everturn doctor`.
The docs are in docs/ of the repository; docs/terminal/command-line.md describes the command line.
"""
SHELLS: Final = ("bash", "zsh", "fish", "tcsh", "powershell")
COMPLETION: Final = """\
Print a script that completes the commands and options of everturn with the Tab key. Put it where your shell reads it, and
print it again after an upgrade.
"""
COMPLETION_EXAMPLES: Final = (
    'eval "$(everturn completion bash)"              in ~/.bashrc',
    "everturn completion zsh > ~/.zfunc/_everturn     a folder in your $fpath, before compinit",
    "everturn completion fish > ~/.config/fish/completions/everturn.fish",
    "everturn completion tcsh | source /dev/stdin     in ~/.tcshrc",
    "everturn completion powershell | Out-String | Invoke-Expression     in $PROFILE",
)
PERMISSIONS_CODES: Final = """\
exit codes of explain:
  0  allowed
  2  error
  3  asks
  4  denied

exit codes of check:
  0  every rule can apply
  1  some rules can never apply
  2  the rules cannot be read
"""


class _RootParser(Parser):
    """Parser of `everturn` itself; its help is an overview of all commands, for newcomers."""

    shows_all = False  # `everturn help all`

    def format_help(self) -> str:
        """List the commands of daily use in their groups, one line each; with `shows_all`, all commands."""
        summaries = command_summaries(self)
        width = max(map(len, summaries)) + 4
        columns = max(shutil.get_terminal_size().columns - 2, 2 * width)
        lines = [HELP_HEADER]
        for group, names in GROUPS.items():
            if group not in FIRST_GROUPS and not self.shows_all:
                continue
            lines.append(group)
            for name in names:
                head = f"  {name:<{width - 2}}"
                lines.append(
                    textwrap.fill(summaries[name], columns, initial_indent=head, subsequent_indent=" " * width)
                )
            lines.append("")
        return "\n".join([*lines, HELP_FOOTER])


def make_parser(*, shows_all: bool = False) -> argparse.ArgumentParser:
    """Build the parser of the whole command line; with `shows_all`, its help lists every command."""
    parser = _RootParser(prog="everturn", description="A runtime for chat turns that call tools.")
    parser.shows_all = shows_all
    parser.add_argument("--version", action="version", version=f"everturn {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    add_chat(commands)
    add_run(commands)
    add_logs(commands)
    add_acp(commands)
    _add_demo(commands)
    add_server_commands(commands)
    add_router(commands)
    add_mcp(commands)
    add_session_commands(commands)
    add_schedule_commands(commands)
    add_webhook_commands(commands)
    add_operation_commands(commands)
    add_replay(commands)
    add_eval(commands)
    _add_permissions(commands)
    _add_doctor(commands)
    add_model_commands(commands)
    _add_version(commands)
    _add_completion(commands)
    return parser


def make_chat_parser() -> argparse.ArgumentParser:
    """Build the parser of `everturn chat` alone: bare `everturn` needs no other, and a hundred of them take their time."""
    parser = _RootParser(prog="everturn")
    add_chat(parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser))
    return parser


def _add_demo(commands: Any) -> None:
    demo = add_command(
        commands,
        "demo",
        "watch an offline demo: tool calls and an approval",
        "Watch a turn: two parallel tool calls, an approval, Ctrl-C to cancel. It needs no API key and no network.",
        examples=("everturn demo", "everturn demo --auto --fast"),
        codes="exit codes: 0 done, 2 no terminal for the approval, 130 cancelled",
    )
    demo.add_argument("--auto", action="store_true", help="approve automatically; needs no terminal")
    demo.add_argument("--fast", action="store_true", help="no pauses")
    demo.add_argument("--no-color", action="store_true", help=NO_COLOR)


def _add_doctor(commands: Any) -> None:
    doctor = add_command(
        commands,
        "doctor",
        "check the installation, and show how to fix problems",
        examples=(
            "everturn doctor",
            "everturn doctor --store postgresql://user@host/database",
            "everturn doctor --json | jq '.checks[] | select(.state == \"broken\")'",
        ),
        codes="exit codes: 0 everything installed works, 1 something is broken",
    )
    doctor.add_argument("--config", metavar="FILE", default="", help=FILE)
    doctor.add_argument("--store", metavar="FILE", default="", help=STORE)
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.add_argument("--no-color", action="store_true", help=NO_COLOR)


def _add_version(commands: Any) -> None:
    version = add_command(
        commands, "version", "print the version", examples=("everturn version", "everturn version --json")
    )
    version.add_argument("--json", action="store_true", help="print JSON, with Python, platform and extras")


def _add_completion(commands: Any) -> None:
    about = "print a script for shell completion"
    completion = add_command(commands, "completion", about, COMPLETION, examples=COMPLETION_EXAMPLES)
    completion.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def _add_permissions(commands: Any) -> None:
    permissions = add_command(
        commands,
        "permissions",
        "check permission rules, and explain decisions",
        examples=(
            "everturn permissions check --permissions rules.toml",
            "everturn permissions explain write_file path=notes.md --permissions rules.toml",
            "everturn permissions explain run 'command=git log' --subject command=command",
        ),
        codes=PERMISSIONS_CODES,
    )
    kinds = permissions.add_subparsers(dest="about", metavar="explain|check", required=True)
    explain = add_command(
        kinds,
        "explain",
        "show whether a call would be allowed, would ask or would be denied, and which rule decides",
        examples=("everturn permissions explain write_file path=notes.md --permissions rules.toml",),
        codes="exit codes: 0 allowed, 3 asks, 4 denied, 2 error",
    )
    explain.add_argument("tool", metavar="TOOL", help="name of the tool")
    explain.add_argument(
        "arguments", metavar="ARGS", nargs="*", default=[], help="arguments of the call: JSON, or name=value"
    )
    add_explain_options(explain)
    explain.add_argument("--store", metavar="FILE", default="", help="store of the conversation")
    explain.add_argument("--session", metavar="NAME", default="", help="conversation whose grants apply")
    explain.add_argument(
        "--subject",
        metavar="NAME=KIND",
        action="append",
        default=[],
        help="for a tool without --tools: the kind of an argument (path, url, command or text); repeatable",
    )
    check = add_command(
        kinds,
        "check",
        "list the rules of a file, rules that can never apply, and errors",
        examples=("everturn permissions check --permissions rules.toml",),
        codes="exit codes: 0 every rule can apply, 1 some rules can never apply, 2 the rules cannot be read",
    )
    check.add_argument("--permissions", metavar="FILE", required=True, help=RULES)
