"""HTTP requests to the nodes of a cluster: retries and failover where they are safe, and the server's errors as
exceptions.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from everturn import api, errors
from everturn.errors import ConfigError, EverturnError, Forbidden, NotRecognised, ServerUnavailable, TooMuch

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

MAX_ATTEMPTS: Final = 6
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0  # seconds between two attempts; doubled each time
CONNECT_TIMEOUT: Final = 10.0  # seconds
READ_TIMEOUT: Final = 60.0
STREAM_READ_TIMEOUT: Final = 45.0  # seconds without data after which a stream counts as broken: three keep-alives
_AGAIN: Final = frozenset({429, 502, 503, 504})
MAX_RETRY_AFTER: Final = 30.0  # seconds; a longer `Retry-After` raises instead


def error_code(error: type[EverturnError]) -> str:
    """The error code of the HTTP API: `UnknownSession` is `unknown_session`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", error.__name__).lower()


_ERRORS: Final[Mapping[str, type[EverturnError]]] = {
    **{
        error_code(error): error
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, EverturnError)
    },
    **dict.fromkeys(("unfit", "bad_request", "bad_json", "media_type", "too_large", "method"), ConfigError),
    **dict.fromkeys(("csrf", "foreign_page"), Forbidden),
    **dict.fromkeys(("leaving", "busy", "too_slow", "internal"), ServerUnavailable),
}
"""Error code -> exception. A request that the server refuses as invalid is a `ConfigError` here."""


def build_error(status: int, body: bytes, retry_after: float) -> EverturnError:
    """The exception for an error response."""
    try:
        view = msgspec.json.decode(body, type=api.ErrorResponse).error
    except msgspec.MsgspecError:
        return ServerUnavailable(f"the response with status {status} is not from an Everturn server; check the URL")
    if view.code == "too_much":
        return TooMuch(view.message, retry_after)
    kind = _ERRORS.get(view.code)
    if kind is None:
        kind = NotRecognised if status == 401 else ServerUnavailable if status >= 500 else EverturnError
    try:
        return kind(view.message)
    except TypeError:  # its constructor needs more than a text, which the response does not have
        return ServerUnavailable(view.message) if status >= 500 else EverturnError(view.message)


