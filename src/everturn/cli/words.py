"""The words of the command line: which commands there are, what can be said to each, and what they are told to mean."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from everturn import __version__
from everturn.cli.server_words import add_server

CHAT = """\
Talk to a model, line by line. Answers are shown while they come; /help there says what else there is.

Ctrl-C while an answer comes cancels it. Ctrl-C or Ctrl-D at the prompt leaves.
The conversation is kept in memory, and ends with the command; with --store it is kept, and can be gone on with.

Where the input is not a terminal, each of its lines is answered, without a prompt.
Where the output is not a terminal, it is what the model says and nothing else; the rest goes to stderr.

A model may call tools. Loading a file of them runs it. A tool runs without a question unless it says otherwise with
execute="ask" (or "ask_once", or "deny"), or a rule does: deny beats ask, and ask beats allow. Whoever is asked is shown
exactly what would run. Where input and output are not both a terminal there is nobody to ask: what asks is denied.
  everturn chat --model openai:gpt-5.2 --tools mytools.py --permissions everturn.toml --budget cost=1.00,calls=40

What a model may reach is said by more of them: a folder, a sandbox, the web, MCP servers. Each is tried when the chat
begins, and what cannot keep its promise on this machine is told and not offered (`everturn doctor` says more).
  everturn chat --model openai:gpt-5.2 --files ~/project       read, and write once you have seen the diff; /revert
  everturn chat --model openai:gpt-5.2 --files ~/project:ro --code --shell ~/project
  everturn chat --model openai:gpt-5.2 --web --mcp servers.json

Models that make pictures, voices and transcripts are asked the same way; a type can be said behind the name:
  everturn chat --model openai:whisper-1 --attach talk.mp3 </dev/null
  echo "a red cat" | everturn chat --model mine@image-gen --base-url http://127.0.0.1:8000/v1 --save .
"""
CHAT_CODES = """\
exit codes:
  0    you left, or every line of the input was answered
  1    a line of the input was not answered, a tool asked where there was nobody, a file had no --save to go to, or
       the output could not be written
  2    there is no such model, no key for it, or no such file, folder, tool or rule; or what was asked for does not
       hold here, or is not trusted; nothing was sent
  130  Ctrl-C while lines of an input were answered, or twice during an answer
