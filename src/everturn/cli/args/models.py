"""Arguments of the commands about models and keys: auth, models."""

from __future__ import annotations

from typing import Any, Final

from everturn.cli.args.parser import add_command

AUTH: Final = """\
Store the API keys of model vendors. A key is stored in the keyring of the system if the Python package `keyring` is installed
and works, and otherwise in keys.json beside the configuration, which only you can read. A key in the environment overrides a
stored key.
"""
MODELS: Final = """\
List the models that you can use here: models of the configuration, of model servers on this machine, and of vendors whose
API key is stored or in the environment. Prices are in US dollars for a million input and output tokens.
"""
DONE: Final = "exit codes: 0 done, 2 error; stderr has the reason"


def add_model_commands(commands: Any) -> None:
    """Add `everturn auth` and `everturn models` to the command line."""
    lines = (
        "everturn auth login",
        "everturn auth login anthropic",
        "everturn auth list",
        "everturn auth logout openai",
    )
    auth = add_command(commands, "auth", "store the API keys of model vendors", AUTH, examples=lines, codes=DONE)
    kinds = auth.add_subparsers(dest="about", metavar="login|list|logout", required=True)
    login = add_command(
        kinds,
        "login",
        "store an API key; you are asked for it, or it is read from stdin",
        examples=("everturn auth login", "echo $KEY | everturn auth login openai"),
        codes=DONE,
    )
    login.add_argument(
        "vendor", metavar="VENDOR", nargs="?", default="", help="vendor, such as openai (default: guessed from the key)"
    )
    add_command(
        kinds, "list", "list the vendors with an API key, and where each key is stored", examples=lines[2:3], codes=DONE
    )
    logout = add_command(kinds, "logout", "remove a stored API key", examples=lines[3:], codes=DONE)
    logout.add_argument("vendor", metavar="VENDOR", help="vendor, such as openai")
    models = add_command(
        commands,
        "models",
        "list the models that you can use, with price, context window and tool support",
        MODELS,
        examples=("everturn models", "everturn models gemini flash", "everturn models --json"),
        codes=DONE,
    )
    models.add_argument(
        "words", metavar="WORD", nargs="*", default=[], help="list only models whose name contains all these words"
    )
    models.add_argument("--json", action="store_true", help="print JSON")
    models.add_argument(
        "--config", metavar="FILE", default="", help="configuration file (TOML), instead of the default files"
    )
