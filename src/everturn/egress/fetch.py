"""Fetch: GET of a page. Every hop is parsed, resolved and checked; connections go to checked addresses only.

Every hop has its own connection, which is closed after it: nothing that one address was allowed is left for another.
Sizes and times are bounded. The environment has no effect: no proxies, no netrc, no cookies.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from msgspec import Struct

from everturn.core.rules.urls import Url
from everturn.egress.body import BoundedBody
from everturn.egress.ip_addresses import parse_address
from everturn.egress.policy import EgressPolicy, ResolvedUrl, origin
from everturn.errors import AddressRefused, FetchFailed

if TYPE_CHECKING:
    from ssl import SSLContext

    from aiohttp import ClientResponse, TCPConnector

MIB: Final = 2**20
MAX_ADDRESSES_TRIED: Final = 8  # addresses of one name that are tried
READ_BUFFER: Final = 2**16
REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
HEADERS: Final = {"Accept": "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.5", "Accept-Encoding": "gzip"}
_CHARSET: Final = re.compile(r";\s*charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)


class FetchLimits(Struct, frozen=True):
    """Limits of a fetch. `size` applies to compressed and decompressed data; times are in seconds."""

    size: int = 5 * MIB
    total: float = 30.0
    idle: float = 10.0
    connect: float = 10.0
    hops: int = 5
    line: int = 8190  # bytes of the status line, and of each header
    headers: int = 100


class FetchedPage(Struct, frozen=True):
    """A fetched page. `moved` is the target of a redirect that was not followed."""

    url: str
    status: int
    media_type: str = ""
    charset: str = ""
    body: bytes = b""
    hops: tuple[str, ...] = ()  # the addresses of the redirects
    redirect: str = ""


def _always(_: object, __: object = None) -> bool:
    return True


async def fetch(
    guard: EgressPolicy,
    address: str,
    *,
    limits: FetchLimits = FetchLimits(),  # noqa: B008 - frozen
    headers: Mapping[str, str] | None = None,
    takes: Callable[[str], bool] = _always,
    follows: Callable[[Url, Url], bool] = _always,
    tls: SSLContext | None = None,
) -> FetchedPage:
    """Fetch an address.

    `headers` are sent to the origin of that address only. `takes` decides by media type before the body is read;
    `follows(here, there)` decides whether a redirect is followed.

    Raises:
        AddressRefused: the address, or a redirect's, is not allowed.
        FetchFailed: the request failed; `kind` says why.
    """
    url = guard.parse(address)
    extra = dict(headers or {})
    hops: list[str] = []
    try:
        async with asyncio.timeout(limits.total):
            while True:
                target = await guard.resolve(url)
                result = await _hop(target, {**HEADERS, **extra}, limits, takes, tls)
                if isinstance(result, FetchedPage):
                    return FetchedPage(
                        result.url, result.status, result.media_type, result.charset, result.body, tuple(hops)
                    )
                redirect = _next(guard, url, result[1])
                if not follows(url, redirect):
                    return FetchedPage(str(url), result[0], hops=tuple(hops), redirect=str(redirect))
                hops.append(str(url))
                if len(hops) > limits.hops:
                    raise FetchFailed(f"{address} redirects more than {limits.hops} times", "redirect")
                if origin(redirect) != origin(url):
                    extra = {}
                url = redirect
    except TimeoutError:
        raise FetchFailed(
            f"{url.host} was not done in {limits.total:g} s, which is the time limit", "timeout"
        ) from None


def _next(guard: EgressPolicy, at: Url, location: str) -> Url:
    if any(char <= " " or char in "\\\x7f" for char in location):  # urljoin drops some of these silently
        raise AddressRefused(f"{at.host} redirects to a URL with invalid characters")
    try:
        redirect = guard.parse(urljoin(str(at), location))
    except ValueError:
        raise AddressRefused(f"{at.host} redirects to something that is not a URL") from None
    except AddressRefused as error:
        raise AddressRefused(f"{at.host} redirects to an address that is not allowed: {error}") from None
    if at.scheme == "https" and redirect.scheme != "https":
        raise AddressRefused(f"{at.host} redirects from https to {redirect.scheme}, which is not encrypted")
    return redirect


async def _hop(
    place: ResolvedUrl,
    headers: dict[str, str],
    limits: FetchLimits,
    takes: Callable[[str], bool],
    tls: SSLContext | None,
) -> FetchedPage | tuple[int, str]:
    """Send one request: return a page, or a status and the redirect's target."""
    import aiohttp
    from aiohttp.http_exceptions import HttpProcessingError
    from yarl import URL

    host = place.url.host
    try:
        async with (
            aiohttp.ClientSession(
                connector=pinned_connector(place, tls),
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
        raise FetchFailed(f"{host} sent nothing for {limits.idle:g} s", "timeout") from None
    except aiohttp.ClientSSLError:
        raise FetchFailed(
            f"{host} has no valid TLS certificate, or no TLS version that Everturn supports", "tls"
        ) from None
    except aiohttp.ClientConnectorError:
        raise FetchFailed(f"no server answers at {host}, port {place.port}", "connect") from None
    except (aiohttp.ClientError, HttpProcessingError, OSError, ValueError) as error:
        if isinstance(error, TimeoutError):
            raise
        raise FetchFailed(
            f"the response of {host} is cut off, or not HTTP ({type(error).__name__})", "protocol"
        ) from None


async def _answer(
    url: Url, response: ClientResponse, limits: FetchLimits, takes: Callable[[str], bool]
) -> FetchedPage | tuple[int, str]:
    if response.status in REDIRECTS:
        locations = set(response.headers.getall("Location", ()))
        if len(locations) > 1:
            raise FetchFailed(f"{url.host} redirects to {len(locations)} addresses at the same time", "protocol")
        if locations:
            return response.status, locations.pop()
    if response.status < 200:
        raise FetchFailed(f"{url.host} asked to switch to a protocol other than HTTP", "protocol")
    content_type = response.headers.get("Content-Type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    size = response.content_length
    if not takes(media_type) and size != 0:
        how_big = "of unknown size" if size is None else f"of {size:,} bytes"
        raise FetchFailed(f"{url} is {media_type[:80]!a}, {how_big}, which is not text", "type")
    body = BoundedBody(",".join(response.headers.getall("Content-Encoding", ())), limits.size)
    if size is not None and size > limits.size:
        raise FetchFailed(f"{url} is {size:,} bytes; at most {limits.size:,} are read", "size")
    while piece := await response.content.readany():
        body.take(piece)
        if body.is_whole:
            break
    charset = _CHARSET.search(content_type)
    return FetchedPage(str(url), response.status, media_type, charset[1].lower() if charset else "", body.end())


def pinned_connector(place: ResolvedUrl, tls: SSLContext | None) -> TCPConnector:
    """Return a connector to the checked addresses of a URL, and to no others, whatever its name resolves to now."""
    import aiohttp
    from aiohttp.abc import AbstractResolver, ResolveResult

    addresses = place.addresses[:MAX_ADDRESSES_TRIED]

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
        # The second check: the last point before the wire, after everything that aiohttp does with names and addresses.
        family, kind, proto, _, (host, port, *_) = info
        if parse_address(host) not in addresses or port != place.port:
            raise AddressRefused(f"{place.url.host} would have been reached at an address that was not checked")
        return socket.socket(family, kind, proto)

    return aiohttp.TCPConnector(
        resolver=Pinned(),
        use_dns_cache=False,
        force_close=True,
        limit=1,
        ssl=tls if tls is not None else True,
        socket_factory=open_socket,
    )
