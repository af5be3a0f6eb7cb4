"""Arguments of `everturn chat`."""

from __future__ import annotations

import argparse
from typing import Any, Final

from everturn.cli.args.parser import add_command

CHAT: Final = """\
Chat with a model in the full-screen UI: streaming answers, tool calls, approvals, sessions, branches and an inbox. F1 shows
all keys, Ctrl+Q quits. Running turns continue, and sessions are stored.

The agent, its tools and its rules come from the configuration (`everturn config show`); options add to them. The chat runs
its own server in this process, on this machine only; --connect uses another server.

With --plain, or if the full-screen UI cannot run (a pipe, TERM=dumb, no Textual), the chat works line by line. Line mode
uses the options and not the configuration, and keeps the conversation in memory unless you pass --store.
If stdin is not a terminal, each line is a message, without a prompt.
If stdout is not a terminal, it has the answers of the model and nothing else; the rest goes to stderr.

A model can call tools. Loading a tool file runs it. A tool runs without approval unless it is declared with
approval="ask" (or "always", or "deny"), or a rule says so: deny overrides ask, and ask overrides allow. An approval shows
exactly what would run. Without a terminal for input and output nobody can approve, so such calls are denied.
"""
EXAMPLES: Final = (
    "everturn chat                                             the configured agent, or an offline demo",
    "everturn chat --model openai:gpt-5.2 --files ~/project    reads; writes ask with a diff",
    "everturn chat --model openai:gpt-5.2 --files ~/project:ro --code --shell ~/project",
    "everturn chat --model openai:gpt-5.2 --tools mytools.py --permissions everturn.toml --budget cost=1.00,calls=40",
    "everturn chat --model llama3 --base-url http://127.0.0.1:11434/v1",
    "everturn chat --connect http://127.0.0.1:8000             with EVERTURN_TOKEN, or the token file of `everturn serve`",
    "everturn chat --model openai:whisper-1 --attach talk.mp3 </dev/null",
    'echo "a red cat" | everturn chat --model mine@image-gen --base-url http://127.0.0.1:8000/v1 --save .',
)
CODES: Final = """\
exit codes:
  0    you quit, or every line of the input was answered
  1    a line of the input was not answered, a call needed approval without a terminal, a file had no --save, or
       the output could not be written
  2    no such model, API key, file, folder, tool or rule; or it is not supported here, or not trusted; nothing was
       sent
  130  Ctrl-C while lines of an input were answered, or twice during an answer
  143  ended by SIGTERM; the terminal was restored
"""
TOOLS: Final = "Python file or module with tools, or one tool in it; the file is executed; repeatable"
RULES: Final = "permission rules (TOML): what to allow, ask for and deny"
NO_COLOR: Final = "no colors; or set NO_COLOR"


def add_chat(commands: Any) -> argparse.ArgumentParser:
    """Add `everturn chat` to the command line."""
    about = "chat with a model, full screen or line by line"
    chat = add_command(commands, "chat", about, CHAT, examples=EXAMPLES, codes=CODES)
    add_screen_options(chat)
    add_folder_options(chat)
    chat.add_argument("-m", "--model", metavar="NAME", help="model, such as openai:gpt-5.2; or EVERTURN_MODEL")
    chat.add_argument(
        "--base-url",
        metavar="URL",
        default="",
        help="OpenAI-compatible server, such as http://127.0.0.1:8000/v1; its key is EVERTURN_API_KEY",
    )
    chat.add_argument("--system", metavar="TEXT", default="", help="system prompt")
    chat.add_argument(
        "--attach",
        metavar="FILE",
        action="append",
        default=[],
        help="attach a file to the first message, or send it alone if the input is empty; repeatable",
    )
    chat.add_argument(
        "--save",
        metavar="DIR",
        default="",
        help="save files that the model creates in this folder (line mode); never overwrites",
    )
    chat.add_argument(
        "--store", metavar="FILE", default="", help="store the conversation in a file such as talks.db, or a database"
    )
    chat.add_argument("--session", metavar="NAME", default="", help="conversation to continue or start")
    add_tool_options(chat)
    add_access_options(chat)
    chat.add_argument("--no-color", action="store_true", help=NO_COLOR)
    return chat