"""


PERMISSIONS_CODES = """\
exit codes of explain:  0 it is allowed, 3 it is asked about, 4 it is denied, 2 it cannot be said
exit codes of check:    0 every rule can decide something, 1 some cannot, 2 the rules cannot be read
"""
TOOLS = "a Python file or module with tools, or one of them; it is run; may be given again"
RULES = "rules for tools, in TOML: what is allowed, asked and denied"


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, with the next thing to do."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see `{self.prog} --help`\n")


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = _Parser(prog="everturn", description="A runtime for chat turns that call tools.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"everturn {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    about = "watch a turn: two tools at once, a question to you, Ctrl-C to cancel; offline"
    demo = commands.add_parser("demo", help=about, description=about[0].upper() + about[1:] + ".", allow_abbrev=False)
    demo.add_argument("--auto", action="store_true", help="answer the question by itself; needs no terminal")
    demo.add_argument("--fast", action="store_true", help="wait for nothing: no human pace, no slow tools")
    chat = commands.add_parser(
        "chat",
        help="talk to a model, line by line",
        description=CHAT,
        epilog=CHAT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    chat.add_argument("--model", metavar="NAME", help="such as openai:gpt-5.2; or EVERTURN_MODEL in the environment")
    chat.add_argument(
        "--base-url",
        metavar="URL",
        default="",
        help="a server of your own, such as http://127.0.0.1:8000/v1; its key is read from EVERTURN_API_KEY",
    )
    chat.add_argument("--system", metavar="TEXT", default="", help="what the model is told before the conversation")
    chat.add_argument(
        "--attach",
        metavar="FILE",
        action="append",
        default=[],
        help="let a file go with the first message, or alone where the input is empty; may be given again",
    )
    chat.add_argument(
        "--save", metavar="DIR", default="", help="write every file that a model makes there; none is written over"
    )
    chat.add_argument(
        "--store", metavar="FILE", default="", help="keep the conversation in a file such as talks.db, or a database"
    )
    chat.add_argument("--session", metavar="NAME", default="", help="the conversation in it to go on with, or to begin")
    _add_tools(chat)
    _add_reach(chat)
    _add_permissions(commands)
    commands.add_parser("mcp", help="serve an agent over MCP; list, trust and log in to MCP servers", add_help=False)
    doctor = _add_doctor(commands)
    add_server(commands)
    for command in (demo, chat, doctor):
        command.add_argument("--no-color", action="store_true", help="plain text; so does NO_COLOR in the environment")
    return parser


def _add_tools(chat: argparse.ArgumentParser) -> None:
    chat.add_argument("--tools", metavar="FILE[:NAME]", action="append", default=[], help=TOOLS)
    chat.add_argument("--permissions", metavar="FILE", default="", help=RULES)
    chat.add_argument(
        "--budget",
        metavar="LIMITS",
        default="",
        help="how much a turn may use, such as cost=1.00,calls=40,seconds=120; there are also steps and tokens",
    )
    chat.add_argument(
        "--review",
        choices=("auto", "on_error", "ask"),
        default="auto",
        help="read results before the model does: all of them (ask), or those of calls that failed (on_error)",
    )
    chat.add_argument(
        "--by-hand",
        metavar="PATTERN",
        action="append",
        default=[],
        help="do what these tools are called for yourself, and say what came of it; may be given again",
    )


def _add_reach(chat: argparse.ArgumentParser) -> None:
    reach = chat.add_argument_group("what it may reach")
    reach.add_argument(
        "--files",
        metavar="DIR[:ro]",
        default="",
        help="file tools beneath a folder; writing asks you, with the diff, and /revert takes it back; "
        "DIR:ro only reads. Such as --files ~/project",
    )
    reach.add_argument(
        "--virtual-files",
        action="store_true",
        help="file tools on files that the conversation keeps by itself; no disk is touched",
    )
    reach.add_argument(
        "--code", action="store_true", help="run_python and run_javascript, in sandboxes; pip install 'everturn[code]'"
    )
    reach.add_argument(
        "--shell",
        metavar="DIR[:rw]",
        nargs="?",
        const="",
        help="run_shell, in a sandbox without network that sees all of DIR, keys and .git in it included, or no folder of "
        "yours; DIR:rw may write there. You are asked about every command. "
        "Such as --shell ~/project; pip install 'everturn[shell]'",
    )
    reach.add_argument(
        "--web", action="store_true", help="fetch_url: pages of the public web, and none of your network"
    )
    reach.add_argument(
        "--mcp",
        metavar="FILE",
        action="append",
        default=[],
        help="tools of the MCP servers that a file names, such as servers.json; you are asked before one is started that "
        "you do not trust yet; may be given again; pip install 'everturn[mcp]'",
    )


def _add_doctor(commands: Any) -> argparse.ArgumentParser:
    about = "say what works on this machine, what does not, and how to mend it"
    doctor = commands.add_parser(
        "doctor",
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog="exit codes: 0 what is installed works, 1 something of it is broken",
        allow_abbrev=False,
    )
    doctor.add_argument("--json", action="store_true", help="as JSON, for programs")
    return doctor


def _add_permissions(commands: Any) -> None:
    about = "say what the rules for tools mean"
    permissions = commands.add_parser(
        "permissions",
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=PERMISSIONS_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    kinds = permissions.add_subparsers(dest="about", metavar="explain|check", required=True)
    about = "say whether a call would be allowed, asked about or denied, and which rule decides"
    explain = kinds.add_parser(
        "explain", help=about, description=about[0].upper() + about[1:] + ".", allow_abbrev=False
    )
    explain.add_argument("tool", metavar="TOOL", help="the name of a tool")
    explain.add_argument("arguments", metavar="ARGS", nargs="*", help="its arguments: as JSON, or as name=value")
    explain.add_argument("--tools", metavar="FILE[:NAME]", action="append", default=[], help=TOOLS)
    explain.add_argument("--permissions", metavar="FILE", default="", help=RULES)
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
    about = "list the rules of a file, those that can never decide, and what is wrong with it"
    check = kinds.add_parser("check", help=about, description=about[0].upper() + about[1:] + ".", allow_abbrev=False)
    check.add_argument("--permissions", metavar="FILE", required=True, help=RULES)
