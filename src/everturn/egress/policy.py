"""Requests to addresses that somebody else named → an answer, or a refusal: the one policy for documents of providers.

A server says where one logs in, a provider where its keys are. What the operator has configured may be anywhere: its
`own` origins. All others are judged like an address that a model named: https only, public addresses only, connected to at
the addresses that were judged, no redirects. Exceptions are the operator's to make, by host and port.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from everturn.core.urls import read_url
from everturn.egress.fetching import Limits, connector
from everturn.egress.guard import Guard, Place, origin
from everturn.egress.resolving import Resolve, resolve
from everturn.errors import AddressRefused, FetchFailed

PORTS: Final = (443, 8443)
BOUNDS: Final = Limits(total=30.0)


class Answer(Struct, frozen=True):
    """What came back: headers as they were sent, and a body that is no larger than was agreed."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Policy:
    """Where requests may go. `own` are addresses of the operator's, `allow` further ones (`host:port`) that may be inside.

    Plain http is for own origins and for exceptions that are this machine.
    """

    def __init__(self, own: Iterable[str], allow: Iterable[str] = (), *, resolve: Resolve = resolve) -> None:
        read = {address: read_url(address) for address in own}
        self._own = frozenset(
            origin(url) for url in read.values() if url is not None and url.scheme in ("http", "https")
        )
        # A name that we would not read from others, such as one with "_" in it, is compared letter by letter.
        self._odd = tuple("/".join(address.split("/")[:3]) for address, url in read.items() if url is None)
        self._allow = tuple(allow)
        self._guard = Guard(self._allow, ports=PORTS, resolve=resolve)

    def is_own(self, address: str) -> bool:
        """Whether this is at an origin that the operator has named."""
        if self._odd and "/".join(address.split("/")[:3]) in self._odd:
            return True
        url = read_url(address)
        return url is not None and url.scheme in ("http", "https") and origin(url) in self._own

    def check(self, address: str) -> None:
        """See whether an address may be gone to, as far as that can be said without looking a name up.

        Raises:
            AddressRefused: it may not.
        """
        if self.is_own(address):
            return
        url = self._guard.read(address)
        if url.scheme == "http" and url.host not in ("127.0.0.1", "[::1]", "localhost"):
            raise AddressRefused(f"{url.host} is asked by https, or not at all")

    async def request(
        self,
        method: str,
        address: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        limits: Limits = BOUNDS,
    ) -> Answer:
        """Ask, and follow nothing.

        Raises:
            AddressRefused: nobody goes there on somebody else's word.
            FetchFailed: nothing came of it.
        """
        self.check(address)
        try:
            async with asyncio.timeout(limits.total):
                place = None if self.is_own(address) else await self._guard.place(self._guard.read(address))
                return await _request(place, method, address, dict(headers or {}), body, limits)
        except TimeoutError:
            raise FetchFailed(f"it was not done in {limits.total:g} s", "timeout") from None


async def _request(
    place: Place | None, method: str, address: str, headers: dict[str, str], body: bytes | None, limits: Limits
) -> Answer:
    import aiohttp
    from aiohttp.http_exceptions import HttpProcessingError
    from yarl import URL

    headers = {name: value for name, value in headers.items() if name.lower() not in ("host", "content-length")}
    try:
        async with (
            aiohttp.ClientSession(
                connector=connector(place, None) if place is not None else aiohttp.TCPConnector(force_close=True),
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
                raise FetchFailed("its answer is packed although that was not asked for", "protocol")
            read = bytearray()
            async for piece in response.content.iter_chunked(65_536):
                read += piece
                if len(read) > limits.size:
                    raise FetchFailed(f"its answer is larger than {limits.size:,} bytes", "size")
            pairs = tuple((name, value) for name, value in response.headers.items() if name.lower() != "content-length")
            return Answer(response.status, pairs, bytes(read))
    except (aiohttp.ClientError, HttpProcessingError, OSError, ValueError) as error:
        if isinstance(error, TimeoutError):
            raise
        raise FetchFailed(f"it did not answer well ({type(error).__name__})", "connect") from None