def add_folder_options(chat: argparse.ArgumentParser) -> None:
    """Add the options of the assistant in a folder, which `everturn` without a command takes as well."""
    here = chat.add_argument_group("in this folder")
    here.add_argument(
        "--here",
        action="store_true",
        help="files and a shell of the current project, with file snapshots; as `everturn` without a command",
    )
    here.add_argument(
        "-c", "--continue", dest="goes_on", action="store_true", help="continue this folder's last session"
    )
    here.add_argument(
        "--resume", metavar="ID", nargs="?", const="pick", default="", help="continue a session; without ID, choose one"
    )
    here.add_argument(
        "--mode",
        choices=("plan", "ask", "auto-edit"),
        default="",
        help="plan only reads, ask asks before it changes anything, auto-edit edits files; Shift+Tab changes it",
    )
    here.add_argument(
        "--trust", action="store_true", help="trust this folder and its AGENTS.md as they are now, without a question"
    )


def add_screen_options(chat: argparse.ArgumentParser) -> None:
    """Add the options for the screen, and for the server that the chat talks to."""
    chat.add_argument("--plain", action="store_true", help="line mode instead of the full screen")
    chat.add_argument("--connect", metavar="URL", default="", help="use a running server")
    chat.add_argument(
        "--config", metavar="FILE", default="", help="configuration file (TOML), instead of the default files"
    )
    chat.add_argument(
        "--language", choices=("en", "zh"), default="", help="language of the UI (default: from the locale)"
    )
    chat.add_argument("--theme", metavar="NAME", default="", help="theme of the UI; Ctrl+P lists them")


def add_tool_options(chat: argparse.ArgumentParser) -> None:
    """Add the options for tools, their rules and budgets."""
    chat.add_argument("--tools", metavar="FILE[:NAME]", action="append", default=[], help=TOOLS)
    chat.add_argument("--permissions", metavar="FILE", default="", help=RULES)
    chat.add_argument(
        "--budget",
        metavar="LIMITS",
        default="",
        help="limits of a turn, such as cost=1.00,calls=40,seconds=120; also steps and tokens",
    )
    chat.add_argument(
        "--review",
        choices=("never", "on_error", "always"),
        default="never",
        help="review tool results before the model reads them: all, or only failed calls (on_error)",
    )
    chat.add_argument(
        "--manual",
        metavar="PATTERN",
        action="append",
        default=[],
        help="do the calls of these tools yourself and enter the result; repeatable",
    )


def add_access_options(chat: argparse.ArgumentParser) -> None:
    """Add the options for what the built-in tools may access: files, code, shell, web and MCP servers."""
    reach = chat.add_argument_group("tools")
    reach.add_argument(
        "--files",
        metavar="DIR[:ro]",
        default="",
        help="file tools for a folder; a write shows its diff and asks first, and /revert undoes it; "
        "DIR:ro is read-only. Example: --files ~/project",
    )
    reach.add_argument(
        "--virtual-files",
        action="store_true",
        help="file tools for files that are stored in the conversation; the disk is not touched",
    )
    reach.add_argument(
        "--code", action="store_true", help="run_python and run_javascript, in sandboxes; pip install 'everturn[code]'"
    )
    reach.add_argument(
        "--shell",
        metavar="DIR[:rw]",
        nargs="?",
        const="",
        help="run_shell, in a sandbox without network. It can read all of DIR, including keys and .git, or no folder "
        "without DIR; DIR:rw can also write. Every command asks first. "
        "Example: --shell ~/project; pip install 'everturn[shell]'",
    )
    reach.add_argument(
        "--web", action="store_true", help="fetch_url: pages from the public web; your own network is blocked"
    )
    reach.add_argument(
        "--mcp",
        metavar="FILE",
        action="append",
        default=[],
        help="tools of the MCP servers in a file such as servers.json; a server that you do not trust yet asks before "
        "it starts; repeatable; pip install 'everturn[mcp]'",
    )
