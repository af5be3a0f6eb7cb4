"""Guard middleware: checks Host, Origin and headers of every request, and adds security and CORS headers to every response.

A foreign web page must not reach the server through a browser: not by DNS rebinding (Host), not by a cross-origin request
(Origin, Sec-Fetch-Site), and not by a form. Nothing here authenticates the caller.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final
from urllib.parse import urlsplit

from everturn.config.server_options import ServerOptions
from everturn.core.rules.urls import is_loopback
from everturn.server.errors import RequestError, error_response
from everturn.telemetry import metrics

log = logging.getLogger("everturn.server")

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

SECURITY: Final[Headers] = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]

SINGLE_HEADERS: Final = frozenset(
    (b"host", b"origin", b"authorization", b"content-type", b"content-length", b"x-csrf-token", b"idempotency-key")
)
"""Headers that may come once only: with two of them a proxy and the server could read two different requests."""

CORS_REQUEST_HEADERS: Final = (
    b"authorization, content-type, idempotency-key, last-event-id, x-everturn-session, x-everturn-wait"
)
CORS_RESPONSE_HEADERS: Final = (
    b"retry-after, x-everturn-session, x-everturn-turn, x-everturn-ignored, x-should-retry, "
    b"x-vercel-ai-ui-message-stream"
)
_NAMES: Final = re.compile(rb"[a-z0-9-]{1,64}(?:\s*,\s*[a-z0-9-]{1,64}){0,63}", re.IGNORECASE)
RETURN_PATHS: Final = ("/mcp/login",)
"""Pages to which another site sends a browser back. They do nothing as the user whose cookie came along."""

FOREIGN_HOST: Final = (
    "this server does not serve the host that the request names; the operator adds it to [server] hosts or public_url"
)
LOGGED_HOSTS_LIMIT: Final = 20  # foreign host names that are logged at most
LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


def cookie_name(options: ServerOptions, port: int) -> str:
    """The name of the login cookie. It contains the port, because browsers send a host's cookies to all its ports."""
    return "__Host-everturn" if options.public_url.startswith("https://") else f"everturn-{port}"


def find_cookies(headers: Iterable[tuple[bytes, bytes]], name: str) -> list[str]:
    """All cookies of this name in a request."""
    wanted = name.encode()
    cookies: list[str] = []
    for header, value in headers:
        if header == b"cookie":
            for pair in value.split(b";"):
                key, has_value, text = pair.strip(b" \t").partition(b"=")
                if has_value and key == wanted:
                    cookies.append(text.decode("latin-1"))
    return cookies


def find_cookie_names(headers: Iterable[tuple[bytes, bytes]], prefix: str) -> list[str]:
    """The names of the cookies of a request that begin so, in its order: with one path, browsers send the oldest first."""
    pairs = (pair for header, value in headers if header == b"cookie" for pair in value.split(b";"))
    names = (pair.strip(b" \t").partition(b"=")[0].decode("latin-1") for pair in pairs)
    return [name for name in names if name.startswith(prefix)]


class AllowedHosts:
    """The host names of this server: which Host headers are accepted, and which origin is our own."""

    def __init__(self, options: ServerOptions) -> None:
        self._public = urlsplit(options.public_url).netloc.lower()
        self._is_https = options.public_url.startswith("https://")
        self._hosts = {host.lower() for host in options.hosts} | ({self._public} if self._public else set[str]())

    def is_allowed(self, host: str, server: tuple[str, int | None] | None) -> bool:
        """Whether this Host is ours: a configured name, or the address that the client connected to."""
        host = host.lower()
        name, port = _split(host)
        if host in self._hosts or name in self._hosts:
            return True
        if server is None or (port or 80) != server[1]:
            return False
        address = f"[{server[0]}]" if ":" in server[0] else server[0]
        return name == address or (is_loopback(server[0]) and name in LOOPBACK)

    def origin(self, host: str) -> str:
        """The origin of our own web UI for a client that uses this Host."""
        is_https = self._is_https and host.lower() == self._public
        return f"{'https' if is_https else 'http'}://{host.lower()}"


def _split(host: str) -> tuple[str, int | None]:
    name, colon, port = host.rpartition(":")
    if colon and port.isascii() and port.isdigit() and len(port) <= 5:
        return name, int(port)
    return host, None


