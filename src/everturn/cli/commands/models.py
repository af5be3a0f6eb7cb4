"""`everturn models`: lists the models that can be used, with price, window and tool support."""

from __future__ import annotations

import argparse
import asyncio
import sys

import msgspec

from everturn.cli.config_options import config_file
from everturn.cli.output import show_slow_operation
from everturn.config.available_models import AvailableModel, describe_row, search_models, survey_models
from everturn.config.key_store import use_stored_keys
from everturn.config.load import load_config
from everturn.terminal.text.screen import escape_unprintable

HEADINGS = {"name": "MODEL", "window": "WINDOW", "price": "PRICE IN/OUT", "tools": "TOOLS", "source": "FROM"}
NONE = "only the offline demo can be used: `everturn auth login` stores a key, or start a model server such as Ollama"


def models(options: argparse.Namespace) -> int:
    """List the models, and return the exit code.

    Raises:
        ConfigError: the configuration cannot be read.
    """
    loaded, keys = load_config(config_file(options)), use_stored_keys()
    with show_slow_operation("asking vendors and local servers for their models"):
        survey = asyncio.run(survey_models(loaded, keys))
    found = search_models(survey.models, " ".join(options.words))
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        _print_table(found)
    for problem in survey.problems:
        print(f"everturn: {escape_unprintable(problem)}", file=sys.stderr)
    if len(survey.models) == 1:
        print(f"everturn: {NONE}", file=sys.stderr)
    elif not found:
        print(f"everturn: no model has {' '.join(options.words)} in its name", file=sys.stderr)
    return 0 if found else 2


def _print_table(found: list[AvailableModel]) -> None:
    rows = [HEADINGS, *map(describe_row, found)]
    widths = {name: max(len(row[name]) for row in rows) for name in HEADINGS}
    for row in rows if found else ():
        print(escape_unprintable("  ".join(f"{row[name]:<{widths[name]}}" for name in HEADINGS).rstrip()))
