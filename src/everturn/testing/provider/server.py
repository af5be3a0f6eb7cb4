"""Provider server: binds a port, refuses requests or answers them, and records them.

A request is checked in this order: its API key, its model, its validity, and the step of the script that answers it.
The `ScriptLibrary` does the last.
"""

from __future__ import annotations

import asyncio
import resource
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct

from everturn.testing.provider.answers import Answer, make_answer
from everturn.testing.provider.connection import Connection, ExchangeObserver, Request
from everturn.testing.provider.faults import Format, Refused, error_body
from everturn.testing.provider.files import FileCabinet
from everturn.testing.provider.library import ScriptLibrary
from everturn.testing.provider.media.requests import MEDIA, Media, read_media_request
from everturn.testing.provider.render.media_models import MediaMaker
from everturn.testing.provider.request_body import decode
from everturn.testing.provider.routes import ProviderRoute, check_route, find_route
from everturn.testing.provider.script import Script, Step
from everturn.testing.provider.strict.gemini import check_alt
from everturn.testing.provider.strict.media import check_media
from everturn.testing.provider.strict.request import check, model_of

MAX_SEEN = 10_000


class RecordedRequest(Struct):
    """A request, and its outcome; times are the event loop's, and `closed` is empty while it is being answered."""

    format: Format | Media
    model: str
    body: dict[str, Any]
    headers: dict[str, str]
    status: int
    opened: float
    closed: float | None = None
    is_closed_early: bool = False


