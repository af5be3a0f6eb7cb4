"""HTTP transport on aiohttp: one connection pool per event loop, which is closed with its loop.

Importing aiohttp takes a third of a second. So `load` imports it before the first request or, if nobody called that, the
first request does, in a thread: a server has other requests to answer meanwhile.
"""

from __future__ import annotations

import asyncio
import atexit
import errno
import socket
from base64 import b64encode
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache, lru_cache
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from everturn.core.canonical_json import replace_surrogates
from everturn.errors import ModelError
from everturn.transport import HttpRequest, url_origin

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, StreamReader, TCPConnector
    from yarl import URL

CONNECT = 10.0  # seconds to connect to a server; the reader of the stream limits the time of the response
TAIL = 0.05  # seconds for the last bytes of a complete response; a new connection costs more
LARGE_BODY = 2**20  # bytes; aiohttp warns of larger ones that are not files
READ_BUFFER = 2**17  # bytes read ahead of a slow reader, twice this at most

_Pool = AsyncGenerator["ClientSession", None]
_imported: set[str] = set()
_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[ClientSession, _Pool]] = WeakKeyDictionary()


async def _open() -> _Pool:
    """Hold a pool open. It is a generator because an event loop closes its async generators when it shuts down."""
    import aiohttp

    session = open_pool(aiohttp.TCPConnector(limit=0))
    try:
        async with session:
            yield session
    finally:
        _pools.pop(
            asyncio.get_running_loop(), None
        )  # the session refers to its loop, so neither would ever be collected


def open_pool(connector: TCPConnector) -> ClientSession:
    """Return a session with connections of its own."""
    import aiohttp

    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT),
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=READ_BUFFER,
        skip_auto_headers=("User-Agent",),
    )


@atexit.register
def _close_pools() -> None:
    """Close the pools of loops that still run in other threads when the process exits: those of `run_sync`."""
    for loop, (session, _) in list(_pools.items()):
        if loop.is_running():
            with suppress(Exception):  # it is only tidy: the process ends in any case
                asyncio.run_coroutine_threadsafe(session.close(), loop).result(timeout=1.0)


async def _session() -> ClientSession:
    loop = asyncio.get_running_loop()
    pooled = _pools.get(loop)
    if pooled is None or pooled[0].closed:
        pool = _open()
        pooled = _pools[loop] = await anext(pool), pool
    return pooled[0]


def _join_buffered(content: StreamReader) -> None:
    """Join the HTTP chunks that a reader has buffered: aiohttp hands on each by itself, at several μs apiece.

    If another release of aiohttp keeps them elsewhere, this does nothing.
    """
    buffer = cast("object", getattr(content, "_buffer", None))
    if isinstance(buffer, deque) and not getattr(content, "_buffer_offset", 1):
        chunks = cast("deque[bytes]", buffer)
        if len(chunks) > 1:
            whole = b"".join(chunks)
            chunks.clear()
            chunks.append(whole)


UNREACHABLE: Final = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN})


def _advice(error: Exception) -> str:
    """What to check when a connection fails: the network if no name is resolved or nothing is reachable, else the server."""
    import aiohttp

    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, socket.gaierror) or getattr(cause, "errno", None) in UNREACHABLE:
        return "check the network connection of this machine, HTTPS_PROXY, and the host in the base URL"
    return "is the server running, and the base URL right?"


class LiveResponse:
    """A response, as it arrives."""

    def __init__(self, response: ClientResponse) -> None:
        self._content = response.content
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    def read(self) -> LiveResponse:
        """The body, in chunks as they arrive."""
        return self

    # Not a generator: one that is left in the middle is closed by a task of its own, which costs more than the reading.
    def __aiter__(self) -> LiveResponse:
        return self

    async def __anext__(self) -> bytes:
        import aiohttp

        content = self._content
        try:
            data, is_chunk_end = await content.readchunk()
            # The end of a chunk that was read before; of a body without any bytes it is said again and again.
            while not data and is_chunk_end and not content.at_eof():
                data, is_chunk_end = await content.readchunk()
            if data and content.exception() is None:
                _join_buffered(content)
                data += content.read_nowait()
        except (aiohttp.ClientError, OSError) as error:
            raise ModelError(f"the connection to the model broke: {error!r}", kind="network", retryable=True) from error
        if not data:
            raise StopAsyncIteration
        return data

    async def finish(self) -> None:
        """Read the end of the response, if it arrives at once."""
        import aiohttp

        if not self._content.at_eof():
            with suppress(TimeoutError, aiohttp.ClientError, OSError):
                async with asyncio.timeout(TAIL):
                    while await self._content.readany():
                        pass


