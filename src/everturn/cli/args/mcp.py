"""Arguments of `everturn mcp`."""

from __future__ import annotations

import argparse
from typing import Any, Final

from everturn.cli.args.parser import Parser, add_command, make_epilog, parse_port

ABOUT: Final = """\
Serve an agent over MCP, or manage the MCP servers that a file lists.

`serve` writes only the protocol to stdout; messages go to stderr. A call that needs approval is sent to the client as a
question; if the client cannot ask, the call is denied, unless a rule allows it. With --http it listens on this machine
only, for clients with the token in EVERTURN_MCP_TOKEN; without that variable a token is made and printed on stderr.
"""
EXAMPLES: Final = {
    "serve": "everturn mcp serve --model openai:gpt-5.2 --tools mytools.py --store talks.db",
    "list": "everturn mcp list servers.json",
    "trust": "everturn mcp trust servers.json NAME",
    "login": "everturn mcp login servers.json NAME",
}
CODES: Final = """\
exit codes:
  0  success
  1  list: a server is not working
  2  no such file, server or model
  3  list: a server is not trusted, or has changed since it was trusted
  4  trust: you declined
"""
SERVE: Final = {
    "--model": ("NAME", "model, such as openai:gpt-5.2; or EVERTURN_MODEL"),
    "--base-url": ("URL", "OpenAI-compatible server; its key is EVERTURN_API_KEY"),
    "--system": ("TEXT", "system prompt"),
    "--store": ("FILE", "store sessions in a file such as talks.db; pending approvals survive a restart"),
    "--permissions": ("FILE", "permission rules (TOML)"),
    "--budget": ("LIMITS", "limits of a task, such as cost=1.00,calls=40"),
    "--name": ("NAME", "server name that clients see (default: everturn)"),
}
MANAGE: Final = {
    "list": "list the servers of a file: state, trust and tools",
    "trust": "show what a server runs and what has changed, and trust it",
    "login": "log in to a server",
}


def add_mcp(commands: Any) -> None:
    """Add `everturn mcp` to the command line, for the help and for shell completion."""
    about = "serve an agent over MCP; list, trust and log in to MCP servers"
    _fill(add_command(commands, "mcp", about, ABOUT, examples=tuple(EXAMPLES.values()), codes=CODES), "about")


def mcp_parser() -> argparse.ArgumentParser:
    """Build a parser for the arguments after `everturn mcp` alone."""
    parser = Parser(prog="everturn mcp", description=ABOUT, epilog=make_epilog(tuple(EXAMPLES.values()), CODES))
    _fill(parser, "command")
    return parser


def _fill(parser: argparse.ArgumentParser, dest: str) -> None:
    commands = parser.add_subparsers(dest=dest, metavar="|".join(EXAMPLES), required=True)
    serve = add_command(commands, "serve", "serve an agent and its tools", examples=(EXAMPLES["serve"],))
    for option, (metavar, about) in SERVE.items():
        serve.add_argument(option, metavar=metavar, default="", help=about)
    serve.add_argument(
        "--tools", metavar="FILE[:NAME]", action="append", default=[], help="Python file with tools; repeatable"
    )
    serve.add_argument(
        "--http",
        metavar="PORT",
        type=parse_port,
        help="listen on a port of this machine instead of stdio; 0: any free port",
    )
    for name, about in MANAGE.items():
        command = add_command(commands, name, about, examples=(EXAMPLES[name],))
        command.add_argument("file", metavar="FILE", help="file with MCP servers (JSON or TOML)")
        if name != "list":
            command.add_argument("server", metavar="NAME", help="name of the server")
        command.add_argument("--trust-file", metavar="FILE", default="", help="file that stores the trust")
        if name == "trust":
            command.add_argument("--yes", action="store_true", help="do not ask")
            command.add_argument("--forget", action="store_true", help="remove the trust")
        if name == "login":
            command.add_argument("--open", action="store_true", help="open the browser")