class Provider:
    """A local model server for tests and benchmarks, as strict as the real ones.

        async with Provider() as provider:
            provider.script("my-model", [[Call("read", '{"path": "a.txt"}')], [Say("It says hello.")]])

    `strict=False` serves whatever has a model, `record=False` keeps nothing of a request, and with a `key` every
    request must bring it.
    """

    def __init__(self, port: int = 0, *, strict: bool = True, key: str | None = None, record: bool = True) -> None:
        self._port, self._strict, self._key, self._record = port, strict, key, record
        self._library, self._studio = ScriptLibrary(), MediaMaker()
        self.cabinet = FileCabinet()
        self._seen: deque[RecordedRequest] = deque(maxlen=MAX_SEEN)
        self._refusals: deque[str] = deque(maxlen=MAX_SEEN)
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._under_way = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self.requests = self.refused = self.open_max = 0

    # lifecycle ----------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Provider:
        """Bind the port."""
        self._loop = asyncio.get_running_loop()
        self._server = await self._loop.create_server(
            lambda: Connection(self, self._loop), "127.0.0.1", self._port, backlog=4096
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the port and every connection."""
        assert self._server is not None
        self._server.close()
        for connection in tuple(self._connections):
            connection.transport.abort()
        await self._server.wait_closed()
        await asyncio.sleep(0)  # aborted connections are notified in the next iteration of the loop

    @property
    def url(self) -> str:
        """Its address. The base URL of most formats is this and `/v1`, of gemini `/v1beta`; of ollama and the clouds, this."""
        return f"http://127.0.0.1:{self._port}"

    def script(self, model: str, steps: Sequence[Step], *, sequence: bool = False, pace: float = 0.0) -> None:
        """Set the script of a model: one step per request of a turn, or one per request in order of arrival.

        Raises:
            TypeError: a step is neither a list of items nor a function.
        """
        for step in steps:
            if not (callable(step) or isinstance(step, list | tuple)):
                raise TypeError(f"a step is a list of items or a function that returns one, not {step!r}")
        if not steps:
            raise TypeError("a script has at least one step")
        self._library.add(model, Script(tuple(steps), pace, sequence))

    @property
    def seen(self) -> list[RecordedRequest]:
        """The last requests to a model, newest last."""
        return list(self._seen)

    @property
    def refusals(self) -> list[str]:
        """The reason of each 400, newest last."""
        return list(self._refusals)

    def reset(self) -> None:
        """Forget the recorded requests and refusals."""
        self._seen.clear()
        self._refusals.clear()

    async def wait_idle(self) -> None:
        """Wait until no answer is in progress: a client that has disconnected has been noticed by then."""
        await self._quiet.wait()

    def stats(self) -> dict[str, float]:
        """The answer of `GET /stats`: counts since the start, connections, and CPU seconds of this process."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "requests": self.requests,
            "refusals": self.refused,
            "open": len(self._connections),
            "open_max": self.open_max,
            "cpu": used.ru_utime + used.ru_stime,
        }

    # callbacks of a connection -----------------------------------------------------------------------------

    def connected(self, connection: Connection) -> None:
        """A client has connected."""
        self._connections.add(connection)
        self.open_max = max(self.open_max, len(self._connections))

    def disconnected(self, connection: Connection) -> None:
        """A client has disconnected."""
        self._connections.discard(connection)

    def answer(self, request: Request) -> tuple[Answer, ExchangeObserver | None]:
        """The answer to a request, and the observer of its end."""
        if (answer := self._plain_answer(request)) is not None:
            return answer, None
        media = MEDIA.get(request.path)
        route = find_route(request.path) if media is None else ProviderRoute("responses")
        if route is None or request.method != "POST":
            where = Refused(f"Invalid URL ({request.method} {request.path})", status=404)
            return make_answer(404, error_body("chat", "", where)), None
        format, named = route.format, route.model
        self.requests += 1
        body: dict[str, Any] = {}
        try:
            self._check_key(route, request)
            media_request = None if media is None else read_media_request(media, request.headers, request.body)
            body = decode(format, request.body) if media_request is None else media_request.body
            model = named or model_of(format, body)
            name, script = self._library.find(format, model)
            if self._strict and media_request is not None:
                check_media(media_request)
            elif self._strict:
                checked = check_route(route, request.query, body)
                check(format, checked, request.headers, route.cloud)
                self.cabinet.check(format, checked, _shown_key(request.headers))
            if format == "gemini" and self._strict:
                check_alt(request.query)
            if media_request is None:
                answer = self._library.answer(name, script, format, model, body)
            else:
                answer = self._studio.answer(
                    media_request, self._library.items(name, script, body), script.pace, self.url
                )
        except Refused as refused:
            model = named or str(body.get("model", ""))
            answer = make_answer(refused.status, error_body(format, model, refused))
            if refused.status == 400:
                self.refused += 1
                if self._record:
                    self._refusals.append(refused.message)
        seen = (
            RecordedRequest(media or format, model, body, request.headers, answer.status, self._loop.time())
            if self._record
            else None
        )
        if seen is not None:
            self._seen.append(seen)
        self._under_way += 1
        self._quiet.clear()
        return answer, _Exchange(self, seen)

    def _plain_answer(self, request: Request) -> Answer | None:
        """The answer to a request that no script answers; None for any other."""
        if request.method == "GET" and request.path == "/stats":
            return make_answer(200, msgspec.json.encode(self.stats()))
        if request.method == "GET" and (file := self._studio.file(request.path)) is not None:
            return make_answer(200, file, {"content-type": "image/png"})
        return self.cabinet.answer(request, _shown_key(request.headers), self.url)

    def ended(self, seen: RecordedRequest | None, *, is_early: bool) -> None:
        """An answer has ended."""
        if seen is not None:
            seen.closed, seen.is_closed_early = self._loop.time(), is_early
        self._under_way -= 1
        if not self._under_way:
            self._quiet.set()

    def _check_key(self, route: ProviderRoute, request: Request) -> None:
        headers, format = request.headers, route.format
        if self._key is not None and format == "gemini" and not route.cloud:
            return _check_google_key(self._key, request)
        own = headers.get("api-key" if route.cloud == "azure" else "x-api-key")
        if self._key is None or self._key in (None if route.cloud in ("vertex", "bedrock") else own, _bearer(headers)):
            return
        if route.cloud == "vertex":
            raise Refused("Request had invalid authentication credentials.", status=401)
        if format == "ollama":
            raise Refused("unauthorized", status=401)
        if format == "converse":
            raise Refused("Authentication failed: Please make sure your API Key is valid.", status=403)
        if format == "messages":
            raise Refused("invalid x-api-key", status=401)
        shown = _bearer(headers) or headers.get("x-api-key")
        if not shown:
            raise Refused("You didn't provide an API key.", status=401)
        text = f"Incorrect API key provided: {shown[:3]}***. You can find your API key in the settings."
        raise Refused(text, code="invalid_api_key", status=401)


class _Exchange:
    def __init__(self, provider: Provider, seen: RecordedRequest | None) -> None:
        self._provider, self._seen = provider, seen

    def ended(self, *, is_early: bool) -> None:
        self._provider.ended(self._seen, is_early=is_early)


def _bearer(headers: dict[str, str]) -> str | None:
    kind, _, key = headers.get("authorization", "").partition(" ")
    return key if kind.lower() == "bearer" else None


def _shown_key(headers: dict[str, str]) -> str:
    """The API key of a request, wherever its format has it."""
    own = headers.get("x-api-key") or headers.get("api-key") or headers.get("x-goog-api-key")
    return _bearer(headers) or own or ""


def _check_google_key(key: str, request: Request) -> None:
    """With Google a missing key is forbidden, and a wrong one is an invalid argument."""
    shown = request.headers.get("x-goog-api-key") or "".join(parse_qs(request.query).get("key", ()))
    if not shown:
        text = (
            "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or "
        )
        raise Refused(text + "other form of API consumer identity to call this API.", status=403)
    if shown != key:
        raise Refused("API key not valid. Please pass a valid API key.", code="API_KEY_INVALID")