class HttpTransport:
    """Transport over the network. It follows no redirects: an API key goes only to the configured server."""

    def load(self) -> None:
        """Import what a request needs."""
        for name in ("aiohttp", "urllib.request"):
            import_module(name)
        _imported.add("aiohttp")

    @asynccontextmanager
    async def post(self, post: HttpRequest) -> AsyncGenerator[LiveResponse]:
        """Send a request; the socket is closed when the context is left before the end of the response."""
        if not _imported:  # `sys.modules` has it before it can be used
            await asyncio.to_thread(self.load)
        proxy, login = _proxy(*urlsplit(post.url)[:2])
        async with send_request(await _session(), post, proxy, login) as response:
            yield response


@asynccontextmanager
async def send_request(
    session: ClientSession, post: HttpRequest, proxy: str | None = None, login: tuple[str, str] | None = None
) -> AsyncGenerator[LiveResponse]:
    """Send a request over a session, and close its socket when the context is left before the end of the response."""
    import aiohttp

    authorization = _proxy_authorization(login)
    is_tunnel = post.url.startswith(
        "https:"
    )  # then only the proxy may see its header, else it is in the request itself
    try:
        response = await session.request(
            post.method,
            _url(post.url),
            data=_payload(post.body),
            headers=post.headers if is_tunnel else {**post.headers, **authorization},
            allow_redirects=False,
            proxy=proxy,
            proxy_headers=authorization if proxy and is_tunnel else None,
        )
    except aiohttp.ClientHttpProxyError as error:
        raise ModelError(f"the proxy at {url_origin(proxy or '')} refused: {error.status}", kind="network") from None
    except aiohttp.ClientProxyConnectionError as error:
        raise ModelError(
            f"the proxy at {url_origin(proxy or '')} does not answer: {error.os_error.strerror or error}; check HTTPS_PROXY",
            kind="network",
            retryable=True,
        ) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        reason = replace_surrogates(str(getattr(error, "strerror", None) or error or type(error).__name__))
        raise ModelError(
            f"no server answers at {url_origin(post.url)}: {reason}; {_advice(error)}",
            kind="network",
            retryable=not isinstance(error, ValueError),
        ) from error
    try:
        yield LiveResponse(response)
    finally:
        if response.content.at_eof():
            response.release()  # the connection can be reused
        else:
            response.close()


def _proxy_authorization(login: tuple[str, str] | None) -> dict[str, str]:
    """The header that logs in at a proxy."""
    return {"Proxy-Authorization": f"Basic {b64encode(':'.join(login).encode()).decode()}"} if login else {}


def _payload(body: bytes) -> bytes | BytesIO | None:
    """A body as aiohttp takes it: large ones as a file, which it sends in pieces."""
    return BytesIO(body) if len(body) > LARGE_BODY else body or None


@lru_cache
def _url(url: str) -> URL:
    from yarl import URL

    return URL(url, encoded=True)


@cache
def _proxy(scheme: str, host: str) -> tuple[str | None, tuple[str, str] | None]:
    """The proxy of the environment, and its login.

    Not by aiohttp's `trust_env`, which would send a netrc password with our key.
    """
    from urllib.request import getproxies, proxy_bypass  # as slow to import as aiohttp, and needed only with it

    proxies = getproxies()
    proxy = None if proxy_bypass(host) else proxies.get(scheme) or proxies.get("all")
    if proxy is None:
        return None, None
    parts = urlsplit(proxy)
    login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return url_origin(proxy), login
