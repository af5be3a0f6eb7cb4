"""MCP over HTTP: the streams of a session at a URL, with limits on sizes and times, and an egress policy for logins.

The library lets an error of one request end the whole connection, and reads bodies of any size. So its transport here
raises nothing: a server that cannot be reached looks to the library like one that answered with an error.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextvars import ContextVar
from typing import Any, Final

import httpx2
import msgspec
from mcp.client.streamable_http import streamable_http_client

from everturn.egress import EgressClient, EgressPolicy, FetchLimits
from everturn.egress.client import PORTS
from everturn.errors import AddressRefused, FetchFailed
from everturn.mcp.config import ServerSpec
from everturn.mcp.events import UNREACHABLE, SentCall, SessionEvents
from everturn.mcp.jsonrpc import LINE_LIMIT, SMALL, make_too_large_error, read_message, replace_lone_surrogates

CONNECT: Final = 10.0  # seconds
GOODBYE: Final = 1.0  # seconds to tell a server that a session has ended
CONNECTIONS: Final = 256
UNFIT: Final = -32061  # our own error code: its response is not valid MCP
NOT_FOUND: Final = -32601  # of the protocol
_LOGIN_HEADERS: Final = frozenset(("accept", "authorization", "content-type", "mcp-protocol-version", "user-agent"))
"""Headers sent to addresses that a server names: without those that the operator configured for the server."""

_LOGIN_LIMITS: Final = FetchLimits(size=SMALL, total=30.0)
_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


class _GuardedTransport(httpx2.AsyncBaseTransport):
    def __init__(self, spec: ServerSpec, events: SessionEvents, sending: ContextVar[SentCall | None]) -> None:
        limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=20)
        self._inner = httpx2.AsyncHTTPTransport(limits=limits)
        self._events, self._sending, self._has_login = events, sending, spec.auth != "none"
        self._policy, self._own, self._url = login_policy(spec), EgressClient([spec.url]), httpx2.URL(spec.url)
        self._guard = EgressPolicy(spec.allow, ports=PORTS) if spec.allow is not None else None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        # The size of a compressed body is known only when it is too late.
        request.headers["accept-encoding"] = "identity"
        # A token is renewed while the call waits: that request does not send it.
        is_message = request.method == "POST" and request.url == self._url
        sending = self._sending.get() if is_message else None
        if sending is not None:
            sending.is_sent = True
        try:
            async with asyncio.timeout(GOODBYE if request.method == "DELETE" else None):
                if not self._own.is_own(str(request.url)):  # a token is renewed where the server said
                    return await _elsewhere(self._policy, request)
                pinned = request if self._guard is None else await _pin(self._guard, request)
                return await self._answer(request, await self._inner.handle_async_request(pinned))
        except (AddressRefused, FetchFailed) as error:
            if sending is not None:
                sending.is_sent = False
            return self._unreachable(f"it is not reached: {error}")
        except _UNSENT as error:
            if sending is not None:
                sending.is_sent = False
            return self._unreachable(f"it cannot be reached: {error or type(error).__name__}")
        except (httpx2.TransportError, TimeoutError) as error:
            return self._unreachable(f"its connection broke: {error or type(error).__name__}")

    def _unreachable(self, why: str) -> httpx2.Response:
        self._events.connection_lost(why)
        return _error_response(503, UNREACHABLE, why)

    async def _answer(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            return _error_response(502, UNFIT, "it compresses its responses, which was not requested")
        if response.status_code == 404 and "mcp-session-id" in request.headers:
            await response.aclose()
            if (sending := self._sending.get()) is not None:
                sending.is_sent = False  # an unknown session: the call was not run
            return self._unreachable("it has forgotten the session")
        if response.status_code in (401, 403):
            if (sending := self._sending.get()) is not None:
                sending.is_sent = False
            if not self._has_login:
                self._events.login_required(f"it answers HTTP {response.status_code}: it wants to know who we are")
        kind = response.headers.get("content-type", "").lower()
        if kind.startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Utf8Lines(response.stream)
            return response
        if "text/event-stream" in request.headers.get("accept", "") and request.method == "POST":
            if reason := _reject_reason(response.status_code, kind):
                await response.aclose()
                code = NOT_FOUND if response.status_code == 404 else UNFIT
                return _error_response(max(response.status_code, 400), code, reason)
        try:
            async with asyncio.timeout(None if kind.startswith("application/json") else CONNECT):
                body = await _read_body(response)
        finally:
            await response.aclose()
        headers = [(key, value) for key, value in response.headers.multi_items() if key != "content-length"]
        return httpx2.Response(response.status_code, headers=headers, content=body, request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class RedirectRefused(httpx2.ConnectError):
    """A server named an address that the egress policy refuses."""


def login_policy(spec: ServerSpec) -> EgressClient:
    """Return the egress policy of a login: the server itself, and public addresses, because a server names its
    authorization server. A server that an administrator named at run time is under the policy itself."""
    if spec.allow is not None:
        return EgressClient((), (*spec.allow, *spec.login_hosts))
    return EgressClient([spec.url], spec.login_hosts)


async def _pin(guard: EgressPolicy, request: httpx2.Request) -> httpx2.Request:
    """Return a request to a checked address of its host, which TLS and the Host header still name.

    Raises:
        AddressRefused: the host has a private or special address.
        FetchFailed: it has none.
    """
    place = await guard.resolve(guard.parse(str(request.url)))
    host = request.url.host
    url = request.url.copy_with(host=str(place.addresses[0]))
    extensions = {**request.extensions, "sni_hostname": host}
    return httpx2.Request(request.method, url, headers=request.headers, stream=request.stream, extensions=extensions)


async def _elsewhere(policy: EgressClient, request: httpx2.Request) -> httpx2.Response:
    """Send a request to an address that the server named, under the egress policy."""
    headers = {name: value for name, value in request.headers.items() if name in _LOGIN_HEADERS}
    body = await request.aread()
    try:
        response = await policy.request(request.method, str(request.url), headers, body or None, limits=_LOGIN_LIMITS)
    except AddressRefused as error:
        raise RedirectRefused(str(error), request=request) from None
    except FetchFailed as error:
        raise httpx2.ConnectError(str(error), request=request) from None
    return httpx2.Response(response.status, headers=list(response.headers), content=response.body, request=request)


class BoundedResponse(httpx2.AsyncBaseTransport):
    """Transport for logins: limits the size of responses, reads no event streams, and applies the egress policy."""

    def __init__(self, policy: EgressClient) -> None:
        self._policy = policy
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"
        if not self._policy.is_own(str(request.url)):
            return await _elsewhere(self._policy, request)
        response = await self._inner.handle_async_request(request)
        body = bytearray()
        try:
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            if response.headers.get("content-encoding", "identity") != "identity":
                raise httpx2.DecodingError("it compresses its responses, which was not requested", request=request)
            if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
                async for chunk in response.stream:
                    body += chunk
                    if len(body) > SMALL:
                        raise httpx2.ReadError(f"its response is larger than {SMALL} bytes", request=request)
        finally:
            await response.aclose()
        headers = [(key, value) for key, value in response.headers.multi_items() if key != "content-length"]
        return httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Utf8Lines(httpx2.AsyncByteStream):
    """The stream in whole lines, with broken surrogate escapes replaced."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        rest = bytearray()
        async for chunk in self._inner:
            line_end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
            if line_end or len(rest) > LINE_LIMIT:
                yield _replace_surrogates(bytes(rest) + chunk[:line_end])
                rest = bytearray(chunk[line_end:])
            else:
                rest += chunk
        if rest:
            yield _replace_surrogates(bytes(rest))

    async def aclose(self) -> None:
        await self._inner.aclose()


