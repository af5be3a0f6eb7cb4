"""Forwarded client address: which client a request is from when a trusted reverse proxy passes it on.

A proxy adds the address of its client at the end of `X-Forwarded-For`. What comes before was sent by that client, and may
be invented. So the address is the last one that no trusted proxy has, and only a request of a trusted proxy has one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from everturn.errors import ConfigError
from everturn.server.middleware import Scope

HEADER = b"x-forwarded-for"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def read_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Return the networks of `trusted_proxies`.

    Raises:
        ConfigError: one of them is neither an address nor a network.
    """
    networks: list[Network] = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text))
        except ValueError:
            raise ConfigError(
                f"trusted_proxies: {text!r} is no address or network; write 10.0.0.5 or 10.0.0.0/24"
            ) from None
    return tuple(networks)


def with_client_address(scope: Scope, trusted: Sequence[Network]) -> Scope:
    """Return a request with the address of its client, as the trusted proxies in front of the server report it."""
    client = scope.get("client")
    if not trusted or not client or not _is_trusted(client[0], trusted):
        return scope
    found = ""
    for text in reversed(_addresses(scope)):
        if _parse(text) is None:  # what a proxy could not read is nobody's address
            break
        found = text
        if not _is_trusted(text, trusted):
            break
    return {**scope, "client": (found, 0)} if found else scope


def _addresses(scope: Scope) -> list[str]:
    values = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == HEADER]
    return [text.strip() for value in values for text in value.split(",")]


def _is_trusted(text: str, trusted: Sequence[Network]) -> bool:
    address = _parse(text)
    return address is not None and any(address in network for network in trusted)


def _parse(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
    return (address.version == 6 and address.ipv4_mapped) or address
