"""`everturn completion`: the words of the command line → what a shell completes, printed."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from typing import Any, Final

from everturn.cli.parsing import subcommands
from everturn.errors import ConfigError

FILES: Final = ("FILE", "FILE[:NAME]")
FOLDERS: Final = ("DIR", "DIR[:ro]", "DIR[:rw]")
NOT_HERE: Final = "shtab is not installed, which knows the shells; `pip install 'everturn[tui]'`"


def completion(options: argparse.Namespace) -> int:
    """Print it.

    Raises:
        ConfigError: what knows the shells is not installed, or does not know this one.
    """
    if find_spec("shtab") is None:
        raise ConfigError(NOT_HERE)
    import shtab

    if options.shell not in shtab.SUPPORTED_SHELLS:
        known = ", ".join(shtab.SUPPORTED_SHELLS)
        raise ConfigError(f"this shtab does not know {options.shell}; it knows {known}; `pip install --upgrade shtab`")
    from everturn.cli.words import make_parser

    parser = make_parser()
    _mark(parser, {"file": shtab.FILE, "folder": shtab.DIRECTORY})
    print(shtab.complete(parser, options.shell))
    return 0


def _mark(parser: argparse.ArgumentParser, kinds: dict[str, Any]) -> None:
    """Say which options take files and folders, so that a shell completes those as well."""
    for action in parser._actions:
        one: Any = action
        if action.metavar in FILES:
            one.complete = kinds["file"]
        elif action.metavar in FOLDERS:
            one.complete = kinds["folder"]
    for below in subcommands(parser).values():
        _mark(below, kinds)
