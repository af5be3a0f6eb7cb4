"""Arguments of the commands about models and keys: auth, models."""

from __future__ import annotations

from typing import Any, Final

from everturn.cli.args.parser import add_command

AUTH: Final = """\
Keep API keys of model vendors: in the keyring of the system where the Python package `keyring` is installed and usable,
else in keys.json beside the configuration, which only you can read. A key in the environment wins over a stored one.
"""
MODELS: Final = """\
List the models that could be used here: those of the configuration, of model servers on this machine, and of the vendors
whose keys are stored or in the environment. The price is for a million input and output tokens.
"""
DONE: Final = "exit codes: 0 done, 2 not"


def add_model_commands(commands: Any) -> None:
    """Add `everturn auth` and `everturn models` to the command line."""
    lines = (
        "everturn auth login",
        "everturn auth login anthropic",
        "everturn auth list",
        "everturn auth logout openai",
    )
    auth = add_command(commands, "auth", "keep the API keys of model vendors", AUTH, examples=lines, codes=DONE)
    kinds = auth.add_subparsers(dest="about", metavar="login|list|logout", required=True)
    login = add_command(
        kinds,
        "login",
        "store a key; it is asked for, or read from a pipe",
        examples=("everturn auth login", "echo $KEY | everturn auth login openai"),
        codes=DONE,
    )
    login.add_argument("vendor", metavar="VENDOR", nargs="?", default="", help="such as openai; else by the key's form")
    add_command(kinds, "list", "list the vendors with a key, and where it is", examples=lines[2:3], codes=DONE)
    logout = add_command(kinds, "logout", "remove a stored key", examples=lines[3:], codes=DONE)
    logout.add_argument("vendor", metavar="VENDOR", help="such as openai")
    models = add_command(
        commands,
        "models",
        "list the models that can be used, with price, window and tool support",
        MODELS,
        examples=("everturn models", "everturn models gemini flash", "everturn models --json"),
        codes=DONE,
    )
    models.add_argument("words", metavar="WORD", nargs="*", default=[], help="only names that have all of these words")
    models.add_argument("--json", action="store_true", help="print JSON")
    models.add_argument(
        "--config", metavar="FILE", default="", help="configuration file (TOML), instead of the default files"
    )
