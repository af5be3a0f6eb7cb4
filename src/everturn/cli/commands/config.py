"""`everturn config`: validates the configuration, shows each value and where it comes from, or changes it."""

from __future__ import annotations

import argparse
import os
import sys

from everturn.cli.commands.config_change import change_config
from everturn.cli.config_options import config_file
from everturn.config.check import unresolved_references
from everturn.config.load import describe_config, load_config
from everturn.config.models import default_model
from everturn.terminal.text.screen import escape_unprintable


def config(options: argparse.Namespace) -> int:
    """Check the configuration, or show it.

    Raises:
        ConfigError: the configuration is invalid; the text has one line per problem.
    """
    if options.about in ("path", "edit", "set"):
        return change_config(options)
    loaded = load_config(config_file(options))
    if options.about == "show":
        for line in describe_config(loaded):
            print(escape_unprintable(line))
        return 0
    for line in unresolved_references(loaded.config, os.environ):  # not an error: it may be set where the server runs
        print(f"note: {escape_unprintable(line)}", file=sys.stderr)
    agents = escape_unprintable(", ".join(loaded.config.agents)) or f"assistant ({default_model(os.environ)})"
    print(f"{', '.join(loaded.files) or 'no file'}: the configuration is valid; agents: {agents}")
    return 0
