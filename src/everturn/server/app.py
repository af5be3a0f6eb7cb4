"""ASGI application: authenticates a request, checks its role and body, calls the route's handler and sends the response."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from everturn import api
from everturn.access.access import Access
from everturn.access.auth.authentication import Authenticator
from everturn.access.context.server_context import ServerContext
from everturn.config.server_options import ServerOptions
from everturn.core.tenants.accounts import Principal, is_at_least
from everturn.errors import Forbidden, NotRecognised, TooMuch
from everturn.server.body_limits import (
    MIN_BYTES_PER_SECOND,
    BodyReader,
    ClientDisconnected,
    MemoryBudget,
    check_content_type,
)
from everturn.server.compression import compress_response
from everturn.server.decode import read_body, read_query
from everturn.server.errors import RequestError, error_response
from everturn.server.forwarded import read_networks, with_client_address
from everturn.server.middleware import GuardMiddleware, Receive, Scope, Send, cookie_name, find_cookies
from everturn.server.openapi import build_openapi
from everturn.server.protocols import ag_ui
from everturn.server.protocols.a2a import a2a_routes
from everturn.server.protocols.ai_sdk import routes as ai_sdk_routes
from everturn.server.protocols.openai import routes as openai_routes
from everturn.server.protocols.openai.routes import openai_error
from everturn.server.rate_limit import UNKNOWN_CREDENTIAL_BURST, UNKNOWN_CREDENTIAL_RATE, AnonymousRateLimit
from everturn.server.route import HttpRequestContext, Route
from everturn.server.router import RouteTable
from everturn.server.routes import (
    accounts,
    admin,
    audio,
    callbacks,
    hooks,
    presence,
    push,
    schedules,
    settings,
    sharing,
    traces,
    users,
    webhooks,
)
from everturn.server.routes import api as api_routes
from everturn.server.routes.passwords import password_routes
from everturn.server.routes.public import is_browser_visit, not_found_page, public_routes
from everturn.server.streams.open import StreamEndpoints
from everturn.server.streams.response import SlowReader
from everturn.telemetry import metrics
from everturn.telemetry.service_gauges import poll_services
from everturn.telemetry.trace_context import caller_trace

SEND_CHUNK: Final = 64 * 1024
THREAD_DECODE_BYTES: Final = 128 * 1024  # bytes of JSON; longer bodies are decoded in a thread
TENANT_SCOPE_KEY: Final = "everturn.tenant"  # key in the ASGI scope: the caller's tenant
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
IDEMPOTENCY_KEY_LIMIT: Final = 200
GAUGE_INTERVAL: Final = (
    10.0  # minimum seconds between two queries of the service gauges, however often /metrics is scraped
)
REFUSED_LABELS: Final = {
    "csrf": "csrf",
    "media_type": "content_type",
    "too_large": "too_large",
    "too_slow": "too_slow",
    "bad_json": "bad_request",
    "bad_request": "bad_request",
}
"""Error codes that `http_refused_total` counts, and the label of each."""


class ErrorFormat(Protocol):
    """Formats an error as the clients of one protocol expect it."""

    def __call__(self, view: api.ErrorView, status: int) -> dict[str, Any]: ...


class Application:
    """The server as one ASGI application. `is_leaving` is set when the node shuts down."""

    def __init__(
        self,
        server_context: ServerContext,
        authenticator: Authenticator,
        streams: StreamEndpoints,
        options: ServerOptions,
        extra: Sequence[Route] = (),
        *,
        render: Callable[[], bytes] = metrics.render,
        wording: dict[str, ErrorFormat] | None = None,
    ) -> None:
        self.server_context, self.authenticator, self.streams, self.options = (
            server_context,
            authenticator,
            streams,
            options,
        )
        self.is_leaving = False
        self._proxies = read_networks(options.trusted_proxies)
        own = [
            *api_routes.ROUTES,
            *admin.ROUTES,
            *accounts.ROUTES,
            *sharing.ROUTES,
            *traces.ROUTES,
            *presence.ROUTES,
            *audio.ROUTES,
            *push.ROUTES,
            *schedules.ROUTES,
            *webhooks.ROUTES,
            *settings.ROUTES,
            *hooks.ROUTES,
            *callbacks.ROUTES,
            *users.ROUTES,
        ]
        own += password_routes(self)
        own += [*public_routes(self), *self._documents(render)]
        self.table = RouteTable([*own, *extra])
        self._document = b""  # built at the first request for it
        self._bodies, self._answers = BodyReader(options), MemoryBudget()
        self._anonymous_limit, self._unknown_credential_limit = (
            AnonymousRateLimit(),
            AnonymousRateLimit(rate=UNKNOWN_CREDENTIAL_RATE, burst=UNKNOWN_CREDENTIAL_BURST),
        )
        self.gauges_polled_at = 0.0  # when the service gauges were last queried
        self._wording = wording or {}
        self._guard = GuardMiddleware(self._serve, options)

    def _documents(self, render: Callable[[], bytes]) -> list[Route]:
        async def document(context: HttpRequestContext) -> Response:
            self._document = self._document or msgspec.json.encode(build_openapi(self.table.routes))
            return Response(self._document, media_type="application/json")

        async def measures(context: HttpRequestContext) -> Response:
            if self.server_context.app.clock.now() > self.gauges_polled_at + GAUGE_INTERVAL:
                self.gauges_polled_at = self.server_context.app.clock.now()
                await poll_services(self.server_context.app)
            return Response(render(), media_type=metrics.TEXT_FORMAT)

        return [
            Route(
                method="GET",
                path="/openapi.json",
                name="openapi",
                needs="viewer",
                about="The OpenAPI document of this server.",
                handler=document,
                answer=dict[str, Any],
                tag="about",
            ),
            Route(
                method="GET",
                path="/metrics",
                name="metrics",
                needs="operator",
                about="Metrics of this node, in Prometheus format.",
                handler=measures,
                gives="bytes",
                media=(metrics.TEXT_FORMAT,),
                tag="about",
            ),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "lifespan":
            return await self._guard(with_client_address(scope, self._proxies), receive, send)
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
            except ClientDisconnected:
                return
            except Exception as error:
                response = self._problem(error, route, scope)
            tenant, size = str(scope.get(TENANT_SCOPE_KEY, "")), len(_bytes_of(response))
            self._answers.resize(tenant, 0, size)
            if self._answers.is_over(tenant, size):
                self._answers.resize(tenant, size, 0)
                response, size = self._problem(RequestError("busy"), route, scope), 0
            method = scope["method"] if scope["method"] in METHODS else "other"
            metrics.count("http_requests_total", pattern, method, str(response.status_code))
            metrics.observe("http_request_seconds", time.perf_counter() - began, pattern)
            try:
                await self._send(response, scope, receive, send)
            finally:
                self._answers.resize(tenant, size, 0)
        finally:
            metrics.add("http_requests_underway", -1)

    async def _answer(
        self, scope: Scope, receive: Receive, route: Route | None, ids: dict[str, str | None], allowed: list[str]
    ) -> Response:
        """Authenticate, authorize and decode a request, then call its handler.

        The order keeps anonymous callers from learning which paths, ids and parameters exist.

        Raises:
            EverturnError: it is refused.
        """
        request = Request(scope, receive)
        principal: Principal | None = None
        if route is None or route.needs is not None:
            principal = await self.authenticate(scope)
            scope[TENANT_SCOPE_KEY] = principal.tenant
            if route is None or not route.is_uncounted:
                self._count(principal)
        elif not route.is_cheap:
            self._anonymous_limit.take(scope)
        if route is None:
            raise RequestError("method", headers={"allow": ", ".join(allowed)}) if allowed else RequestError("unknown")
        if principal is not None and route.needs is not None:
            await self._permit(request, principal, route)
        if None in ids.values():
            raise RequestError("unknown")
        if self.is_leaving and route.gives == "events":
            raise RequestError("leaving")
        query = read_query(scope["query_string"], route.query, is_strict=route.needs is not None)
        _check_key(request)
        body = await self._read(request, receive, route, principal, ids)
        scope["path_params"] = ids
        try:
            value = body
            if route.takes == "json":
                value = await _decode_value(body or b"{}", route.body) if route.body is not None else None
            access = Access(self.server_context, principal) if principal is not None else None
            with caller_trace(request.headers.get("traceparent", "")):
                answer = await route.handler(
                    HttpRequestContext(request, self.server_context, self.streams, access, value, query)
                )
        finally:
            self._bodies.release(body, principal.tenant if principal is not None else "")
        if isinstance(answer, Response):
            return answer
        if answer is None:
            return Response(status_code=204)
        response = Response(msgspec.json.encode(answer), route.status, media_type="application/json")
        return await compress_response(response, route, request.headers.get("accept-encoding", ""))

    def _count(self, principal: Principal) -> None:
        try:
            self.server_context.count(principal.tenant)
        except TooMuch:
            metrics.count("rate_limited_total", "requests")
            raise

    async def authenticate(self, scope: Scope) -> Principal:
        """Authenticate the caller of a request.

        Raises:
            NotRecognised: the request has no credential, or an unknown one.
            TooMuch: too many unknown credentials came from this address lately, so this one is not looked up.
        """
        name = cookie_name(self.options, scope["server"][1] if scope.get("server") else 0)
        cookies = find_cookies(scope["headers"], name)
        authorizations = [value.decode("latin-1") for header, value in scope["headers"] if header == b"authorization"]
        if not cookies and not authorizations:
            self._anonymous_limit.take(scope)
            raise NotRecognised("nothing was shown")
        shown = authorizations[0] if authorizations else None, cookies[0] if cookies else None
        carrier = "both" if authorizations and cookies else "bearer" if authorizations else "cookie"
        is_remembered = self.authenticator.was_recently_valid(*shown)
        if not is_remembered:
            self._unknown_credential_limit.take(scope)  # beforehand, because many may arrive at once
        try:
            principal = await self.authenticator.authenticate(*shown)
        except NotRecognised:
            metrics.count("logins_total", carrier, "refused")
            raise
        if not is_remembered:
            self._unknown_credential_limit.refund(scope)
        metrics.count("logins_total", carrier, "known")
        return principal

    async def _permit(self, request: Request, principal: Principal, route: Route) -> None:
        assert route.needs is not None
        if not is_at_least(principal.role, route.needs):
            raise Forbidden(f"this needs the role {route.needs!r}; yours is {principal.role!r}")
        if principal.kind == "login" and route.method != "GET":
            if not await self.authenticator.is_csrf(principal, request.headers.get("x-csrf-token", "")):
                raise RequestError("csrf")

    async def _read(
        self,
        request: Request,
        receive: Receive,
        route: Route,
        principal: Principal | None,
        ids: dict[str, str | None],
    ) -> bytes:
        length = request.headers.get("content-length")
        has_body = "transfer-encoding" in request.headers or length not in (None, "0")
        check_content_type(route, request.headers.get("content-type"), has_body)
        if not has_body:
            return b""
        limit = self.options.body
        if route.upload and principal is not None:
            limit = self.server_context.agents.limits(principal.tenant).uploads or limit
        anonymous = route.body_limit(self.server_context, ids) if route.body_limit is not None else 0
        tenant = principal.tenant if principal is not None else ""
        return await self._bodies.read(receive, length, limit, tenant, anonymous)

    def _problem(self, error: Exception, route: Route | None, scope: Scope) -> Response:
        error_body, path = error_response(error), str(scope["path"])
        if error_body.view.code in REFUSED_LABELS:
            metrics.count("http_refused_total", REFUSED_LABELS[error_body.view.code])
        if route is None and error_body.status in (401, 404) and is_browser_visit(scope):
            return not_found_page(scope)
        tag = route.tag if route else "openai" if path.startswith("/v1/") else ""
        wording = self._wording.get(tag)
        body = msgspec.json.encode(wording(error_body.view, error_body.status)) if wording else error_body.body()
        return Response(body, error_body.status, error_body.headers, media_type="application/json")

    async def _send(self, response: Response, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a response; a long one in chunks, so that the send buffer holds no more than the client reads."""
        body = _bytes_of(response)
        if len(body) <= SEND_CHUNK:
            return await response(scope, receive, send)
        until = time.monotonic() + self.options.body_time + len(body) / MIN_BYTES_PER_SECOND
        await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
        for at in range(0, len(body), SEND_CHUNK):
            piece = {
                "type": "http.response.body",
                "body": body[at : at + SEND_CHUNK],
                "more_body": at + SEND_CHUNK < len(body),
            }
            try:
                async with asyncio.timeout(max(0.0, min(self.options.body_time, until - time.monotonic()))):
                    await send(piece)
            except TimeoutError:
                raise SlowReader from None


