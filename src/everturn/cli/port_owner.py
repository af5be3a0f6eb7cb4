"""Port owner: the user who listens on a local port, according to the kernel."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from everturn.errors import ConfigError

TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
TCP_LISTEN: Final = "0A"  # TCP_LISTEN, as the kernel numbers the states of a socket


def check_port_owner(url: str) -> None:
    """Check that no other user of this machine listens at a URL: any user can take a port that a server has left.

    Raises:
        ConfigError: another user listens there, and would receive a token with full access.
    """
    try:
        port = urlsplit(url).port or (443 if url.startswith("https:") else 80)
    except ValueError:
        return  # not an address; connecting reports that
    for listening in listening_sockets(port):
        if listening.uid not in (0, os.getuid()):
            raise ConfigError(
                f"another user of this machine (uid {listening.uid}) listens at {url}, so your token is not sent "
                "there; name your own server with --connect, or set EVERTURN_TOKEN"
            )


class ListeningSocket(NamedTuple):
    """A socket that listens: the user it belongs to, and its inode."""

    uid: int
    inode: str


def listening_sockets(port: int) -> Iterator[ListeningSocket]:
    """Yield the sockets that listen on a port, on systems that have /proc/net."""
    for table in TABLES:
        with suppress(OSError), open(table, encoding="ascii") as rows:
            for row in rows:
                # sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …
                cells = row.split()
                if len(cells) > 9 and cells[3] == TCP_LISTEN and int(cells[1].rpartition(":")[2], 16) == port:
                    yield ListeningSocket(int(cells[7]), cells[9])
