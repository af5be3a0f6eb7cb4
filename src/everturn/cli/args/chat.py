"""Arguments of `everturn chat`."""

from __future__ import annotations

import argparse
from typing import Any, Final

from everturn.cli.args.parser import add_command

CHAT: Final = """\
Talk to a model, on the whole screen: answers while they come, what tools do, questions before they do it, sessions,
branches, an inbox. F1 there shows all keys, Ctrl+Q leaves; what was sent goes on, and sessions are kept.

The agent, its tools and its rules are those of the configuration (`everturn config show`); options add to them. A server
for it runs in this process, on this machine only, or --connect names another one.

With --plain, or where the screen cannot be drawn on (a pipe, TERM=dumb, no Textual), it goes line by line. Then it is the
options that count and not the configuration, and the conversation is kept in memory unless there is a --store.
Where the input is not a terminal, each of its lines is answered, without a prompt.
Where the output is not a terminal, it is what the model says and nothing else; the rest goes to stderr.

A model may call tools. Loading a file of them runs it. A tool runs without a question unless it says otherwise with
approval="ask" (or "always", or "deny"), or a rule does: deny beats ask, and ask beats allow. Whoever is asked is shown
exactly what would run. Where input and output are not both a terminal there is nobody to ask: what asks is denied.
"""
EXAMPLES: Final = (
    "everturn chat                                             the configured agent, or an offline demo",
    "everturn chat --model openai:gpt-5.2 --files ~/project    read, and write once you have seen the diff",
    "everturn chat --model openai:gpt-5.2 --files ~/project:ro --code --shell ~/project",
    "everturn chat --model openai:gpt-5.2 --tools mytools.py --permissions everturn.toml --budget cost=1.00,calls=40",
    "everturn chat --model llama3 --base-url http://127.0.0.1:11434/v1",
    "everturn chat --connect http://127.0.0.1:8000             with EVERTURN_TOKEN, or the token file of `everturn serve`",
    "everturn chat --model openai:whisper-1 --attach talk.mp3 </dev/null",
    'echo "a red cat" | everturn chat --model mine@image-gen --base-url http://127.0.0.1:8000/v1 --save .',
)
CODES: Final = """\
exit codes:
  0    you left, or every line of the input was answered
  1    a line of the input was not answered, a tool asked where there was nobody, a file had no --save to go to, or
       the output could not be written
  2    there is no such model, no key for it, or no such file, folder, tool or rule; or what was asked for does not
       hold here, or is not trusted; nothing was sent
  130  Ctrl-C while lines of an input were answered, or twice during an answer
  143  it was told to end (SIGTERM); the terminal is as it was before
"""
TOOLS: Final = "a Python file or module with tools, or one of them; it is run; may be given again"
RULES: Final = "rules for tools, in TOML: what is allowed, asked and denied"
NO_COLOR: Final = "plain text; so does NO_COLOR in the environment"


def add_chat(commands: Any) -> argparse.ArgumentParser:
    """Add `everturn chat` to the command line."""
    about = "talk to a model: on the whole screen, or line by line"
    chat = add_command(commands, "chat", about, CHAT, examples=EXAMPLES, codes=CODES)
    add_screen_options(chat)
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
        "--save",
        metavar="DIR",
        default="",
        help="write every file that a model makes there, line by line; none is written over",
    )
    chat.add_argument(
        "--store", metavar="FILE", default="", help="keep the conversation in a file such as talks.db, or a database"
    )
    chat.add_argument("--session", metavar="NAME", default="", help="the conversation in it to go on with, or to begin")
    add_tool_options(chat)
    add_access_options(chat)
    chat.add_argument("--no-color", action="store_true", help=NO_COLOR)
    return chat


def add_screen_options(chat: argparse.ArgumentParser) -> None:
    """Add the options for the screen, and for the server that the chat talks to."""
    chat.add_argument("--plain", action="store_true", help="line by line, into the scrollback")
    chat.add_argument("--connect", metavar="URL", default="", help="talk to a server that runs, there or here")
    chat.add_argument("--config", metavar="FILE", default="", help="a configuration, instead of the usual ones")
    chat.add_argument("--language", choices=("en", "zh"), default="", help="of the screen; else that of the locale")
    chat.add_argument("--theme", metavar="NAME", default="", help="of the screen; Ctrl+P there lists them")


def add_tool_options(chat: argparse.ArgumentParser) -> None:
    """Add the options for tools, their rules and budgets."""
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
        choices=("never", "on_error", "always"),
        default="never",
        help="read results before the model does: all of them (always), or those of calls that failed (on_error)",
    )
    chat.add_argument(
        "--manual",
        metavar="PATTERN",
        action="append",
        default=[],
        help="do what these tools are called for yourself, and say what came of it; may be given again",
    )


def add_access_options(chat: argparse.ArgumentParser) -> None:
    """Add the options for what the built-in tools may access: files, code, shell, web and MCP servers."""
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
