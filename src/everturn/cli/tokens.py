"""`--connect URL` → the token that is shown at that door."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from everturn.access.token_file import token_in
from everturn.cli.people import store_meant
from everturn.cli.serving import config_file
from everturn.config.building import token_file
from everturn.config.checking import is_loopback
from everturn.config.loading import load
from everturn.errors import ConfigError

TOKEN: Final = "EVERTURN_TOKEN"
TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
LISTENS: Final = "0A"  # as the kernel numbers what a socket does


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


def check_listener(url: str) -> None:
    """See that no other user of this machine listens there: a port that a server has left is for anybody to take.

    Raises:
        ConfigError: somebody else does, and would be shown a token that opens everything.
    """
    try:
        port = urlsplit(url).port or (443 if url.startswith("https:") else 80)
    except ValueError:
        return  # which is no address, and is told by whoever connects
    for uid in _listening(port):
        if uid not in (0, os.getuid()):
            raise ConfigError(
                f"another user of this machine (uid {uid}) listens at {url}, so it is not shown your token; say --connect "
                f"with the address of your own server, or set {TOKEN}"
            )


def _listening(port: int) -> Iterator[int]:
    """The users who listen on a port, where the system says so."""
    for table in TABLES:
        with suppress(OSError), open(table, encoding="ascii") as rows:
            for row in rows:
                # sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid …
                cells = row.split()
                if len(cells) > 7 and cells[3] == LISTENS and int(cells[1].rpartition(":")[2], 16) == port:
                    yield int(cells[7])


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
