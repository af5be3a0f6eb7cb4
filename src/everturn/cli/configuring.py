"""`everturn config check|show`: what is wrong in the configuration, or what is in it and from where."""

from __future__ import annotations

import argparse
import os
import sys

from everturn.cli.serving import config_file
from everturn.config.checking import missing
from everturn.config.loading import load, shown
from everturn.config.models import usual_model
from everturn.terminal.screen import printable


def config(options: argparse.Namespace) -> int:
    """Check it, or show it.

    Raises:
        ConfigError: something makes no sense; the text has a line for each thing that does not.
    """
    loaded = load(config_file(options))
    if options.about == "show":
        for line in shown(loaded):
            print(printable(line))
        return 0
    for line in missing(loaded.config, os.environ):  # it may be there where the server runs
        print(f"note: {printable(line)}", file=sys.stderr)
    agents = printable(", ".join(loaded.config.agents)) or f"assistant ({usual_model(os.environ)})"
    print(f"{', '.join(loaded.files) or 'no file'}: this makes sense; agents: {agents}")
    return 0
