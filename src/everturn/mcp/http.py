"""A url → the streams of a session over HTTP, with an end to everything: sizes, waits, and what a dead server breaks.

The library lets an error of one request end the whole connection, and reads bodies of any size. So it is given a
transport that raises nothing: a server that cannot be reached has answered, as far as the library can tell.
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

from everturn.egress import Limits, Policy
from everturn.errors import AddressRefused, FetchFailed
from everturn.mcp.config import ServerSpec
from everturn.mcp.events import UNREACHABLE, Events, Sending
from everturn.mcp.lines import LINE_LIMIT, SMALL, dropped, mended, read_message

CONNECT: Final = 10.0  # seconds
GOODBYE: Final = 1.0  # seconds for a server to be told that a session is over
CONNECTIONS: Final = 256
UNFIT: Final = -32061  # our own code: it answered, and not so that we could take it
NOT_FOUND: Final = -32601  # as the protocol has it
_LOGIN_HEADERS: Final = frozenset(("accept", "authorization", "content-type", "mcp-protocol-version", "user-agent"))
"""What goes to whom a server has named: not the headers that the operator gave for the server."""

_LOGIN_LIMITS: Final = Limits(size=SMALL, total=30.0)
_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


class _Guarded(httpx2.AsyncBaseTransport):
    def __init__(self, spec: ServerSpec, events: Events, sending: ContextVar[Sending | None]) -> None:
        limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=20)
        self._inner = httpx2.AsyncHTTPTransport(limits=limits)
        self._events, self._sending, self._has_login = events, sending, spec.auth != "none"
        self._policy = login_policy(spec)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"  # what is packed has no size until it is too late
        sending = self._sending.get() if request.method == "POST" else None
        if sending is not None:
            sending.is_sent = True
        try:
            async with asyncio.timeout(GOODBYE if request.method == "DELETE" else None):
                if not self._policy.is_own(str(request.url)):  # a token is renewed where the server said
                    return await _elsewhere(self._policy, request)
                return await self._answer(request, await self._inner.handle_async_request(request))
        except _UNSENT as error:
            if sending is not None:
                sending.is_sent = False
            return self._gone(f"it cannot be reached: {error or type(error).__name__}")
        except (httpx2.TransportError, TimeoutError) as error:
            return self._gone(f"its connection broke: {error or type(error).__name__}")

    def _gone(self, why: str) -> httpx2.Response:
        self._events.lost(why)
        return _error(503, UNREACHABLE, why)

    async def _answer(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            return _error(502, UNFIT, "it packs its answers although it was told not to")
        if response.status_code == 404 and "mcp-session-id" in request.headers:
            await response.aclose()
            if (sending := self._sending.get()) is not None:
                sending.is_sent = False  # it does not know the session, so it did nothing in it
            return self._gone("it has forgotten the session")
        if response.status_code in (401, 403):
            if (sending := self._sending.get()) is not None:
                sending.is_sent = False
            if not self._has_login:
                self._events.login(f"it answers HTTP {response.status_code}: it wants to know who we are")
        kind = response.headers.get("content-type", "").lower()
        if kind.startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Mended(response.stream)
            return response
        if "text/event-stream" in request.headers.get("accept", "") and request.method == "POST":
            if why := _unfit(response.status_code, kind):
                await response.aclose()
                code = NOT_FOUND if response.status_code == 404 else UNFIT
                return _error(max(response.status_code, 400), code, why)
        try:
            async with asyncio.timeout(None if kind.startswith("application/json") else CONNECT):
                body = await _body(response)
        finally:
            await response.aclose()
        headers = [(key, value) for key, value in response.headers.multi_items() if key != "content-length"]
        return httpx2.Response(response.status_code, headers=headers, content=body, request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class LedAstray(httpx2.ConnectError):
    """A server named an address to which nobody goes on its word."""


def login_policy(spec: ServerSpec) -> Policy:
    """Where a login may lead: to the server itself, and to what is public. A server names its authorization server."""
    return Policy([spec.url], spec.login_hosts)


async def _elsewhere(policy: Policy, request: httpx2.Request) -> httpx2.Response:
    """Ask whom the server has named, as the policy has it."""
    headers = {name: value for name, value in request.headers.items() if name in _LOGIN_HEADERS}
    body = await request.aread()
    try:
        answer = await policy.request(request.method, str(request.url), headers, body or None, limits=_LOGIN_LIMITS)
    except AddressRefused as error:
        raise LedAstray(str(error), request=request) from None
    except FetchFailed as error:
        raise httpx2.ConnectError(str(error), request=request) from None
    return httpx2.Response(answer.status, headers=list(answer.headers), content=answer.body, request=request)


class Bounded(httpx2.AsyncBaseTransport):
    """For a login: what is larger than that has no place in it, a stream has no end, and where it leads is judged."""

    def __init__(self, policy: Policy) -> None:
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
                raise httpx2.DecodingError("it packs its answers although it was told not to", request=request)
            if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
                async for chunk in response.stream:
                    body += chunk
                    if len(body) > SMALL:
                        raise httpx2.ReadError(f"its answer is larger than {SMALL} bytes", request=request)
        finally:
            await response.aclose()
        headers = [(key, value) for key, value in response.headers.multi_items() if key != "content-length"]
        return httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Mended(httpx2.AsyncByteStream):
    """The lines of a stream, as they come, without halves of characters."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        rest = bytearray()
        async for chunk in self._inner:
            ends = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
            if ends or len(rest) > LINE_LIMIT:
                yield _mended(bytes(rest) + chunk[:ends])
                rest = bytearray(chunk[ends:])
            else:
                rest += chunk
        if rest:
            yield _mended(bytes(rest))

    async def aclose(self) -> None:
        await self._inner.aclose()


