"""Classification of IP addresses: returns why an address must not be reached. Pure.

This is our own table: `ipaddress.is_global` includes NAT64 and 6to4 of private addresses, and changes with Python.
"""

from __future__ import annotations

from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Specific ranges first: the first match is reported.
_V4: Final = (
    ("168.63.129.16/32", "metadata"),
    ("169.254.169.254/32", "metadata"),
    ("169.254.170.0/24", "metadata"),
    ("100.100.100.200/32", "metadata"),
    ("192.0.0.192/32", "metadata"),
    ("0.0.0.0/8", "unspecified"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "documentation"),
    ("192.31.196.0/24", "reserved"),
    ("192.52.193.0/24", "reserved"),
    ("192.88.99.0/24", "6to4"),
    ("192.168.0.0/16", "private"),
    ("192.175.48.0/24", "reserved"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
)
_V6: Final = (
    ("fd00:ec2::/32", "metadata"),
    ("fd20:ce::254/128", "metadata"),
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("::ffff:0:0/96", "IPv4-mapped"),
    ("::/96", "IPv4-compatible"),
    ("64:ff9b::/96", "NAT64"),
    ("64:ff9b:1::/48", "NAT64"),
    ("2001::/32", "Teredo"),
    ("2001:2::/48", "benchmarking"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "documentation"),
    ("2002::/16", "6to4"),
    ("2620:4f:8000::/48", "reserved"),
    ("3ffe::/16", "reserved"),
    ("3fff::/20", "documentation"),
    ("fc00::/7", "unique-local"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
)
_GLOBAL: Final = 0b001  # the first three bits of every IPv6 address that was ever assigned
_ISATAP: Final = frozenset((0x00005EFE, 0x02005EFE))

ALLOWABLE_KINDS: Final = frozenset(("private", "loopback", "shared", "unique-local"))
"""The kinds that an operator may allow for a name. There is no reason to allow the others."""


@cache
def _tables() -> tuple[list[tuple[int, int, str]], list[tuple[int, int, str]]]:
    def ranges(table: tuple[tuple[str, str], ...]) -> list[tuple[int, int, str]]:
        return [(int(net[0]), int(net[-1]), why) for net, why in ((ip_network(text), why) for text, why in table)]

    return ranges(_V4), ranges(_V6)


def classify_address(address: Address) -> str:
    """Return the kind of a private, special or disguised address; "" for a public one."""
    number = int(address)
    four, six = _tables()
    for first, last, why in four if isinstance(address, IPv4Address) else six:
        if first <= number <= last:
            return why
    if isinstance(address, IPv4Address):
        return ""
    if address.scope_id:
        return "link-local"
    if number >> 125 != _GLOBAL:
        return "reserved"
    return "ISATAP" if (number >> 32) & 0xFFFFFFFF in _ISATAP else ""


def parse_address(text: str) -> Address | None:
    """Parse an address in its plain form, with or without brackets; None for anything else."""
    try:
        return ip_address(text[1:-1] if text.startswith("[") and text.endswith("]") else text)
    except ValueError:
        return None
