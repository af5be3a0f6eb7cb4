"""A request → its answer, whichever node gives it: tried again where that is harmless, and errors as they are here."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from everturn import api, errors
from everturn.errors import ConfigError, EverturnError, Forbidden, NotRecognised, ServerUnavailable, TooMuch

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

TRIES: Final = 6
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0  # seconds between two tries; twice as long each time
CONNECTING: Final = 10.0  # seconds
ANSWERING: Final = 60.0
SILENCE: Final = 45.0  # seconds without a sign of life after which a stream counts as broken: three keep-alives
_AGAIN: Final = frozenset({429, 502, 503, 504})
LONGEST_WAIT: Final = 30.0  # seconds that a server may ask us to wait before we say so instead


def code_of(error: type[EverturnError]) -> str:
    """The stable name of an error, as a server says it: `UnknownSession` is `unknown_session`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", error.__name__).lower()


_ERRORS: Final[Mapping[str, type[EverturnError]]] = {
    **{
        code_of(error): error
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, EverturnError)
    },
    **dict.fromkeys(("unfit", "bad_request", "bad_json", "media_type", "too_large", "method"), ConfigError),
    **dict.fromkeys(("csrf", "foreign_page"), Forbidden),
    **dict.fromkeys(("leaving", "busy", "too_slow", "internal"), ServerUnavailable),
}
"""By what a server calls them. What it refuses as a request makes no sense here either."""


def error_of(status: int, body: bytes, retry_after: float) -> EverturnError:
    """What a server said went wrong, as the error it would have been here."""
    try:
        view = msgspec.json.decode(body, type=api.Failure).error
    except msgspec.MsgspecError:
        return ServerUnavailable(f"the server answered {status}, and not in our words; is it an everturn server?")
    if view.code == "too_much":
        return TooMuch(view.message, retry_after)
    kind = _ERRORS.get(view.code)
    if kind is None:
        kind = NotRecognised if status == 401 else ServerUnavailable if status >= 500 else EverturnError
    try:
        return kind(view.message)
    except TypeError:  # it has more to say than a text, and that stayed there
        return ServerUnavailable(view.message) if status >= 500 else EverturnError(view.message)


def read_as(body: bytes, kind: type[T]) -> T:
    """The body of an answer as what it is to be.

    Raises:
        ServerUnavailable: it is something else.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ServerUnavailable("the server answered, and not in our words; is it an everturn server?") from None


def checked_urls(urls: str | Sequence[str]) -> list[str]:
    """Addresses of nodes that make sense.

    Raises:
        ConfigError: one does not.
    """
    given = [urls] if isinstance(urls, str) else list(urls)
    for url in given:
        if not _is_address(url):
            raise ConfigError(f"{url!r} is no address of a server; for example http://127.0.0.1:8000")
    if not given:
        raise ConfigError("which server? For example Server('http://127.0.0.1:8000', token)")
    return [url.rstrip("/") for url in given]


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0  # which raises for what is no number
            and not (parts.query or parts.fragment)
        )
    except ValueError:
        return False


class Speaker:
    """Asks the nodes of one cluster, and stays with the one that answers."""

    def __init__(self, urls: str | Sequence[str], token: str) -> None:
        self._urls, self._at = checked_urls(urls), 0
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigError("a token is needed, an API key such as evk_…; `everturn keys add` makes one")
        self._token = token
        self.relocate: Callable[[], Awaitable[None]] | None = None  # finds the server again, when it has moved
        self._session: aiohttp.ClientSession | None = None

    @property
    def http(self) -> aiohttp.ClientSession:
        """The connections; made when they are first needed."""
        if self._session is None:
            import aiohttp  # a third of a second, and only who talks to a server pays for it

            tracing = aiohttp.TraceConfig()
            tracing.on_request_headers_sent.append(_note_sending)
            self._session = aiohttp.ClientSession(
                trace_configs=[tracing],
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECTING, sock_read=ANSWERING),
            )
        return self._session

    def url(self, path: str) -> str:
        """Where to ask the node that answered last."""
        return self._urls[self._at] + path

    @property
    def headers(self) -> dict[str, str]:
        """What is shown with every request."""
        return {"authorization": f"Bearer {self._token}"}

    def point_to(self, url: str, token: str) -> None:
        """Ask another server from now on: it has what the one before had."""
        self._urls, self._at, self._token = checked_urls(url), 0, token

    async def turn_away(self) -> None:
        """Ask the next node from now on; or the server where it is now.

        Raises:
            ServerUnavailable: it has moved, and cannot be found.
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
        """Ask, and give the body of the answer. What `may_repeat` is tried again when nobody knows what became of it.

        Raises:
            EverturnError: as it would be in one process.
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
        for _ in range(TRIES):
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
                async with request as answer:
                    read = await answer.read()
                    if answer.status < 300:
                        return read
                    wait = _seconds(answer.headers.get("retry-after", ""))
                    error = error_of(answer.status, read, wait)
                    if method == "DELETE" and answer.status == 404 and len(sendings) > 1:
                        return b""  # it is gone; perhaps we have taken it away before, and were not told
                    # 401 from a server that can move: another process has its port, and a token of its own.
                    has_moved = answer.status == 401 and self.relocate is not None
                    if not has_moved and (answer.status not in _AGAIN or not may_repeat or wait > LONGEST_WAIT):
                        raise error
                    problem, pause = str(error), max(pause, wait)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                problem = str(error) or type(error).__name__
                if not may_repeat and not isinstance(error, aiohttp.ClientConnectorError):
                    raise ServerUnavailable(f"nobody knows what became of it: {problem}") from error
            await self.turn_away()
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE)
        raise ServerUnavailable(f"{', '.join(self._urls)}: no answer after {TRIES} tries: {problem}")

    async def get(self, path: str, kind: type[T], query: Mapping[str, str] | None = None) -> T:
        """Ask for something, and read the answer as what it is to be."""
        return read_as(await self.ask("GET", path, query=query), kind)

    async def aclose(self) -> None:
        """Let go of the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _note_sending(session: object, context: SimpleNamespace, params: object) -> None:
    """Count how often a request was sent. aiohttp sends some again by itself, when a connection breaks off."""
    sendings = context.trace_request_ctx
    if sendings is not None:
        sendings.append("sent")


def _seconds(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 86_400.0)
    except ValueError:
        return 0.0