def _mended(data: bytes) -> bytes:
    return mended(data) if b"\\ud" in data or b"\\uD" in data else data


def _unfit(status: int, kind: str) -> str:
    """Why an answer is not one of an MCP server, in words for a person: the library only logs what it was."""
    if kind.startswith("application/json"):
        return ""
    if status >= 400 and status not in (401, 403):
        return f"it answers HTTP {status}; see whether its url is right"
    if status == 200:
        return f"it answers with the content type {kind[:100]!r}, not as MCP servers do; see whether its url is right"
    return ""


async def _body(response: httpx2.Response) -> bytes:
    """A body that is not too large, and in which nothing grows when it is read."""
    body = bytearray()
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    async for chunk in response.stream:
        body += chunk
        if len(body) > LINE_LIMIT:
            told = dropped(bytes(body[:256]), bytes(body[-256:]), LINE_LIMIT)
            return _encoded(told[0]) if told else b"{}"
    if len(body) <= SMALL and _is_readable(bytes(body)):
        return bytes(body)
    message = await asyncio.to_thread(read_message, bytes(body))
    return b"{}" if message is None else _encoded(message)


def _is_readable(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False
    return True


def _encoded(message: Any) -> bytes:
    fields: dict[str, Any] = {key: value for key, value in msgspec.structs.asdict(message).items() if value is not None}
    return msgspec.json.encode({"jsonrpc": "2.0", **fields})


def _error(status: int, code: int, text: str) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}}
    return httpx2.Response(status, json=body)


@contextlib.asynccontextmanager
async def http_streams(
    spec: ServerSpec, events: Events, sending: ContextVar[Sending | None], auth: Any = None
) -> AsyncGenerator[tuple[Any, Any]]:
    """The streams of a session. How long a call may take is for others to say."""
    timeout = httpx2.Timeout(connect=CONNECT, read=None, write=CONNECT, pool=CONNECT)
    async with (
        httpx2.AsyncClient(
            transport=_Guarded(spec, events, sending), headers=spec.headers, timeout=timeout, auth=auth, trust_env=False
        ) as client,
        streamable_http_client(spec.url, http_client=client, max_sse_event_size=LINE_LIMIT) as streams,
    ):
        yield streams
