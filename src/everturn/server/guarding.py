"""The wall around the whole application: who may knock at all, and what every answer carries.

A page of somebody else's must not reach us through a browser: not by a name that was bent to our address (Host), not as
itself (Origin, Sec-Fetch-Site), not by a form. Nothing here knows who is asking.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final
from urllib.parse import urlsplit

from everturn.config.options import ServerOptions
from everturn.server.problems import Refusal, told
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

ONCE: Final = frozenset(
    (b"host", b"origin", b"authorization", b"content-type", b"content-length", b"x-csrf-token", b"idempotency-key")
)
"""Headers of which two would let two readers see two requests."""

ASKS: Final = b"authorization, content-type, idempotency-key, last-event-id, x-everturn-session, x-everturn-wait"
TELLS: Final = (
    b"retry-after, x-everturn-session, x-everturn-turn, x-everturn-ignored, x-should-retry, "
    b"x-vercel-ai-ui-message-stream"
)
_NAMES: Final = re.compile(rb"[a-z0-9-]{1,64}(?:\s*,\s*[a-z0-9-]{1,64}){0,63}", re.IGNORECASE)
NOT_OUR_NAME: Final = (
    "this request came by a name that is none of ours; the operator names it under [server] hosts or public_url"
)
TOLD: Final = 20  # names that are none of ours and are written to the log
LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


def cookie_name(options: ServerOptions, port: int) -> str:
    """What the cookie of a login is called. Cookies of one machine go to all its ports, so ours names its own."""
    return "__Host-everturn" if options.public_url.startswith("https://") else f"everturn-{port}"


def cookies_of(headers: Iterable[tuple[bytes, bytes]], name: str) -> list[str]:
    """All cookies of a name that a request brings."""
    wanted = name.encode()
    found: list[str] = []
    for header, value in headers:
        if header == b"cookie":
            for pair in value.split(b";"):
                key, has_value, text = pair.strip(b" \t").partition(b"=")
                if has_value and key == wanted:
                    found.append(text.decode("latin-1"))
    return found


class Names:
    """By which names we are known: what may stand in Host, and which pages are ours."""

    def __init__(self, options: ServerOptions) -> None:
        self._public = urlsplit(options.public_url).netloc.lower()
        self._is_https = options.public_url.startswith("https://")
        self._hosts = {host.lower() for host in options.hosts} | ({self._public} if self._public else set[str]())

    def are_ours(self, host: str, server: tuple[str, int | None] | None) -> bool:
        """Whether this Host is meant for us: configured, or the very address that was connected to."""
        host = host.lower()
        name, port = _split(host)
        if host in self._hosts or name in self._hosts:
            return True
        if server is None or (port or 80) != server[1]:
            return False
        address = f"[{server[0]}]" if ":" in server[0] else server[0]
        return name == address or (_is_loopback(server[0]) and name in LOOPBACK)

    def origin(self, host: str) -> str:
        """The origin of our own pages, for somebody who knows us by this Host."""
        is_https = self._is_https and host.lower() == self._public
        return f"{'https' if is_https else 'http'}://{host.lower()}"


def _split(host: str) -> tuple[str, int | None]:
    name, colon, port = host.rpartition(":")
    if colon and port.isascii() and port.isdigit() and len(port) <= 5:
        return name, int(port)
    return host, None


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


class Guard:
    """An application, behind the wall."""

    def __init__(self, app: App, options: ServerOptions) -> None:
        self._app, self._options, self._names = app, options, Names(options)
        self._origins = {origin.lower() for origin in options.origins}
        self._told: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, or refuse."""
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close", "code": 1008})
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        wire = _Wire(scope, receive, send)
        try:
            origin = self._check(scope)
        except Refusal as refusal:
            answer = told(refusal)
            metrics.count("http_refused_total", {"foreign_page": "origin"}.get(refusal.code, "bad_request"))
            return await _say(wire.send, answer.status, answer.body(), answer.headers)
        if origin:
            wire.more = [
                (b"access-control-allow-origin", origin.encode()),
                (b"access-control-expose-headers", TELLS),
                (b"vary", b"Origin"),
            ]
            if scope["method"] == "OPTIONS":
                return await _preflight(wire.send, scope)
        await self._app(scope, wire.receive, wire.send)

    def _say_once(self, host: str) -> None:
        """Let the operator know by which name somebody came, once for each of the first few."""
        if host not in self._told and len(self._told) < TOLD:
            self._told.add(host)
            log.warning(
                "a request for the host %r was refused: [server] hosts or public_url does not name it", host[:200]
            )

    def _check(self, scope: Scope) -> str:
        """See that this may come in; the origin, when it is one of those who are let in with a token.

        Raises:
            Refusal: it may not.
        """
        headers: Headers = scope["headers"]
        if sum(len(name) + len(value) + 4 for name, value in headers) > self._options.headers:
            raise Refusal("headers_too_large", headers={"connection": "close"})
        seen: dict[bytes, str] = {}
        for name, value in headers:
            if name in ONCE and name in seen:
                raise Refusal("bad_request", f"the header {name.decode()} comes twice")
            seen[name] = value.decode("latin-1")
        port = scope["server"][1] if scope.get("server") else 0
        cookies = cookies_of(headers, cookie_name(self._options, port))
        if len(cookies) > 1:
            raise Refusal("bad_request", "the cookie of a login comes twice")
        host = seen.get(b"host", "")
        if not self._names.are_ours(host, scope.get("server")):
            self._say_once(host)
            raise Refusal("foreign_page", NOT_OUR_NAME)
        if b"upgrade" in seen and "websocket" in seen[b"upgrade"].lower():
            raise Refusal("foreign_page", "there are no web sockets here")
        if cookies and seen.get(b"sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refusal("foreign_page")
        origin = seen.get(b"origin")
        if origin is None or origin.lower() == self._names.origin(host):
            return ""
        is_asking = scope["method"] == "OPTIONS" and b"access-control-request-method" in seen
        has_token = seen.get(b"authorization", "").lower().startswith("bearer ") and not cookies
        if origin.lower() in self._origins and (is_asking or has_token):
            return origin
        raise Refusal("foreign_page")


class _Wire:
    """What goes to and fro in one request: every answer is dressed, and ends the connection if the body is not read."""

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
            given: Headers = list(message.get("headers", ()))
            names = {name.lower() for name, _ in given}
            dress = [pair for pair in SECURITY if pair[0] not in names]
            # What is left of a body would be read as the next request, or for ever.
            close = [] if self._is_read or b"connection" in names else [(b"connection", b"close")]
            message = {**message, "headers": [*given, *dress, *self.more, *close]}
        await self._send(message)


async def _preflight(send: Send, scope: Scope) -> None:
    """Say that a page that was named may ask: also with headers that we know nothing of, for clients bring their own."""
    wanted = b"".join(value for name, value in scope["headers"] if name == b"access-control-request-headers")
    also = b", " + wanted if _NAMES.fullmatch(wanted) else b""
    headers = {
        "access-control-allow-methods": "GET, POST, PUT, DELETE",
        "access-control-allow-headers": (ASKS + also).decode(),
        "access-control-max-age": "600",
    }
    await _say(send, 204, b"", headers)


async def _say(send: Send, status: int, body: bytes, headers: dict[str, str]) -> None:
    shape: Headers = [(name.encode(), value.encode()) for name, value in headers.items()]
    if body:
        shape += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": shape})
    await send({"type": "http.response.body", "body": body})
