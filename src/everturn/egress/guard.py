"""A text → an address that was read, resolved and judged: the one guard for whatever reaches out to where a model says.

It is read by `core.urls`, as the rules read it, so nothing can be one address to a rule and another to a socket. Whoever
connects goes to the addresses of the `Place` and to no others: the name is not looked up again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from ipaddress import IPv6Address, ip_network
from typing import Final

from msgspec import Struct

from everturn.core.globs import text_glob, tokens_of
from everturn.core.urls import Url, read_url
from everturn.egress.addresses import HOUSE, Address, Network, judge, read_address
from everturn.egress.resolving import Resolve, resolve
from everturn.errors import AddressRefused, ConfigError, FetchFailed

LONGEST: Final = 4096  # characters of an address
LONGEST_NAME, LONGEST_LABEL = 253, 63  # as DNS has it
MOST_ANSWERS: Final = 64  # addresses of one name that are judged; who has more is up to something
LOOKUP: Final = 5.0  # seconds
INNER_NAMES: Final = ("localhost", "local", "internal", "home.arpa", "onion")  # never out in the open
DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Place(Struct, frozen=True):
    """An address, and the only IP addresses it may be reached at."""

    url: Url
    port: int
    addresses: tuple[Address, ...]


class Guard:
    """Says where one may go.

    `allow` are exceptions, each with its port: `127.0.0.1:8000`, `[::1]:8000`, `wiki.corp.example:443`. An exception for
    an IP address is for that one; a name may then stand for private and loopback addresses, never for link-local ones,
    metadata services and the like. `deny` are names (`*.example.com`) and networks (`198.51.100.0/24`, such as the
    house's own public ones), and beats `allow`. `resolve` looks names up.
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
        self._names = tuple(text_glob(tokens_of(row)) for row in denied if isinstance(row, str))
        self._networks = tuple(row for row in denied if not isinstance(row, str))
        self._ports = frozenset(ports)
        self._schemes = tuple(schemes)
        for scheme in self._schemes:
            if scheme not in DEFAULT_PORTS:
                raise ConfigError(f"the egress guard knows http and https, not {scheme!r}")
        self._resolve = resolve
        self._lookup_timeout = lookup_timeout

    def read(self, text: str) -> Url:
        """Read an address and judge what can be judged without looking a name up.

        Raises:
            AddressRefused: nobody may go there, or it can be read in more ways than one.
        """
        if len(text) > LONGEST:
            raise AddressRefused(f"this address is {len(text):,} characters long; at most {LONGEST:,} are read")
        url = read_url(text)
        if url is None:
            raise AddressRefused(
                f"{_shown(text)} is not an address that is read in one way only; write it plainly, as in "
                "https://example.com/page: no user, spaces, control characters, backslashes or odd numbers, and names "
                "beyond ASCII as xn--…"
            )
        if url.scheme not in self._schemes:
            raise AddressRefused(f"{url.scheme}: is not fetched; there is: {', '.join(self._schemes)}")
        port = port_of(url)
        excepted = (url.host, port) in self._allow
        if not 0 < port < 65536 or not (excepted or port in self._ports):
            there = ", ".join(map(str, sorted(self._ports)))
            raise AddressRefused(f"port {port} of {url.host} is not open to tools; there is: {there}")
        if any(fits(url.host) for fits in self._names):
            raise AddressRefused(f"{url.host} is denied to tools here")
        address = read_address(url.host)
        if address is not None:
            self._judge(url.host, (address,), lambda why: excepted)
        elif not excepted or not _is_name(url.host):
            _judge_name(url.host)
        return url

    async def place(self, url: Url) -> Place:
        """Look the name up, once, and judge every address it has.

        Raises:
            AddressRefused: one of them is an inner or special one.
            FetchFailed: it has none, or nobody said in time.
        """
        url = self.read(str(url))  # it may have been made by hand
        port = port_of(url)
        literal = read_address(url.host)
        if literal is not None:
            return Place(url, port, (literal,))
        try:
            async with asyncio.timeout(self._lookup_timeout):
                answers = await self._resolve(url.host)
        except TimeoutError:
            raise FetchFailed(f"{url.host} could not be looked up in {self._lookup_timeout:g} s", "dns") from None
        except (OSError, UnicodeError):
            raise FetchFailed(f"there is no {url.host}: its name has no address", "dns") from None
        if not answers:
            raise FetchFailed(f"there is no {url.host}: its name has no address", "dns")
        if len(answers) > MOST_ANSWERS:
            raise AddressRefused(f"{url.host} has {len(answers)} addresses; at most {MOST_ANSWERS} are looked at")
        found = [read_address(answer) for answer in answers]
        addresses = tuple(address for address in found if address is not None)
        if len(addresses) < len(found):
            raise AddressRefused(f"{url.host} was looked up, and what came back is no IP address")
        excepted = (url.host, port) in self._allow
        self._judge(url.host, addresses, lambda why: excepted and why in HOUSE)
        return Place(url, port, addresses)

    def _judge(self, host: str, addresses: tuple[Address, ...], forgives: Callable[[str], bool]) -> None:
        for address in addresses:
            # Of the same version only: `in` would say no to the other, and a mapped address is refused anyway.
            if any(address.version == net.version and address in net for net in self._networks):
                raise AddressRefused(f"{host} is in a network that is denied to tools here")
            why = judge(address)
            if why and not forgives(why):
                # Not which one: the model would learn from it what is where inside.
                raise AddressRefused(
                    f"{host} is, or leads to, a {why} address; only public ones are reached from here. "
                    "Whoever runs this can make an exception: Guard(allow=['host:port'])"
                )


def port_of(url: Url) -> int:
    """The port it is served at."""
    return int(url.port) if url.port else DEFAULT_PORTS[url.scheme]


def origin(url: Url) -> tuple[str, str, int]:
    """Whom headers that were meant for one server may be shown to."""
    return url.scheme, url.host, port_of(url)


def _is_name(host: str) -> bool:
    labels = host.split(".")
    return len(host) <= LONGEST_NAME and all(
        0 < len(label) <= LONGEST_LABEL and not label.startswith("-") and not label.endswith("-") for label in labels
    )


def _judge_name(host: str) -> None:
    if not _is_name(host):
        raise AddressRefused(f"{_shown(host)} is no name that could be looked up")
    if "." not in host or host.endswith(tuple(f".{name}" for name in INNER_NAMES)):
        raise AddressRefused(f"{host} is a name of this house or this machine; only public ones are reached from here")


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 120 else text[:117] + "...")


def _texts(what: str, given: Iterable[str]) -> Iterable[str]:
    if isinstance(given, str):
        raise ConfigError(f"{what} is a list of texts: {what}=[{given!r}]")
    return given


def _exception(text: str) -> tuple[str, int]:
    url = read_url(f"http://{text}/")
    host, _, port = text.rpartition(":")
    if url is None or url.target != "/" or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"{text!r} is no exception for the egress guard: host:port, as in 127.0.0.1:8000")
    return url.host, int(port)


def _denial(text: str) -> str | Network:
    address = read_address(text)
    if "/" in text or address is not None:
        try:
            return ip_network(text.strip("[]") if isinstance(address, IPv6Address) else text, strict=False)
        except ValueError:
            raise ConfigError(f"{text!r} is no network: as in 198.51.100.0/24 or 2001:db8::/32") from None
    if not text or not text.isascii() or any(char in text for char in " :@\\[]"):
        raise ConfigError(f"{text!r} is no name the egress guard could deny: as in example.com or *.example.com")
    return text.lower().removesuffix(".")