def decode_body(body: bytes, kind: type[T]) -> T:
    """Decode the body of a response.

    Raises:
        ServerUnavailable: the body is not of this type.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ServerUnavailable("the response is not from an Everturn server; check the URL") from None


def validate_urls(urls: str | Sequence[str]) -> list[str]:
    """Validate the URLs of nodes.

    Raises:
        ConfigError: a URL is invalid, or there is none.
    """
    nodes = [urls] if isinstance(urls, str) else list(urls)
    for url in nodes:
        if not _is_address(url):
            raise ConfigError(f"{url!r} is not the URL of a server; it looks like http://127.0.0.1:8000")
    if not nodes:
        raise ConfigError("the URL of the server is missing; for example Server('http://127.0.0.1:8000', token)")
    return [url.rstrip("/") for url in nodes]


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0  # which raises for an invalid number
            and not (parts.query or parts.fragment)
        )
    except ValueError:
        return False


class NodeClient:
    """Sends requests to the nodes of one cluster, and stays with the one that answers."""

    def __init__(self, urls: str | Sequence[str], token: str) -> None:
        self._urls, self._at = validate_urls(urls), 0
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigError("a token is required, an API key such as evk_…; `everturn keys add` creates one")
        self._token = token
        self.relocate: Callable[[], Awaitable[None]] | None = None  # finds the server again after it has moved
        self._session: aiohttp.ClientSession | None = None

    @property
    def http(self) -> aiohttp.ClientSession:
        """The connection pool, created on first use."""
        if self._session is None:
            import aiohttp  # takes a third of a second, so only programs that use a server import it

            tracing = aiohttp.TraceConfig()
            tracing.on_request_headers_sent.append(_note_sending)
            self._session = aiohttp.ClientSession(
                trace_configs=[tracing],
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=READ_TIMEOUT),
            )
        return self._session

    def url(self, path: str) -> str:
        """The URL of a path on the node that answered last."""
        return self._urls[self._at] + path

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        return {"authorization": f"Bearer {self._token}"}

    def set_server(self, url: str, token: str) -> None:
        """Use another server from now on, which has the same data."""
        self._urls, self._at, self._token = validate_urls(url), 0, token

    async def switch_node(self) -> None:
        """Switch to the next node, or to the new URL of the server.

        Raises:
            ServerUnavailable: the server has moved, and cannot be found.
        """
        self._at = (self._at + 1) % len(self._urls)
        if self.relocate is not None:
            await self.relocate()

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        data: bytes | None = None,
        kind: str = "application/json",
        query: Mapping[str, str] | None = None,
        key: str = "",
        may_repeat: bool = True,
    ) -> bytes:
        """Send a request, and return the body of the response. With `may_repeat` it is retried if its outcome is
        unknown.

        Raises:
            EverturnError: the server's error, as it would be raised in one process.
            ServerUnavailable: no node answers.
        """
        import aiohttp

        headers = {"idempotency-key": key} if key else {}
        if body is not None:
            data = msgspec.json.encode(body)
        if data is not None:
            headers["content-type"] = kind
        pause, problem = FIRST_PAUSE, ""
        sendings: list[str] = []
        for _ in range(MAX_ATTEMPTS):
            try:
                request = self.http.request(
                    method,
                    self.url(path),
                    data=data,
                    headers={**headers, **self.headers},
                    params=query,
                    allow_redirects=False,
                    trace_request_ctx=sendings,
                )
                async with request as response:
                    content = await response.read()
                    if response.status < 300:
                        return content
                    wait = _seconds(response.headers.get("retry-after", ""))
                    error = build_error(response.status, content, wait)
                    if method == "DELETE" and response.status == 404 and len(sendings) > 1:
                        return b""  # it is gone; an earlier attempt may have deleted it without a response
                    # 401 from a server that can move: another process has its port, and a token of its own.
                    has_moved = response.status == 401 and self.relocate is not None
                    if not has_moved and (response.status not in _AGAIN or not may_repeat or wait > MAX_RETRY_AFTER):
                        raise error
                    problem, pause = str(error), max(pause, wait)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                problem = str(error) or type(error).__name__
                if not may_repeat and not isinstance(error, aiohttp.ClientConnectorError):
                    raise ServerUnavailable(f"it is not known whether the request took effect: {problem}") from error
            await self.switch_node()
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE)
        raise ServerUnavailable(f"{', '.join(self._urls)}: no answer after {MAX_ATTEMPTS} tries: {problem}")

    async def get(self, path: str, kind: type[T], query: Mapping[str, str] | None = None) -> T:
        """Send a GET request, and decode the response."""
        return decode_body(await self.ask("GET", path, query=query), kind)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


async def deliver_to_hook(url: str, hook: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """Deliver a signed body to an inbound hook of a server once, and return the body of the response.

    Raises:
        EverturnError: the server refused it.
        ServerUnavailable: it does not answer.
    """
    import aiohttp

    [base] = validate_urls(url)
    timeout = aiohttp.ClientTimeout(total=READ_TIMEOUT, sock_connect=CONNECT_TIMEOUT)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session:
            sent = {"content-type": "application/json", **headers}
            address = f"{base}/api/hooks/{quote(hook, safe='')}"
            async with session.post(address, data=body, headers=sent, allow_redirects=False) as response:
                content = await response.read()
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ServerUnavailable(f"{base}: {error or type(error).__name__}") from None
    if response.status >= 300:
        raise build_error(response.status, content, 0.0)
    return content


async def _note_sending(session: object, context: SimpleNamespace, params: object) -> None:
    """Count how often a request was sent: aiohttp resends some by itself when a connection breaks."""
    sendings = context.trace_request_ctx
    if sendings is not None:
        sendings.append("sent")


def _seconds(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 86_400.0)
    except ValueError:
        return 0.0
