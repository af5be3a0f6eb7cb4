"""`--connect URL` → the token that is shown at that door."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from everturn.access.token_file import token_in
from everturn.cli.listener import check_listener
from everturn.cli.people import store_meant
from everturn.cli.serving import config_file
from everturn.config.building import token_file
from everturn.config.checking import is_loopback
from everturn.config.loading import load
from everturn.errors import ConfigError

TOKEN: Final = "EVERTURN_TOKEN"


def token_for(options: argparse.Namespace) -> str:
    """What to show at the server that is named: EVERTURN_TOKEN or, to one on this machine, its operator's own token.

    Raises:
        ConfigError: there is neither; or the file for it, or who listens there, is not to be trusted.
    """
    if token := os.environ.get(TOKEN, "").strip():
        return token
    url = str(options.connect)
    # Another machine is never shown the token of this one.
    if is_loopback(_host(url)):
        check_listener(url)
        file = token_file(load(config_file(options)), store_meant(options), os.environ)
        with suppress(OSError):
            return read_token(file)
    raise ConfigError(f"which token does {url} know? Set {TOKEN} to it; `everturn keys add USER` makes one there")


def read_token(file: Path) -> str:
    """The token in a file that was made before.

    Raises:
        ConfigError: others can read it, or it holds no token.
        FileNotFoundError: there is none; looking does not make one.
    """
    if not file.is_file():
        raise FileNotFoundError(file)
    return token_in(file, "")


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
