"""NATS addresses: one URL or several, separated by commas, with or without TLS. Pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from everturn.errors import ConfigError

SCHEMES = ("nats", "tls")
_HOST = re.compile(r"[\w.:-]+")
EXAMPLE = "write nats://host:4222, or several with commas between them; tls:// where it is to be encrypted"


def nats_servers(text: str) -> list[str]:
    """Parse the servers of an address.

    Raises:
        ConfigError: one of them is invalid, or some use TLS and others do not.
    """
    servers = [
        server if "://" in server else f"nats://{server}" for server in map(str.strip, text.split(",")) if server
    ]
    schemes: set[str] = set()
    for server in servers:
        try:
            parts = urlsplit(server)
            is_host = _HOST.fullmatch(parts.hostname or "") is not None
            is_valid = parts.scheme in SCHEMES and is_host and (parts.port is None or parts.port > 0)
        except ValueError:
            is_valid = False
        if not is_valid:
            raise ConfigError(f"{server.rpartition('@')[2]!r} is not the address of a NATS server; {EXAMPLE}")
        schemes.add(urlsplit(server).scheme)
    if not servers:
        raise ConfigError(f"there is not the address of a NATS server in {text!r}; {EXAMPLE}")
    if len(schemes) > 1:
        raise ConfigError("some of these NATS addresses use TLS and others do not; write tls:// for all or for none")
    return servers


def is_encrypted(servers: list[str]) -> bool:
    """Whether these servers use TLS."""
    return servers[0].startswith("tls://")
