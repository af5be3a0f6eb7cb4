"""Egress client: requests to URLs that a provider or a server named, such as OAuth metadata and key sets.

A server names its login page, a provider its keys. URLs of origins that the operator has configured (`own`) may be
anywhere. All others are checked like an address that a model named: https only, public addresses only, connections only
to the checked addresses, no redirects. The operator can allow exceptions by host and port.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from everturn.core.rules.urls import parse_url
from everturn.egress.dns import Resolve, resolve
from everturn.egress.fetch import FetchLimits, pinned_connector
from everturn.egress.policy import EgressPolicy, ResolvedUrl, origin
from everturn.errors import AddressRefused, FetchFailed

PORTS: Final = (443, 8443)
CLIENT_LIMITS: Final = FetchLimits(total=30.0)


class EgressResponse(Struct, frozen=True):
    """A response: headers as they were sent, and a body within the size limit."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class EgressClient:
    """Sends requests. `own` are the operator's URLs, `allow` further exceptions (`host:port`) that may be private.

    Plain http is allowed for own origins and for exceptions on this machine.
    """

    def __init__(self, own: Iterable[str], allow: Iterable[str] = (), *, resolve: Resolve = resolve) -> None:
        parsed = {address: parse_url(address) for address in own}
        self._own = frozenset(
            origin(url) for url in parsed.values() if url is not None and url.scheme in ("http", "https")
        )
        # A host name that we would not accept from others, such as one with "_", is compared literally.
        self._odd = tuple("/".join(address.split("/")[:3]) for address, url in parsed.items() if url is None)
        self._allow = tuple(allow)
        self._guard = EgressPolicy(self._allow, ports=PORTS, resolve=resolve)

    def is_own(self, address: str) -> bool:
        """Return whether the address is at an origin that the operator configured."""
        if self._odd and "/".join(address.split("/")[:3]) in self._odd:
            return True
        url = parse_url(address)
        return url is not None and url.scheme in ("http", "https") and origin(url) in self._own

    def check(self, address: str) -> None:
        """Check whether an address is allowed, as far as that is possible without resolving its name.

        Raises:
            AddressRefused: it is not.
        """
        if self.is_own(address):
            return
        url = self._guard.parse(address)
        if url.scheme == "http" and url.host not in ("127.0.0.1", "[::1]", "localhost"):
            raise AddressRefused(f"{url.host} must be reached by https")

    async def request(
        self,
        method: str,
        address: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        limits: FetchLimits = CLIENT_LIMITS,
    ) -> EgressResponse:
        """Send a request, without following redirects.

        Raises:
            AddressRefused: the address is not allowed.
            FetchFailed: the request failed.
        """
        self.check(address)
        try:
            async with asyncio.timeout(limits.total):
                target = None if self.is_own(address) else await self._guard.resolve(self._guard.parse(address))
                return await _request(target, method, address, dict(headers or {}), body, limits)
        except TimeoutError:
            raise FetchFailed(f"it did not finish within {limits.total:g} s", "timeout") from None


async def _request(
    place: ResolvedUrl | None,
    method: str,
    address: str,
    headers: dict[str, str],
    body: bytes | None,
    limits: FetchLimits,
) -> EgressResponse:
    import aiohttp
    from aiohttp.http_exceptions import HttpProcessingError
    from yarl import URL

    headers = {name: value for name, value in headers.items() if name.lower() not in ("host", "content-length")}
    try:
        async with (
            aiohttp.ClientSession(
                connector=pinned_connector(place, None)
                if place is not None
                else aiohttp.TCPConnector(force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.connect, sock_read=limits.idle),
                trust_env=False,
                auto_decompress=False,
            ) as session,
            session.request(
                method,
                URL(address, encoded=True),
                headers={**headers, "Accept-Encoding": "identity"},
                data=body,
                allow_redirects=False,
            ) as response,
        ):
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise FetchFailed("its response is compressed, which was not requested", "protocol")
            content = bytearray()
            async for piece in response.content.iter_chunked(65_536):
                content += piece
                if len(content) > limits.size:
                    raise FetchFailed(f"its response is larger than {limits.size:,} bytes", "size")
            pairs = tuple((name, value) for name, value in response.headers.items() if name.lower() != "content-length")
            return EgressResponse(response.status, pairs, bytes(content))
    except (aiohttp.ClientError, HttpProcessingError, OSError, ValueError) as error:
        if isinstance(error, TimeoutError):
            raise
        raise FetchFailed(f"its response is not valid ({type(error).__name__})", "connect") from None
