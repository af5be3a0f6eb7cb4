"""Arguments of `everturn acp`."""

from __future__ import annotations

from typing import Any, Final

from everturn.cli.args.parser import add_command

ACP: Final = """\
Be the agent of an editor, over the Agent Client Protocol (ACP): Zed, JetBrains IDEs, Neovim and others start this command.
stdin and stdout carry the protocol and nothing else; messages go to stderr.

Sessions are those of the terminal: they belong to the folder that the editor has open, are saved, and continue in either.
An approval that is open when the editor or this process ends is asked again when the session is loaded.
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
    about = "be the agent of an editor (Agent Client Protocol)"
    acp = add_command(commands, "acp", about, ACP, examples=EXAMPLES, codes=CODES)
    acp.add_argument("-m", "--model", metavar="NAME", default="", help="model, such as openai:gpt-5.2")
    acp.add_argument(
        "--base-url", metavar="URL", default="", help="OpenAI-compatible server; its key is EVERTURN_API_KEY"
    )
    acp.add_argument("--mode", choices=("plan", "ask", "auto-edit"), default="", help="permission mode of new sessions")
    acp.add_argument(
        "--trust", action="store_true", help="trust the folders that the editor opens, with their AGENTS.md as it is"
    )
    acp.add_argument("--config", metavar="FILE", default="", help="configuration file (TOML)")
    acp.add_argument("--store", metavar="FILE", default="", help="store (default: the one of the terminal)")
