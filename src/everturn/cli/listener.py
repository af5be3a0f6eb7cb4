"""Who listens on a port of this machine: its user, as the kernel says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from everturn.errors import ConfigError

TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
LISTENS: Final = "0A"  # as the kernel numbers what a socket does


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
                f"with the address of your own server, or set EVERTURN_TOKEN"
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
