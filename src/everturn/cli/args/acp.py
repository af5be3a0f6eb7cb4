"""Arguments of `everturn acp`."""

from __future__ import annotations

from typing import Any, Final

from everturn.cli.args.parser import add_command

ACP: Final = """\
Run as an agent inside an editor, over the Agent Client Protocol (ACP). Zed, JetBrains IDEs, Neovim and other editors start
this command. stdin and stdout carry only the protocol; messages go to stderr.

The editor and the terminal share their sessions: a session is saved, belongs to the folder that is open, and can be continued
in both. If an approval is pending when the editor or this process ends, you are asked again when the session is loaded.
"""
EXAMPLES: Final = (
    "everturn acp",
    "everturn acp --model openai:gpt-5.2 --mode plan",
)
CODES: Final = """\
exit codes:
  0    the editor closed the connection
  2    no such model, file or store; or an extra is missing; stderr has the reason
  130  Ctrl-C
"""


def add_acp(commands: Any) -> None:
    """Add `everturn acp` to the command line."""
    about = "run as an agent inside an editor (Agent Client Protocol)"
    acp = add_command(commands, "acp", about, ACP, examples=EXAMPLES, codes=CODES)
    acp.add_argument(
        "-m", "--model", metavar="NAME", default="", help="model, such as openai:gpt-5.2 (default: the configured one)"
    )
    acp.add_argument(
        "--base-url", metavar="URL", default="", help="OpenAI-compatible server; its key is EVERTURN_API_KEY"
    )
    acp.add_argument(
        "--mode",
        choices=("plan", "ask", "auto-edit"),
        default="",
        help="permission mode of new sessions (default: ask)",
    )
    acp.add_argument(
        "--trust", action="store_true", help="trust the folders that the editor opens, with their AGENTS.md as it is"
    )
    acp.add_argument(
        "--config", metavar="FILE", default="", help="configuration file (TOML), instead of the default files"
    )
    acp.add_argument(
        "--store", metavar="FILE", default="", help="store: a file such as talks.db (default: the one of the terminal)"
    )
