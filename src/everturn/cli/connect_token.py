"""Token for `--connect URL`: from EVERTURN_TOKEN or, for a server on this machine, from the operator's token file."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from everturn.access.auth.token_file import load_or_create_token
from everturn.cli.config_options import config_file, resolve_store
from everturn.cli.port_owner import check_port_owner
from everturn.config.build import token_file
from everturn.config.load import load_config
from everturn.core.rules.urls import is_loopback
from everturn.errors import ConfigError

TOKEN: Final = "EVERTURN_TOKEN"


def load_connect_token(options: argparse.Namespace) -> str:
    """Return the token for the server that is named: EVERTURN_TOKEN or, for a server on this machine, its operator
    token.

    Raises:
        ConfigError: there is neither; or the token file is readable by others; or another user listens at the address.
    """
    if token := os.environ.get(TOKEN, "").strip():
        return token
    url = str(options.connect)
    # The token of this machine is never sent to another machine.
    if is_loopback(_host(url)):
        check_port_owner(url)
        file = token_file(load_config(config_file(options)), resolve_store(options), os.environ)
        with suppress(OSError):
            return read_token(file)
    raise ConfigError(f"{url} needs a token: set {TOKEN}; on the server, `everturn keys add USER` creates one")


def read_token(file: Path) -> str:
    """Read the token from an existing file.

    Raises:
        ConfigError: others can read the file, or it holds no token.
        FileNotFoundError: the file does not exist; reading does not create it.
    """
    if not file.is_file():
        raise FileNotFoundError(file)
    return load_or_create_token(file, "")


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
