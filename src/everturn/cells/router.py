"""Router: a reverse proxy that sends each request to the cell of its tenant. It keeps no state of its own.

While a tenant is held, its requests wait, and its streams end: a reader comes back with its cursor, waits with the others,
and continues in the new cell. A request that a cell refuses because the tenant is being moved (503 `tenant_moving`) has
changed nothing, and is sent again once the route has changed, if its body was small enough to keep.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, web
from yarl import URL

from everturn.cells.cell_connections import CellConnections, CellResponse
from everturn.cells.connection import connect
from everturn.cells.identity import TenantIdentity, credential_of
from everturn.cells.routes import CHANNEL, CellMap, RoutingTable, TenantRoute
from everturn.errors import EverturnError

log = logging.getLogger("everturn.router")

LOOK_SECONDS: Final = 1.0  # between two reads of the routing table, although nothing was heard
KEPT_BODY: Final = 64 * 1024  # bytes of a body that is kept until the cell has answered
WHOLE_ANSWER: Final = 64 * 1024  # bytes of an answer that is sent to the client at once, with its headers
BLOCK: Final = 64 * 1024
CONNECT_SECONDS: Final = 5.0
HOP_HEADERS: Final = (
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"),
    *("transfer-encoding", "upgrade", "expect", "content-length"),
)
_ANY_CELL: Final = (  # without a credential that would say whose it is
    *("/api/callbacks/", "/login", "/api/login", "/api/invitations/open", "/api/invitations/accept"),
)
_STREAM: Final = "text/event-stream"

Answer: TypeAlias = CellResponse | ClientResponse
"""Of a cell: to a request that was sent whole, or to one whose body was streamed."""


class CellRouter:
    """The reverse proxy."""

    def __init__(
        self, cells: CellMap, *, wait: float = 30.0, domain: str = "", hooks: Mapping[str, str] | None = None
    ) -> None:
        self._cells, self._wait = cells, wait
        self._identity = TenantIdentity(self._ask, domain, hooks)
        self._routes: dict[str, TenantRoute] = {}
        self._has_changed = asyncio.Event()  # replaced with every change
        self._is_ready = asyncio.Event()
        self._must_look = asyncio.Event()
        self._streams: dict[str, set[Answer]] = {}  # by tenant
        self._http: ClientSession | None = None
        self._connections: dict[str, CellConnections] = {}  # by cell
        self._watching: asyncio.Task[None] | None = None
        self._addresses = {name: cell.url.rstrip("/") for name, cell in cells.cells.items()}

    async def start(self) -> None:
        """Connect to the routing table; returns when it was read."""
        connector = TCPConnector(limit=0, keepalive_timeout=30)
        timeout = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        self._connections = {
            cell: CellConnections(connector, address, timeout) for cell, address in self._addresses.items()
        }
        self._http = ClientSession(
            connector=connector,
            cookie_jar=DummyCookieJar(),
            timeout=timeout,
            auto_decompress=False,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )
        self._watching = asyncio.create_task(self._watch())
        ready = asyncio.create_task(self._is_ready.wait())
        await asyncio.wait({self._watching, ready}, return_when=asyncio.FIRST_COMPLETED)
        if self._watching.done():
            ready.cancel()
            self._watching.result()

    async def aclose(self) -> None:
        """Close all connections."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
        if self._http is not None:
            await self._http.close()

    def epoch(self, tenant: str) -> int:
        """The epoch of a tenant's route, as this router knows it."""
        route = self._routes.get(tenant)
        return 0 if route is None else route.epoch

    # The routing table ------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        while True:
            try:
                await self._read_routes()
            except (EverturnError, OSError) as error:
                if not self._is_ready.is_set():
                    raise  # a wrong address is told at the start
                log.warning("the routing table cannot be read; the last known one is used: %s", error)
            await asyncio.sleep(LOOK_SECONDS)

    async def _read_routes(self) -> None:
        connection = await connect(self._cells.routes)
        try:
            table = RoutingTable(connection, self._cells.default)
            await table.create()
            await connection.add_listener(CHANNEL, self._hear)
            while True:
                self._take(await table.all())
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._must_look.wait()
                self._must_look.clear()
        except (OSError, asyncio.CancelledError, EverturnError):
            raise
        except Exception as error:
            raise OSError(str(error)) from error
        finally:
            connection.terminate()

    def _hear(self, *_: object) -> None:
        self._must_look.set()

    def _take(self, rows: list[TenantRoute]) -> None:
        routes = {row.tenant: row for row in rows}
        if routes == self._routes and self._is_ready.is_set():
            return
        for tenant in {*routes, *self._routes}:
            before, after = self._routes.get(tenant), routes.get(tenant)
            if after is not None and (after.is_held or before is None or before.cell != after.cell):
                for response in self._streams.get(tenant, ()):
                    response.close()  # the stream ends, and its reader comes back with its cursor
        self._routes = routes
        changed, self._has_changed = self._has_changed, asyncio.Event()
        changed.set()
        self._is_ready.set()

    async def _cell_of(self, tenant: str, since: int, deadline: float) -> str:
        """The cell of a tenant, once it is not held and its route is newer than `since`; "" after the deadline."""
        if cell := self._open_cell(tenant, since):
            return cell
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                while not (cell := self._open_cell(tenant, since)):
                    await self._has_changed.wait()
        return cell

    def _open_cell(self, tenant: str, since: int) -> str:
        """The cell of a tenant, if it is not held and its route is newer than `since`; else ""."""
        route = self._routes.get(tenant)
        if route is None:
            return self._cells.default if since < 0 else ""
        return "" if route.is_held or route.epoch <= since else route.cell

    # Requests ---------------------------------------------------------------------------------------------------------

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request."""
        if request.path in ("/healthz", "/readyz"):
            return web.Response(text="ok\n")
        if len(request.headers.getall("Host", [])) != 1:
            return _refusal(400, "bad_request", "the request must have exactly one Host header")
        if not request.raw_path.startswith("/"):  # a proxy's absolute URL, or CONNECT
            return _refusal(400, "bad_request", "the request must name a path, not a URL")
        if (tenant := self._identity.tenant_of_host(request.host)) == "":
            tenant = self._identity.tenant_of_hook(request.path)
        if tenant is None:
            return _refusal(404, "unknown", "this path does not exist")
        credential: dict[str, str] = {}
        if not tenant:
            credential = credential_of(request.headers)
            if credential and not (tenant := self._identity.cached(credential)):
                tenant = await self._identity.tenant_of_credential(credential, self._cell_names())
            if not tenant and request.method == "POST" and request.path.startswith(_ANY_CELL):
                return await self._try_cells(request)
        try:
            return await self._forward(request, tenant, credential)
        except (ClientError, TimeoutError, OSError) as error:
            log.warning("the cell of %r does not answer: %r", tenant, error)
            return _refusal(503, "server_unavailable", "the cell does not answer; try again")

    def _cell_names(self) -> list[str]:
        return sorted(self._addresses, key=lambda name: (name != self._cells.default, name))

    async def _forward(
        self, request: web.BaseRequest, tenant: str, credential: Mapping[str, str]
    ) -> web.StreamResponse:
        body, since = await _kept_body(request), -1
        deadline = asyncio.get_running_loop().time() + self._wait
        while True:
            cell = await self._cell_of(tenant, since, deadline) if tenant else self._cells.default
            if not cell:
                return _refusal(503, "tenant_moving", "the tenant is being moved to another cell; try again")
            route = self._routes.get(tenant)
            if body is None:
                response = await self._send_blocks(cell, request)
            else:
                response = await self._send_whole(cell, request, body)
            try:
                if response.status == 401 and credential:
                    self._identity.forget(credential)
                if response.status != 503 or body is None or not await _is_moving(response):
                    return await self._relay(request, response, tenant)
            finally:
                response.release()
            since = 0 if route is None else route.epoch
            self._must_look.set()

    async def _try_cells(self, request: web.BaseRequest) -> web.StreamResponse:
        """Send a request to each cell until one accepts it: a callback, or a login, is known to one of them only."""
        body = await request.read()
        first: CellResponse | None = None
        for cell in self._cell_names():
            try:
                response = await self._send_whole(cell, request, body)
            except (ClientError, OSError):
                continue
            await response.read()
            if response.status < 400:
                return _whole(response, await response.read())
            first = first or response
        if first is None:
            return _refusal(503, "server_unavailable", "the cell does not answer; try again")
        return _whole(first, await first.read())

    async def _send_whole(self, cell: str, request: web.BaseRequest, body: bytes) -> CellResponse:
        return await self._connections[cell].request(request.method, request.raw_path, _forwarded(request), body)

    async def _send_blocks(self, cell: str, request: web.BaseRequest) -> ClientResponse:
        assert self._http is not None
        headers = _forwarded(request)
        if "Content-Length" in request.headers:
            headers.add("Content-Length", request.headers["Content-Length"])
        url = URL(self._addresses[cell] + request.raw_path, encoded=True)
        return await self._http.request(
            request.method, url, headers=headers, data=_blocks(request), allow_redirects=False
        )

    async def _relay(self, request: web.BaseRequest, response: Answer, tenant: str) -> web.StreamResponse:
        if _is_short(request, response):
            return _whole(response, await response.read())  # one packet with headers and body
        is_stream = response.content_type == _STREAM
        answer = web.StreamResponse(
            status=response.status, reason=response.reason, headers=_end_to_end(response.headers)
        )
        if "Content-Length" in response.headers:
            answer.content_length = int(response.headers["Content-Length"])
        await answer.prepare(request)
        streams = self._streams.setdefault(tenant, set()) if is_stream else set[Answer]()
        streams.add(response)
        try:
            if response.status == 503:
                await answer.write(await response.read())  # it may have been read already
            else:
                async for block in response.content.iter_any():
                    await answer.write(block)
        except ClientError:
            if not is_stream:
                raise  # what was cut must not look whole
        finally:
            streams.discard(response)
            if is_stream and not streams:
                self._streams.pop(tenant, None)
        await answer.write_eof()
        return answer

    async def _ask(self, cell: str, credential: Mapping[str, str]) -> str | None:
        """The tenant of a credential, as a cell knows it."""
        assert self._http is not None
        try:
            url = f"{self._addresses[cell]}/api/me"
            async with self._http.get(
                url, headers=credential, timeout=ClientTimeout(total=CONNECT_SECONDS)
            ) as response:
                return json.loads(await response.read()).get("tenant") if response.status == 200 else None
        except (ClientError, TimeoutError, OSError, ValueError):
            return None


async def _kept_body(request: web.BaseRequest) -> bytes | None:
    """The body of a request, if it is small; None: it is streamed."""
    if not request.body_exists:
        return b""
    length = request.content_length
    return await request.read() if length is not None and length <= KEPT_BODY else None


async def _blocks(request: web.BaseRequest) -> AsyncIterator[bytes]:
    async for block in request.content.iter_chunked(BLOCK):
        yield block


async def _is_moving(response: Answer) -> bool:
    with suppress(ValueError, AttributeError):
        return json.loads(await response.read())["error"]["code"] == "tenant_moving"
    return False


def _is_short(request: web.BaseRequest, response: Answer) -> bool:
    """Whether an answer has so few bytes that it is not worth a packet for its headers alone."""
    length = response.headers.get("Content-Length", "")
    return request.method != "HEAD" and length.isdecimal() and len(length) < 9 and int(length) <= WHOLE_ANSWER


def _end_to_end(headers: Any) -> Any:  # a dictionary with several values for a key, as aiohttp has it
    """The headers without those of one connection, and without those that `Connection` names."""
    kept = headers.copy()
    for names in headers.getall("Connection", ()):
        for name in names.split(","):
            kept.popall(name.strip(), None)
    for name in HOP_HEADERS:
        kept.popall(name, None)
    return kept


def _forwarded(request: web.BaseRequest) -> Any:
    """The headers of a request, as a cell gets them."""
    headers = _end_to_end(request.headers)
    # Cells trust the last address only, which is the one that this process has seen.
    seen = [*headers.popall("X-Forwarded-For", ()), request.remote or ""]
    headers.add("X-Forwarded-For", ", ".join(filter(None, seen)))
    return headers


def _whole(response: Answer, body: bytes) -> web.Response:
    headers = _end_to_end(response.headers)
    return web.Response(status=response.status, reason=response.reason, headers=headers, body=body)


def _refusal(status: int, code: str, text: str) -> web.Response:
    headers = {"Retry-After": "1"} if status == 503 else {}
    body = json.dumps({"error": {"code": code, "message": text}}).encode()
    return web.Response(status=status, headers=headers, body=body, content_type="application/json")


async def serve_router(router: CellRouter, host: str, port: int, leave: asyncio.Event, ready: Any) -> None:
    """Serve until `leave` is set; calls `ready` with the address."""
    await router.start()
    runner = web.ServerRunner(
        web.Server(router.handle, access_log=None, keepalive_timeout=75.0, auto_decompress=False),
        handle_signals=False,
        shutdown_timeout=1.0,
    )
    try:
        await runner.setup()
        site = web.TCPSite(runner, host, port)
        await site.start()
        address = runner.addresses[0]
        ready(f"http://{address[0]}:{address[1]}")
        await leave.wait()
    finally:
        await runner.cleanup()
        await router.aclose()