class GuardMiddleware:
    """ASGI middleware that refuses foreign requests before the application sees them."""

    def __init__(self, app: App, options: ServerOptions) -> None:
        self._app, self._options, self._names = app, options, AllowedHosts(options)
        self._origins = {origin.lower() for origin in options.origins}
        self._logged_hosts: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close", "code": 1008})
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        wire = _GuardedExchange(scope, receive, send)
        try:
            origin = self._check(scope)
        except RequestError as refusal:
            answer = error_response(refusal)
            metrics.count("http_refused_total", {"foreign_page": "origin"}.get(refusal.code, "bad_request"))
            return await _send_response(wire.send, answer.status, answer.body(), answer.headers)
        if origin:
            wire.more = [
                (b"access-control-allow-origin", origin.encode()),
                (b"access-control-expose-headers", CORS_RESPONSE_HEADERS),
                (b"vary", b"Origin"),
            ]
            if scope["method"] == "OPTIONS":
                return await _preflight(wire.send, scope)
        await self._app(scope, wire.receive, wire.send)

    def _log_foreign_host(self, host: str) -> None:
        """Log a foreign host name, once for each of the first few, so that the operator can configure it."""
        if host not in self._logged_hosts and len(self._logged_hosts) < LOGGED_HOSTS_LIMIT:
            self._logged_hosts.add(host)
            log.warning(
                "a request for the host %r was rejected: add it to [server] hosts, or set public_url", host[:200]
            )

    def _check(self, scope: Scope) -> str:
        """Check a request. Returns its origin if that is a configured foreign one, which may send a bearer token, else "".

        Raises:
            RequestError: the request is refused.
        """
        headers: Headers = scope["headers"]
        if sum(len(name) + len(value) + 4 for name, value in headers) > self._options.headers:
            raise RequestError("headers_too_large", headers={"connection": "close"})
        seen: dict[bytes, str] = {}
        for name, value in headers:
            if name in SINGLE_HEADERS and name in seen:
                raise RequestError("bad_request", f"the header {name.decode()} was sent twice")
            seen[name] = value.decode("latin-1")
        port = scope["server"][1] if scope.get("server") else 0
        cookies = find_cookies(headers, cookie_name(self._options, port))
        if len(cookies) > 1:
            raise RequestError("bad_request", "the login cookie was sent twice")
        host = seen.get(b"host", "")
        if not self._names.is_allowed(host, scope.get("server")):
            self._log_foreign_host(host)
            raise RequestError("foreign_page", FOREIGN_HOST)
        if b"upgrade" in seen and "websocket" in seen[b"upgrade"].lower():
            raise RequestError("foreign_page", "WebSockets are not supported; use the event stream")
        is_return = scope["method"] == "GET" and scope["path"] in RETURN_PATHS
        if cookies and not is_return and seen.get(b"sec-fetch-site", "none") not in ("none", "same-origin"):
            raise RequestError("foreign_page")
        origin = seen.get(b"origin")
        if origin is None or origin.lower() == self._names.origin(host):
            return ""
        is_preflight = scope["method"] == "OPTIONS" and b"access-control-request-method" in seen
        has_token = seen.get(b"authorization", "").lower().startswith("bearer ") and not cookies
        if origin.lower() in self._origins and (is_preflight or has_token):
            return origin
        raise RequestError("foreign_page")


class _GuardedExchange:
    """Receive and send of one request: adds headers to the response, and closes the connection if the body was not read."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self.more: Headers = []
        headers = dict(scope["headers"])
        self._is_read = headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            self._is_read = True
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: Headers = list(message.get("headers", ()))
            names = {name.lower() for name, _ in headers}
            security = [pair for pair in SECURITY if pair[0] not in names]
            # The rest of a body would be read as the next request, or for ever.
            close = [] if self._is_read or b"connection" in names else [(b"connection", b"close")]
            message = {**message, "headers": [*headers, *security, *self.more, *close]}
        await self._send(message)


async def _preflight(send: Send, scope: Scope) -> None:
    """Answer a CORS preflight of a configured origin. Unknown header names are allowed too: clients send their own."""
    wanted = b"".join(value for name, value in scope["headers"] if name == b"access-control-request-headers")
    also = b", " + wanted if _NAMES.fullmatch(wanted) else b""
    headers = {
        "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
        "access-control-allow-headers": (CORS_REQUEST_HEADERS + also).decode(),
        "access-control-max-age": "600",
    }
    await _send_response(send, 204, b"", headers)


async def _send_response(send: Send, status: int, body: bytes, headers: dict[str, str]) -> None:
    header_list: Headers = [(name.encode(), value.encode()) for name, value in headers.items()]
    if body:
        header_list += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": header_list})
    await send({"type": "http.response.body", "body": body})
