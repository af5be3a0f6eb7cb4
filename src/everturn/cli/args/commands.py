"""Root parser of the command line: all commands in groups, and the arguments of demo, doctor, version, completion and
permissions."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from typing import Any, Final

from everturn import __version__
from everturn.cli.args.chat import add_chat
from everturn.cli.args.mcp import add_mcp
from everturn.cli.args.parser import NO_COLOR, RULES, Parser, add_command, command_summaries
from everturn.cli.args.replay import add_replay
from everturn.cli.args.run import add_explain_options, add_run
from everturn.cli.args.server import add_server_commands
from everturn.cli.args.sessions import add_session_commands

GROUPS: Final = {
    "Talk": ("chat", "run", "demo"),
    "Serve": ("serve", "worker", "mcp"),
    "Look": ("sessions", "ps", "replay", "permissions", "doctor", "version"),
    "Keep": ("export", "import"),
    "Set up": ("config", "login", "keys", "users", "completion"),
}
"""Heading → its commands, in the order in which `everturn --help` lists them."""

HELP_HEADER: Final = """\
Everturn: a runtime for chat turns that call tools.

usage: everturn COMMAND ...      `everturn COMMAND --help` says more, with examples
       everturn                  talk; the first time, choose a model
"""
HELP_FOOTER: Final = """\
examples:
  everturn demo                             watch a turn with tools and a question; offline
  everturn chat --model openai:gpt-5.2      talk, with OPENAI_API_KEY in the environment
  git diff | everturn run "Review this"     one answer, in a pipe
  everturn serve                            an API and a page for the browser

options:
  -h, --help   say this
  --version    say which version this is

Something does not work? `everturn doctor` says why, and how to fix it.
The docs are in docs/ of the repository: docs/guides/command-line.md is about all of this.
"""
SHELLS: Final = ("bash", "zsh", "fish", "tcsh", "powershell")
COMPLETION: Final = """\
Print what lets a shell complete the commands and options of everturn with the Tab key. It is only printed; where it goes
is yours to say, and it is made anew after an upgrade.
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
  0  it is allowed
  2  it cannot be said
  3  it is asked about
  4  it is denied

exit codes of check:
  0  every rule can decide something
  1  some cannot
  2  the rules cannot be read
"""


class _RootParser(Parser):
    """Parser of `everturn` itself; its help is an overview of all commands, for newcomers."""

    def format_help(self) -> str:
        """List all commands in their groups, one line each."""
        summaries = command_summaries(self)
        width = max(map(len, summaries)) + 4
        columns = max(shutil.get_terminal_size().columns - 2, 2 * width)
        lines = [HELP_HEADER]
        for group, names in GROUPS.items():
            lines.append(group)
            for name in names:
                head = f"  {name:<{width - 2}}"
                lines.append(
                    textwrap.fill(summaries[name], columns, initial_indent=head, subsequent_indent=" " * width)
                )
            lines.append("")
        return "\n".join([*lines, HELP_FOOTER])


def make_parser() -> argparse.ArgumentParser:
    """Build the parser of the whole command line."""
    parser = _RootParser(prog="everturn", description="A runtime for chat turns that call tools.")
    parser.add_argument("--version", action="version", version=f"everturn {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    add_chat(commands)
    add_run(commands)
    _add_demo(commands)
    add_server_commands(commands)
    add_mcp(commands)
    add_session_commands(commands)
    add_replay(commands)
    _add_permissions(commands)
    _add_doctor(commands)
    _add_version(commands)
    _add_completion(commands)
    return parser


def _add_demo(commands: Any) -> None:
    demo = add_command(
        commands,
        "demo",
        "watch a turn with tools and a question to you; offline",
        "Watch a turn: two tools at once, a question to you, Ctrl-C to cancel. It needs no key and no network.",
        examples=("everturn demo", "everturn demo --auto --fast"),
        codes="exit codes: 0 it was played, 2 there is no terminal to ask on, 130 it was cancelled",
    )
    demo.add_argument("--auto", action="store_true", help="answer the question by itself; needs no terminal")
    demo.add_argument("--fast", action="store_true", help="wait for nothing: no human pace, no slow tools")
    demo.add_argument("--no-color", action="store_true", help=NO_COLOR)


def _add_doctor(commands: Any) -> None:
    doctor = add_command(
        commands,
        "doctor",
        "say what works here, what does not, and how to fix it",
        examples=("everturn doctor", "everturn doctor --json | jq '.checks[] | select(.state == \"broken\")'"),
        codes="exit codes: 0 what is installed works, 1 something of it is broken",
    )
    doctor.add_argument("--json", action="store_true", help="as JSON, for programs")
    doctor.add_argument("--no-color", action="store_true", help=NO_COLOR)


def _add_version(commands: Any) -> None:
    version = add_command(
        commands, "version", "say which version this is", examples=("everturn version", "everturn version --json")
    )
    version.add_argument("--json", action="store_true", help="as JSON, with Python, the platform and the extras")


def _add_completion(commands: Any) -> None:
    about = "let a shell complete the words of everturn with Tab"
    completion = add_command(commands, "completion", about, COMPLETION, examples=COMPLETION_EXAMPLES)
    completion.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def _add_permissions(commands: Any) -> None:
    permissions = add_command(
        commands,
        "permissions",
        "say what the rules for tools mean",
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
        "say whether a call would be allowed, asked about or denied, and which rule decides",
        examples=("everturn permissions explain write_file path=notes.md --permissions rules.toml",),
        codes="exit codes: 0 it is allowed, 3 it is asked about, 4 it is denied, 2 it cannot be said",
    )
    explain.add_argument("tool", metavar="TOOL", help="the name of a tool")
    explain.add_argument(
        "arguments", metavar="ARGS", nargs="*", default=[], help="its arguments: as JSON, or as name=value"
    )
    add_explain_options(explain)
    explain.add_argument("--store", metavar="FILE", default="", help="where a conversation is kept; and")
    explain.add_argument(
        "--session", metavar="NAME", default="", help="the conversation whose remembered answers count"
    )
    explain.add_argument(
        "--subject",
        metavar="NAME=KIND",
        action="append",
        default=[],
        help="of a tool that is not given: what an argument is (path, url, command or text); may be given again",
    )
    check = add_command(
        kinds,
        "check",
        "list the rules of a file, those that can never decide, and what is wrong with it",
        examples=("everturn permissions check --permissions rules.toml",),
        codes="exit codes: 0 every rule can decide something, 1 some cannot, 2 the rules cannot be read",
    )
    check.add_argument("--permissions", metavar="FILE", required=True, help=RULES)