def _replace_surrogates(data: bytes) -> bytes:
    return replace_lone_surrogates(data) if b"\\ud" in data or b"\\uD" in data else data


def _reject_reason(status: int, kind: str) -> str:
    """Say why a response is not one of an MCP server, for a person; the library only logs it."""
    if kind.startswith("application/json"):
        return ""
    if status >= 400 and status not in (401, 403):
        return f"it answers HTTP {status}; see whether its url is right"
    if status == 200:
        return f"it answers with the content type {kind[:100]!r}, not as MCP servers do; see whether its url is right"
    return ""


async def _read_body(response: httpx2.Response) -> bytes:
    """Read a body up to the size limit; a large one is reduced to parts that do not grow when they are decoded."""
    body = bytearray()
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    async for chunk in response.stream:
        body += chunk
        if len(body) > LINE_LIMIT:
            messages = make_too_large_error(bytes(body[:256]), bytes(body[-256:]), LINE_LIMIT)
            return _encode_message(messages[0]) if messages else b"{}"
    if len(body) <= SMALL and _is_readable(bytes(body)):
        return bytes(body)
    message = await asyncio.to_thread(read_message, bytes(body))
    return b"{}" if message is None else _encode_message(message)


def _is_readable(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False
    return True


def _encode_message(message: Any) -> bytes:
    fields: dict[str, Any] = {key: value for key, value in msgspec.structs.asdict(message).items() if value is not None}
    return msgspec.json.encode({"jsonrpc": "2.0", **fields})


def _error_response(status: int, code: int, text: str) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}}
    return httpx2.Response(status, json=body)


@contextlib.asynccontextmanager
async def http_streams(
    spec: ServerSpec, events: SessionEvents, sending: ContextVar[SentCall | None], auth: Any = None
) -> AsyncGenerator[tuple[Any, Any]]:
    """Open the streams of a session. Timeouts of calls are the caller's."""
    timeout = httpx2.Timeout(connect=CONNECT, read=None, write=CONNECT, pool=CONNECT)
    async with (
        httpx2.AsyncClient(
            transport=_GuardedTransport(spec, events, sending),
            headers=spec.headers,
            timeout=timeout,
            auth=auth,
            trust_env=False,
        ) as client,
        streamable_http_client(spec.url, http_client=client, max_sse_event_size=LINE_LIMIT) as streams,
    ):
        yield streams
