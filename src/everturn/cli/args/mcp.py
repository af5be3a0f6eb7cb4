"""Arguments of `everturn mcp`."""

from __future__ import annotations

import argparse
from typing import Any, Final

from everturn.cli.args.parser import Parser, add_command, make_epilog, parse_port

ABOUT: Final = """\
Serve an agent over MCP, or look after the MCP servers that a file names.

Without a command it serves. stdout carries the protocol and nothing else; what there is to say goes to stderr. What asks
a person is put to the client; where that cannot ask anybody it is denied, and a rule can allow it. With --http it
listens on this machine only, for clients that have the token in EVERTURN_MCP_TOKEN; without one a new one is made, and
said on stderr.
"""
EXAMPLES: Final = {
    "serve": "everturn mcp serve --model openai:gpt-5.2 --tools mytools.py --store talks.db",
    "list": "everturn mcp list servers.json",
    "trust": "everturn mcp trust servers.json NAME",
    "login": "everturn mcp login servers.json NAME",
}
CODES: Final = """\
exit codes:
  0  all is well, and as it was trusted
  1  of list: a server is not well
  2  there is no such file, server or model
  3  of list: a server is not trusted, or has changed since it was
  4  of trust: you did not agree
"""
SERVE: Final = {
    "--model": ("NAME", "such as openai:gpt-5.2; or EVERTURN_MODEL in the environment"),
    "--base-url": ("URL", "a server of your own; its key is read from EVERTURN_API_KEY"),
    "--system": ("TEXT", "what the model is told before every task"),
    "--store": ("FILE", "keep sessions in a file such as talks.db: what waits for an answer outlives the server"),
    "--permissions": ("FILE", "rules for tools, in TOML"),
    "--budget": ("LIMITS", "how much a task may use, such as cost=1.00,calls=40"),
    "--name": ("NAME", "what clients are told this is; everturn"),
}
MANAGE: Final = {
    "list": "say how the servers of a file are, whether they are trusted, and what tools they have",
    "trust": "show what a server would run and what has changed, and trust it as it is now",
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
    serve.add_argument("--tools", metavar="FILE[:NAME]", action="append", default=[], help="tools; may be given again")
    serve.add_argument(
        "--http", metavar="PORT", type=parse_port, help="listen on this machine, instead of stdio; 0: any port"
    )
    for name, about in MANAGE.items():
        command = add_command(commands, name, about, examples=(EXAMPLES[name],))
        command.add_argument("file", metavar="FILE", help="a list of MCP servers, in JSON or TOML")
        if name != "list":
            command.add_argument("server", metavar="NAME", help="one of them")
        command.add_argument("--trust-file", metavar="FILE", default="", help="where trust is kept")
        if name == "trust":
            command.add_argument("--yes", action="store_true", help="do not ask")
            command.add_argument("--forget", action="store_true", help="trust it no more")
        if name == "login":
            command.add_argument("--open", action="store_true", help="open the browser")
