"""`everturn completion`: prints the shell completion script, made with shtab."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from typing import Any, Final

from everturn.cli.args.parser import subcommands
from everturn.errors import ConfigError

FILES: Final = ("FILE", "FILE[:NAME]")
FOLDERS: Final = ("DIR", "DIR[:ro]", "DIR[:rw]")
NOT_HERE: Final = "shtab is not installed, which knows the shells; `pip install 'everturn[tui]'`"


def completion(options: argparse.Namespace) -> int:
    """Print the completion script of a shell.

    Raises:
        ConfigError: shtab is not installed, or does not support this shell.
    """
    if find_spec("shtab") is None:
        raise ConfigError(NOT_HERE)
    import shtab

    if options.shell not in shtab.SUPPORTED_SHELLS:
        known = ", ".join(shtab.SUPPORTED_SHELLS)
        raise ConfigError(
            f"the installed shtab does not support {options.shell}; it supports {known}; `pip install --upgrade shtab`"
        )
    from everturn.cli.args.commands import make_parser

    parser = make_parser()
    _mark_paths(parser, {"file": shtab.FILE, "folder": shtab.DIRECTORY})
    print(shtab.complete(parser, options.shell))
    return 0


def _mark_paths(parser: argparse.ArgumentParser, kinds: dict[str, Any]) -> None:
    """Mark the options that take files and folders, so that the shell completes paths for them."""
    for action in parser._actions:
        marked: Any = action
        if action.metavar in FILES:
            marked.complete = kinds["file"]
        elif action.metavar in FOLDERS:
            marked.complete = kinds["folder"]
    for subparser in subcommands(parser).values():
        _mark_paths(subparser, kinds)
