"""`--model` of a command: guesses the vendor of a bare name, and says so."""

from __future__ import annotations

import argparse
import sys

from everturn.cli.config_options import config_file
from everturn.config.key_store import use_stored_keys
from everturn.config.load import load_config
from everturn.terminal.text.screen import escape_unprintable


def resolve_model_option(options: argparse.Namespace) -> None:
    """Let models find stored keys, and replace a bare model name in the options by its whole name.

    Raises:
        ConfigError: the configuration cannot be read.
    """
    keys = use_stored_keys()
    name = options.model or ""
    if not name or options.base_url or getattr(options, "connect", ""):
        return
    from everturn.config.available_models import guess_model  # only now: it is not needed for most starts

    whole = guess_model(name, load_config(config_file(options)), keys)
    if whole != name:
        print(f"everturn: --model {escape_unprintable(name)}: taken as {escape_unprintable(whole)}", file=sys.stderr)
        options.model = whole
