"""A request over the network, on aiohttp: one pool of connections for each event loop, which ends with its loop.

aiohttp costs a third of a second to import, so that waits for the first request, and is done in a thread: a server has
others to answer meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from everturn.core.canonical import clean
from everturn.errors import ModelError
from everturn.transport import Post, place

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from yarl import URL

CONNECT = 10.0  # seconds to reach a server; how long it may think is for whoever reads the stream to say
TAIL = 0.05  # seconds for the last bytes of a complete answer; a new connection costs more
READ_BUFFER = 2**17  # bytes read ahead of a slow reader, twice this at most

_Pool = AsyncGenerator["ClientSession", None]
_imported: set[str] = set()
_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[ClientSession, _Pool]] = WeakKeyDictionary()


async def _open() -> _Pool:
    """Hold a pool open. It is a generator because a loop that shuts down closes those: nobody else has to."""
    import aiohttp

    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT),
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=READ_BUFFER,
        skip_auto_headers=("User-Agent",),
    )
    try:
        async with session:
            yield session
    finally:
        _pools.pop(asyncio.get_running_loop(), None)  # the session holds its loop, so neither would ever go


async def _session() -> ClientSession:
    loop = asyncio.get_running_loop()
    held = _pools.get(loop)
    if held is None or held[0].closed:
        pool = _open()
        held = _pools[loop] = await anext(pool), pool
    return held[0]


class _Reply:
    def __init__(self, response: ClientResponse) -> None:
        self._content = response.content
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    def read(self) -> _Reply:
        """The body, in the pieces in which it comes."""
        return self

    # Not a generator: one that is left in the middle is closed by a task of its own, which costs more than the reading.
    def __aiter__(self) -> _Reply:
        return self

    async def __anext__(self) -> bytes:
        import aiohttp

        try:
            data = await self._content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise ModelError(f"the connection to the model broke: {error!r}", kind="network", retryable=True) from error
        if not data:
            raise StopAsyncIteration
        return data

    async def finish(self) -> None:
        """Read the end of the answer, if it comes at once."""
        import aiohttp

        if not self._content.at_eof():
            with suppress(TimeoutError, aiohttp.ClientError, OSError):
                async with asyncio.timeout(TAIL):
                    while await self._content.readany():
                        pass


class Live:
    """The network. Redirects are not followed: a key goes only where it was meant to go."""

    @asynccontextmanager
    async def post(self, post: Post) -> AsyncGenerator[_Reply]:
        """Send it; the socket is closed when the context is left before the end of the answer."""
        if not _imported:  # `sys.modules` has it before it can be used
            await asyncio.to_thread(import_module, "aiohttp")
            _imported.add("aiohttp")
        import aiohttp

        session = await _session()
        proxy, login = _proxy(*urlsplit(post.url)[:2])
        try:
            response = await session.post(
                _url(post.url),
                data=post.body,
                headers=post.headers,
                allow_redirects=False,
                proxy=proxy,
                proxy_auth=aiohttp.BasicAuth(*login) if login else None,
            )
        except aiohttp.ClientHttpProxyError as error:
            raise ModelError(f"the proxy at {place(proxy or '')} refused: {error.status}", kind="network") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error or type(error).__name__
            raise ModelError(
                f"nobody answers at {place(post.url)}: {clean(str(why))}; is the server running, and the base URL right?",
                kind="network",
                retryable=not isinstance(error, ValueError),
            ) from error
        try:
            yield _Reply(response)
        finally:
            if response.content.at_eof():
                response.release()  # the connection is good for another request
            else:
                response.close()


@lru_cache
def _url(url: str) -> URL:
    from yarl import URL

    return URL(url, encoded=True)


@cache
def _proxy(scheme: str, host: str) -> tuple[str | None, tuple[str, str] | None]:
    """The proxy the environment asks for, and the login there.

    Not aiohttp's own way, which would send a netrc password beside our key.
    """
    from urllib.request import getproxies, proxy_bypass  # as heavy as aiohttp is, and needed when that is

    proxies = getproxies()
    found = None if proxy_bypass(host) else proxies.get(scheme) or proxies.get("all")
    if found is None:
        return None, None
    parts = urlsplit(found)
    login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return place(found), login
