"""Egress policy: parses, resolves and checks every address that a model names, before anything connects to it.

`core.rules.urls` parses addresses, as it does for the rules, so an address cannot mean one thing to a rule and another
to a socket. A client connects to the addresses of the `ResolvedUrl` and to no others: the name is not resolved again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from ipaddress import IPv6Address, ip_network
from typing import Final

from msgspec import Struct

from everturn.core.rules.globs import compile_text_glob, parse_glob
from everturn.core.rules.urls import Url, parse_url
from everturn.egress.dns import Resolve, resolve
from everturn.egress.ip_addresses import ALLOWABLE_KINDS, Address, Network, classify_address, parse_address
from everturn.errors import AddressRefused, ConfigError, FetchFailed

MAX_URL_LENGTH: Final = 4096  # characters of an address
LONGEST_NAME, LONGEST_LABEL = 253, 63  # limits of DNS
MAX_ADDRESSES: Final = 64  # addresses of one name that are checked; more are suspicious
LOOKUP: Final = 5.0  # seconds
INNER_NAMES: Final = ("localhost", "local", "internal", "home.arpa", "onion")  # never public
DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class ResolvedUrl(Struct, frozen=True):
    """A URL, and the only IP addresses at which it may be reached."""

    url: Url
    port: int
    addresses: tuple[Address, ...]


class EgressPolicy:
    """Decides which addresses may be reached.

    `allow` are exceptions, each with its port: `127.0.0.1:8000`, `[::1]:8000`, `wiki.corp.example:443`. An exception
    for an IP address is for that one; a name may then resolve to private and loopback addresses, never to link-local
    ones, metadata services and the like. `deny` are names (`*.example.com`) and networks (`198.51.100.0/24`, such as
    the operator's own public ones), and takes precedence over `allow`. `resolve` resolves names.
    """

    def __init__(
        self,
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        ports: Iterable[int] = (80, 443),
        schemes: Iterable[str] = ("https", "http"),
        *,
        resolve: Resolve = resolve,
        lookup_timeout: float = LOOKUP,
    ) -> None:
        self._allow = frozenset(_exception(text) for text in _texts("allow", allow))
        denied = [_denial(text) for text in _texts("deny", deny)]
        self._names = tuple(compile_text_glob(parse_glob(row)) for row in denied if isinstance(row, str))
        self._networks = tuple(row for row in denied if not isinstance(row, str))
        self._ports = frozenset(ports)
        self._schemes = tuple(schemes)
        for scheme in self._schemes:
            if scheme not in DEFAULT_PORTS:
                raise ConfigError(f"the egress policy supports http and https, not {scheme!r}")
        self._resolve = resolve
        self._lookup_timeout = lookup_timeout

    def parse(self, text: str) -> Url:
        """Parse an address, and check what can be checked without resolving its name.

        Raises:
            AddressRefused: it is not allowed, or is ambiguous.
        """
        if len(text) > MAX_URL_LENGTH:
            raise AddressRefused(f"this address is {len(text):,} characters long; at most {MAX_URL_LENGTH:,} are read")
        url = parse_url(text)
        if url is None:
            raise AddressRefused(
                f"{_shown(text)} is ambiguous as a URL; write it plainly, as in "
                "https://example.com/page: no user, spaces, control characters, backslashes or odd numbers, and names "
                "beyond ASCII as xn--…"
            )
        if url.scheme not in self._schemes:
            raise AddressRefused(f"{url.scheme}: is not supported; there is: {', '.join(self._schemes)}")
        port = port_of(url)
        excepted = (url.host, port) in self._allow
        if not 0 < port < 65536 or not (excepted or port in self._ports):
            open_ports = ", ".join(map(str, sorted(self._ports)))
            raise AddressRefused(f"port {port} of {url.host} is not allowed for tools; allowed: {open_ports}")
        if any(fits(url.host) for fits in self._names):
            raise AddressRefused(f"{url.host} is denied by the configuration")
        address = parse_address(url.host)
        if address is not None:
            self._check_addresses(url.host, (address,), lambda why: excepted)
        elif not excepted or not _is_name(url.host):
            _check_name(url.host)
        return url

    async def resolve(self, url: Url) -> ResolvedUrl:
        """Resolve the name, once, and check every address it has.

        Raises:
            AddressRefused: one of them is private or special.
            FetchFailed: the name has no address, or was not resolved in time.
        """
        url = self.parse(str(url))  # the Url may not come from `read`
        port = port_of(url)
        literal = parse_address(url.host)
        if literal is not None:
            return ResolvedUrl(url, port, (literal,))
        try:
            async with asyncio.timeout(self._lookup_timeout):
                answers = await self._resolve(url.host)
        except TimeoutError:
            raise FetchFailed(f"{url.host} could not be resolved within {self._lookup_timeout:g} s", "dns") from None
        except (OSError, UnicodeError):
            raise FetchFailed(f"the host {url.host} was not found: its name has no address", "dns") from None
        if not answers:
            raise FetchFailed(f"the host {url.host} was not found: its name has no address", "dns")
        if len(answers) > MAX_ADDRESSES:
            raise AddressRefused(f"{url.host} has {len(answers)} addresses; at most {MAX_ADDRESSES} are checked")
        parsed = [parse_address(answer) for answer in answers]
        addresses = tuple(address for address in parsed if address is not None)
        if len(addresses) < len(parsed):
            raise AddressRefused(f"{url.host} was resolved to something that is not an IP address")
        excepted = (url.host, port) in self._allow
        self._check_addresses(url.host, addresses, lambda why: excepted and why in ALLOWABLE_KINDS)
        return ResolvedUrl(url, port, addresses)

    def _check_addresses(self, host: str, addresses: tuple[Address, ...], forgives: Callable[[str], bool]) -> None:
        for address in addresses:
            # Of the same version only: `in` is False for the other, and a mapped address is refused anyway.
            if any(address.version == net.version and address in net for net in self._networks):
                raise AddressRefused(f"{host} is in a network that the configuration denies")
            kind = classify_address(address)
            if kind and not forgives(kind):
                # Without the address: the model would learn the layout of the private network from it.
                raise AddressRefused(
                    f"{host} is, or leads to, a {kind} address; tools can reach only public ones. The operator "
                    "can make an exception: Guard(allow=['host:port'])"
                )


def port_of(url: Url) -> int:
    """Return the port of a URL."""
    return int(url.port) if url.port else DEFAULT_PORTS[url.scheme]


def origin(url: Url) -> tuple[str, str, int]:
    """Return the origin of a URL: headers for one origin are not sent to another."""
    return url.scheme, url.host, port_of(url)


def _is_name(host: str) -> bool:
    labels = host.split(".")
    return len(host) <= LONGEST_NAME and all(
        0 < len(label) <= LONGEST_LABEL and not label.startswith("-") and not label.endswith("-") for label in labels
    )


def _check_name(host: str) -> None:
    if not _is_name(host):
        raise AddressRefused(f"{_shown(host)} is not a valid host name")
    if "." not in host or host.endswith(tuple(f".{name}" for name in INNER_NAMES)):
        raise AddressRefused(f"{host} is a local name; tools can reach only public hosts")


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 120 else text[:117] + "...")


def _texts(name: str, values: Iterable[str]) -> Iterable[str]:
    if isinstance(values, str):
        raise ConfigError(f"{name} must be a list of strings: {name}=[{values!r}]")
    return values


def _exception(text: str) -> tuple[str, int]:
    url = parse_url(f"http://{text}/")
    host, _, port = text.rpartition(":")
    if url is None or url.target != "/" or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"{text!r} is not an exception for the egress policy; write host:port, as in 127.0.0.1:8000")
    return url.host, int(port)


def _denial(text: str) -> str | Network:
    address = parse_address(text)
    if "/" in text or address is not None:
        try:
            return ip_network(text.strip("[]") if isinstance(address, IPv6Address) else text, strict=False)
        except ValueError:
            raise ConfigError(f"{text!r} is not a network; it looks like 198.51.100.0/24 or 2001:db8::/32") from None
    if not text or not text.isascii() or any(char in text for char in " :@\\[]"):
        raise ConfigError(f"{text!r} is not a host name or pattern; it looks like example.com or *.example.com")
    return text.lower().removesuffix(".")