def _bytes_of(response: Response) -> bytes:
    body: Any = getattr(response, "body", b"")
    return body if isinstance(body, bytes) else b""


async def _decode_value(body: bytes, kind: Any) -> Any:
    """Decode a JSON body; a long one in a thread, so that the event loop stays free."""
    return await asyncio.to_thread(read_body, body, kind) if len(body) > THREAD_DECODE_BYTES else read_body(body, kind)


def _check_key(request: Request) -> None:
    key = request.headers.get("idempotency-key", "")
    if len(key) > IDEMPOTENCY_KEY_LIMIT or not key.isascii() or not key.isprintable():
        raise RequestError(
            "unfit", f"an Idempotency-Key has at most {IDEMPOTENCY_KEY_LIMIT} plain characters", "idempotency-key"
        )


def make_app(
    server_context: ServerContext,
    authenticator: Authenticator,
    streams: StreamEndpoints,
    options: ServerOptions,
    extra: Sequence[Route] = (),
    **more: Any,
) -> Application:
    """The server as one ASGI application: our own routes, those of the other protocols, and `extra` ones."""
    routes = [*ai_sdk_routes.ROUTES, *openai_routes.ROUTES, *ag_ui.ROUTES, *a2a_routes(options), *extra]
    return Application(
        server_context, authenticator, streams, options, routes, wording={"openai": openai_error}, **more
    )
