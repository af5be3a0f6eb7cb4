"""Routes → an application: recognise, let in or not, read, ask `Access`, and write down what it said."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from everturn import api
from everturn.access.access import House
from everturn.access.entrance import Entrance
from everturn.config.options import ServerOptions
from everturn.core.accounts import Principal, is_at_least
from everturn.errors import Forbidden, NotRecognised, TooMuch
from everturn.server import ag_ui_routes, ai_sdk_routes, native, openai_routes, overseeing, owning
from everturn.server.bodies import PACE, Bodies, Gone, Pot, check_type
from everturn.server.compression import compressed
from everturn.server.guarding import Guard, Receive, Scope, Send, cookie_name, cookies_of
from everturn.server.live import SlowReader
from everturn.server.matching import Table
from everturn.server.openai_routes import openai_error
from everturn.server.openapi import describe
from everturn.server.people import is_visit, not_found, public_routes
from everturn.server.problems import Refusal, told
from everturn.server.reading import read_body, read_query
from everturn.server.routing import Asked, Route
from everturn.server.strangers import WRONG_BURST, WRONG_RATE, Strangers
from everturn.server.streams import Streams
from everturn.telemetry import metrics
from everturn.telemetry.services import look_at_services

PIECE: Final = 64 * 1024
LONG: Final = 128 * 1024  # bytes of JSON that take a while
TENANT: Final = "everturn.tenant"  # of whoever asks, in the scope of a request
METHODS: Final = ("GET", "POST", "PUT", "DELETE")
LONGEST_KEY: Final = 200
COUNTING: Final = 10.0  # seconds between two counts of what waits, however often somebody measures
REFUSED: Final = {
    "csrf": "csrf",
    "media_type": "content_type",
    "too_large": "too_large",
    "too_slow": "too_slow",
    "bad_json": "bad_request",
    "bad_request": "bad_request",
}
"""Codes of refusals that are counted, and as what."""


class Says(Protocol):
    """How a family of routes words an error."""

    def __call__(self, view: api.ErrorView, status: int) -> dict[str, Any]: ...


class Application:
    """The server as one ASGI application. `is_leaving` is set when the node is told to go."""

    def __init__(
        self,
        house: House,
        entrance: Entrance,
        streams: Streams,
        options: ServerOptions,
        extra: Sequence[Route] = (),
        *,
        render: Callable[[], bytes] = metrics.render,
        wording: dict[str, Says] | None = None,
    ) -> None:
        self.house, self.entrance, self.streams, self.options = house, entrance, streams, options
        self.is_leaving = False
        own = [*native.ROUTES, *overseeing.ROUTES, *owning.ROUTES, *public_routes(self), *self._documents(render)]
        self.table = Table([*own, *extra])
        self._document = b""  # is made when somebody asks for it
        self._bodies, self._answers = Bodies(options), Pot()
        self._strangers, self._wrong = Strangers(), Strangers(rate=WRONG_RATE, burst=WRONG_BURST)
        self.counted = 0.0  # when it was last asked what is counted by asking
        self._wording = wording or {}
        self._guard = Guard(self._serve, options)

    def _documents(self, render: Callable[[], bytes]) -> list[Route]:
        async def document(asked: Asked) -> Response:
            self._document = self._document or msgspec.json.encode(describe(self.table.routes))
            return Response(self._document, media_type="application/json")

        async def measures(asked: Asked) -> Response:
            if self.house.runtime.clock.now() > self.counted + COUNTING:
                self.counted = self.house.runtime.clock.now()
                await look_at_services(self.house.runtime)
            return Response(render(), media_type=metrics.TEXT_FORMAT)

        return [
            Route(
                method="GET",
                path="/openapi.json",
                name="openapi",
                needs="viewer",
                about="This document.",
                handler=document,
                answer=dict[str, Any],
                tag="about",
            ),
            Route(
                method="GET",
                path="/metrics",
                name="metrics",
                needs="operator",
                about="Measures of this node, as Prometheus reads them.",
                handler=measures,
                gives="bytes",
                media=(metrics.TEXT_FORMAT,),
                tag="about",
            ),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "lifespan":
            return await self._guard(scope, receive, send)
        while True:
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return None

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        route, ids, allowed = self.table.find(scope["method"], raw.decode("latin-1"))
        pattern = route.path if route else "unknown"
        metrics.add("http_requests_underway", 1)
        try:
            try:
                response = await self._answer(scope, receive, route, ids, allowed)
            except Gone:
                return
            except Exception as error:
                response = self._problem(error, route, scope)
            tenant, size = str(scope.get(TENANT, "")), len(_bytes_of(response))
            self._answers.change(tenant, 0, size)
            if self._answers.is_over(tenant, size):
                self._answers.change(tenant, size, 0)
                response, size = self._problem(Refusal("busy"), route, scope), 0
            method = scope["method"] if scope["method"] in METHODS else "other"
            metrics.count("http_requests_total", pattern, method, str(response.status_code))
            metrics.observe("http_request_seconds", time.perf_counter() - began, pattern)
            try:
                await self._send(response, scope, receive, send)
            finally:
                self._answers.change(tenant, size, 0)
        finally:
            metrics.add("http_requests_underway", -1)

    async def _answer(
        self, scope: Scope, receive: Receive, route: Route | None, ids: dict[str, str | None], allowed: list[str]
    ) -> Response:
        """The answer to a request; the order is what keeps it from telling a stranger anything.

        Raises:
            EverturnError: it is refused.
        """
        request = Request(scope, receive)
        principal: Principal | None = None
        if route is None or route.needs is not None:
            principal = await self.recognise(scope)
            scope[TENANT] = principal.tenant
            self._count(principal)
        elif not route.is_cheap:
            self._strangers.count(scope)
        if route is None:
            raise Refusal("method", headers={"allow": ", ".join(allowed)}) if allowed else Refusal("unknown")
        if principal is not None and route.needs is not None:
            await self._permit(request, principal, route)
        if None in ids.values():
            raise Refusal("unknown")
        if self.is_leaving and route.gives == "events":
            raise Refusal("leaving")
        query = read_query(scope["query_string"], route.query, is_strict=route.needs is not None)
        _check_key(request)
        body = await self._read(request, receive, route, principal)
        scope["path_params"] = ids
        try:
            value = body
            if route.takes == "json":
                value = await _value(body or b"{}", route.body) if route.body is not None else None
            access = self.house.access(principal) if principal is not None else None
            answer = await route.handler(Asked(request, self.house, self.streams, access, value, query))
        finally:
            self._bodies.let_go(body, principal.tenant if principal is not None else "")
        if isinstance(answer, Response):
            return answer
        if answer is None:
            return Response(status_code=204)
        response = Response(msgspec.json.encode(answer), route.status, media_type="application/json")
        return await compressed(response, route, request.headers.get("accept-encoding", ""))

    def _count(self, principal: Principal) -> None:
        try:
            self.house.count(principal.tenant)
        except TooMuch:
            metrics.count("rate_limited_total", "requests")
            raise

    async def recognise(self, scope: Scope) -> Principal:
        """Who is asking.

        Raises:
            NotRecognised: nobody we know.
            TooMuch: so much that nobody knows came from this address of late that it is not even asked about.
        """
        name = cookie_name(self.options, scope["server"][1] if scope.get("server") else 0)
        cookies = cookies_of(scope["headers"], name)
        given = [value.decode("latin-1") for header, value in scope["headers"] if header == b"authorization"]
        if not cookies and not given:
            self._strangers.count(scope)
            raise NotRecognised("nothing was shown")
        shown = given[0] if given else None, cookies[0] if cookies else None
        carrier = "both" if given and cookies else "bearer" if given else "cookie"
        is_remembered = self.entrance.remembers(*shown)
        if not is_remembered:
            self._wrong.count(scope)  # beforehand, for many may come at once
        try:
            principal = await self.entrance.recognise(*shown)
        except NotRecognised:
            metrics.count("logins_total", carrier, "refused")
            raise
        if not is_remembered:
            self._wrong.give_back(scope)
        metrics.count("logins_total", carrier, "known")
        return principal

    async def _permit(self, request: Request, principal: Principal, route: Route) -> None:
        assert route.needs is not None
        if not is_at_least(principal.role, route.needs):
            raise Forbidden(f"this takes the role {route.needs!r}, and yours is {principal.role!r}")
        if principal.kind == "login" and route.method != "GET":
            if not await self.entrance.is_csrf(principal, request.headers.get("x-csrf-token", "")):
                raise Refusal("csrf")

    async def _read(self, request: Request, receive: Receive, route: Route, principal: Principal | None) -> bytes:
        length = request.headers.get("content-length")
        has_body = "transfer-encoding" in request.headers or length not in (None, "0")
        check_type(route, request.headers.get("content-type"), has_body)
        if not has_body:
            return b""
        limit = self.options.body
        if route.upload and principal is not None:
            limit = self.house.agents.limits(principal.tenant).uploads or limit
        return await self._bodies.read(receive, length, limit, principal.tenant if principal is not None else "")

    def _problem(self, error: Exception, route: Route | None, scope: Scope) -> Response:
        said, path = told(error), str(scope["path"])
        if said.view.code in REFUSED:
            metrics.count("http_refused_total", REFUSED[said.view.code])
        if route is None and said.status in (401, 404) and is_visit(scope):
            return not_found(scope)
        tag = route.tag if route else "openai" if path.startswith("/v1/") else ""
        wording = self._wording.get(tag)
        body = msgspec.json.encode(wording(said.view, said.status)) if wording else said.body()
        return Response(body, said.status, said.headers, media_type="application/json")

    async def _send(self, response: Response, scope: Scope, receive: Receive, send: Send) -> None:
        """Send an answer: what is long in pieces, so that it is held here only as fast as it is read."""
        body = _bytes_of(response)
        if len(body) <= PIECE:
            return await response(scope, receive, send)
        until = time.monotonic() + self.options.body_time + len(body) / PACE
        await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
        for at in range(0, len(body), PIECE):
            piece = {
                "type": "http.response.body",
                "body": body[at : at + PIECE],
                "more_body": at + PIECE < len(body),
            }
            try:
                async with asyncio.timeout(max(0.0, min(self.options.body_time, until - time.monotonic()))):
                    await send(piece)
            except TimeoutError:
                raise SlowReader from None


def _bytes_of(response: Response) -> bytes:
    body: Any = getattr(response, "body", b"")
    return body if isinstance(body, bytes) else b""


async def _value(body: bytes, kind: Any) -> Any:
    """What a body says; of a long one elsewhere, so that nobody waits for it."""
    return await asyncio.to_thread(read_body, body, kind) if len(body) > LONG else read_body(body, kind)


def _check_key(request: Request) -> None:
    key = request.headers.get("idempotency-key", "")
    if len(key) > LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise Refusal("unfit", f"a key is at most {LONGEST_KEY} plain characters", "idempotency-key")


def make_app(
    house: House,
    entrance: Entrance,
    streams: Streams,
    options: ServerOptions,
    extra: Sequence[Route] = (),
    **more: Any,
) -> Application:
    """The server as one ASGI application: our own routes, those of other people's protocols, and `extra` ones."""
    routes = [*openai_routes.ROUTES, *ai_sdk_routes.ROUTES, *ag_ui_routes.ROUTES, *extra]
    return Application(house, entrance, streams, options, routes, wording={"openai": openai_error}, **more)
