"""An address → a page, by GET: read, looked up and judged at every hop, connected to what was judged, all of it bounded.

Every hop has a connection of its own, which is closed after it: nothing that one address was allowed is left for another.
The environment has no say: no proxies, no netrc, no cookies.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from msgspec import Struct

from everturn.core.urls import Url
from everturn.egress.addresses import read_address
from everturn.egress.bodies import Body
from everturn.egress.guard import Guard, Place, origin
from everturn.errors import AddressRefused, FetchFailed

if TYPE_CHECKING:
    from ssl import SSLContext

    from aiohttp import ClientResponse, TCPConnector

MIB: Final = 2**20
MOST_TRIED: Final = 8  # addresses of one name
READ_BUFFER: Final = 2**16
REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
HEADERS: Final = {"Accept": "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.5", "Accept-Encoding": "gzip"}
_CHARSET: Final = re.compile(r";\s*charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)


class Limits(Struct, frozen=True):
    """How much, how long and how far. `size` holds on the wire and for what is unpacked; times are in seconds."""

    size: int = 5 * MIB
    total: float = 30.0
    idle: float = 10.0
    connect: float = 10.0
    hops: int = 5
    line: int = 8190  # bytes of the status line, and of each header
    headers: int = 100


class Page(Struct, frozen=True):
    """What was there. `moved` is where it says it is instead, if that was not followed."""

    url: str
    status: int
    media_type: str = ""
    charset: str = ""
    body: bytes = b""
    hops: tuple[str, ...] = ()  # the addresses that led here
    moved: str = ""


def _always(_: object, __: object = None) -> bool:
    return True


async def fetch(
    guard: Guard,
    address: str,
    *,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    headers: Mapping[str, str] | None = None,
    takes: Callable[[str], bool] = _always,
    follows: Callable[[Url, Url], bool] = _always,
    tls: SSLContext | None = None,
) -> Page:
    """Get what is at an address.

    `headers` are for the origin of that address alone. `takes` says whether a media type is wanted, before any of it is
    read; `follows(here, there)` whether a redirect is.

    Raises:
        AddressRefused: it, or where it leads, is nowhere to go.
        FetchFailed: nothing came of it; `kind` says why.
    """
    at = guard.read(address)
    extra = dict(headers or {})
    hops: list[str] = []
    try:
        async with asyncio.timeout(limits.total):
            while True:
                place = await guard.place(at)
                found = await _hop(place, {**HEADERS, **extra}, limits, takes, tls)
                if isinstance(found, Page):
                    return Page(found.url, found.status, found.media_type, found.charset, found.body, tuple(hops))
                there = _next(guard, at, found[1])
                if not follows(at, there):
                    return Page(str(at), found[0], hops=tuple(hops), moved=str(there))
                hops.append(str(at))
                if len(hops) > limits.hops:
                    raise FetchFailed(f"{address} leads on and on: more than {limits.hops} redirects", "redirect")
                if origin(there) != origin(at):
                    extra = {}
                at = there
    except TimeoutError:
        raise FetchFailed(
            f"{at.host} was not done in {limits.total:g} s, which is the longest it may take", "timeout"
        ) from None


def _next(guard: Guard, at: Url, location: str) -> Url:
    if any(char <= " " or char in "\\\x7f" for char in location):  # urljoin drops some of these without a word
        raise AddressRefused(f"{at.host} redirects to an address with characters that none may have")
    try:
        there = guard.read(urljoin(str(at), location))
    except ValueError:
        raise AddressRefused(f"{at.host} redirects to something that is no address") from None
    except AddressRefused as error:
        raise AddressRefused(f"{at.host} redirects to where nobody may go: {error}") from None
    if at.scheme == "https" and there.scheme != "https":
        raise AddressRefused(f"{at.host} redirects from https to {there.scheme}, where anybody could read along")
    return there


async def _hop(
    place: Place,
    headers: dict[str, str],
    limits: Limits,
    takes: Callable[[str], bool],
    tls: SSLContext | None,
) -> Page | tuple[int, str]:
    """One request: a page, or a status and where it redirects to."""
    import aiohttp
    from aiohttp.http_exceptions import HttpProcessingError
    from yarl import URL

    host = place.url.host
    try:
        async with (
            aiohttp.ClientSession(
                connector=connector(place, tls),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.connect, sock_read=limits.idle),
                auto_decompress=False,
                read_bufsize=READ_BUFFER,
                trust_env=False,
                max_line_size=limits.line,
                max_field_size=limits.line,
                max_headers=limits.headers,
                headers={"User-Agent": "Everturn"},
            ) as session,
            session.get(URL(str(place.url), encoded=True), headers=headers, allow_redirects=False) as response,
        ):
            try:
                return await _answer(place.url, response, limits, takes)
            finally:
                response.close()
    except aiohttp.ConnectionTimeoutError:
        raise FetchFailed(f"{host} could not be reached in {limits.connect:g} s", "connect") from None
    except aiohttp.ServerTimeoutError:
        raise FetchFailed(f"{host} fell silent for {limits.idle:g} s", "timeout") from None
    except aiohttp.ClientSSLError:
        raise FetchFailed(f"{host} could not prove that it is {host}, or speaks no TLS that we do", "tls") from None
    except aiohttp.ClientConnectorError:
        raise FetchFailed(f"nobody answers at {host}, port {place.port}", "connect") from None
    except (aiohttp.ClientError, HttpProcessingError, OSError, ValueError) as error:
        if isinstance(error, TimeoutError):
            raise
        raise FetchFailed(
            f"what {host} answered breaks off, or is no HTTP ({type(error).__name__})", "protocol"
        ) from None


async def _answer(
    url: Url, response: ClientResponse, limits: Limits, takes: Callable[[str], bool]
) -> Page | tuple[int, str]:
    if response.status in REDIRECTS:
        places = set(response.headers.getall("Location", ()))
        if len(places) > 1:
            raise FetchFailed(f"{url.host} redirects to {len(places)} addresses at once", "protocol")
        if places:
            return response.status, places.pop()
    if response.status < 200:
        raise FetchFailed(f"{url.host} wants to speak something else than HTTP", "protocol")
    said = response.headers.get("Content-Type", "")
    media_type = said.partition(";")[0].strip().lower()
    size = response.content_length
    if not takes(media_type) and size != 0:
        how_big = "of unknown size" if size is None else f"of {size:,} bytes"
        raise FetchFailed(f"{url} is {media_type[:80]!a}, {how_big}, which is not text", "type")
    body = Body(",".join(response.headers.getall("Content-Encoding", ())), limits.size)
    if size is not None and size > limits.size:
        raise FetchFailed(f"{url} is {size:,} bytes; at most {limits.size:,} are read", "size")
    while piece := await response.content.readany():
        body.take(piece)
        if body.is_whole:
            break
    charset = _CHARSET.search(said)
    return Page(str(url), response.status, media_type, charset[1].lower() if charset else "", body.end())


def connector(place: Place, tls: SSLContext | None) -> TCPConnector:
    """Connections to the addresses of a place, and to no others, whatever its name means by now."""
    import aiohttp
    from aiohttp.abc import AbstractResolver, ResolveResult

    addresses = place.addresses[:MOST_TRIED]

    class Pinned(AbstractResolver):
        async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
            return [
                ResolveResult(
                    hostname=host,
                    host=str(address),
                    port=port,
                    family=socket.AF_INET if address.version == 4 else socket.AF_INET6,
                    proto=0,
                    flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                )
                for address in addresses
            ]

        async def close(self) -> None:
            pass

    def open_socket(info: tuple[Any, ...]) -> socket.socket:
        # The second lock: the last place before the wire, past whatever aiohttp makes of names and addresses.
        family, kind, proto, _, (host, port, *_) = info
        if read_address(host) not in addresses or port != place.port:
            raise AddressRefused(f"{place.url.host} was about to be reached at an address that was not judged")
        return socket.socket(family, kind, proto)

    return aiohttp.TCPConnector(
        resolver=Pinned(),
        use_dns_cache=False,
        force_close=True,
        limit=1,
        ssl=tls if tls is not None else True,
        socket_factory=open_socket,
    )
