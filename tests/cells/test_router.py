"""The router sends requests to the cell of their tenant, lets them wait during a move, and ends streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import aiohttp
import pytest
from aiohttp import web
from msgspec.structs import replace
from multidict import CIMultiDict
from yarl import URL

from everturn.cells.connection import connected
from everturn.cells.identity import TenantIdentity, credential_of
from everturn.cells.router import CellRouter, serve_router
from everturn.cells.routes import CellAddresses, CellMap, RoutingTable
from tools.servers.process import free_port

KEYS = {"Bearer key-of-acme-0123456789": "acme", "Bearer key-of-other-0123456789": "other"}


class FakeCell:
    """An HTTP server that says which cell it is."""

    def __init__(self, name: str, knows: set[str]) -> None:
        self.name, self.knows, self.is_moving = name, knows, False
        self.seen: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self._runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.1)

    async def start(self) -> None:
        await self._runner.setup()
        port = free_port()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.url = f"http://127.0.0.1:{port}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.seen.append(f"{request.method} {request.raw_path}")
        self.headers.append(dict(request.headers))
        tenant = KEYS.get(request.headers.get("Authorization", ""), "")
        if request.path == "/api/me":
            is_known = tenant in self.knows
            return web.json_response({"tenant": tenant}, status=200 if is_known else 401)
        if self.is_moving:
            return web.json_response({"error": {"code": "tenant_moving", "message": ""}}, status=503)
        if request.path.endswith("/events"):
            answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await answer.prepare(request)
            await answer.write(f"id: 1\ndata: {self.name}\n\n".encode())
            await asyncio.sleep(60)
            return answer
        if request.path.startswith(("/api/callbacks/", "/api/login", "/api/invitations/")):
            return web.Response(status=204 if request.raw_path.endswith(self.name) else 404)
        if request.path == "/long":
            return web.Response(body=b"x" * 300_000, reason="As asked")
        if request.path == "/short":
            cookies = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Connection", "X-Private"), ("X-Private", "1")]
            return web.Response(text="short", headers=CIMultiDict(cookies), reason="As asked")
        body = await request.read()
        return web.Response(text=f"{self.name} {len(body)}", headers={"X-Cell": self.name})


class RouterWorld:
    """A router, two cells and the routing table."""

    def __init__(self, address: str, cells: dict[str, FakeCell], table: RoutingTable, router: CellRouter) -> None:
        self.address, self.cells, self.table, self.router = address, cells, table, router
        self.http = aiohttp.ClientSession()

    async def get(self, path: str, tenant: str = "acme") -> tuple[int, str]:
        headers = {"Authorization": next(key for key, owner in KEYS.items() if owner == tenant)}
        url = URL(self.address + path, encoded=True)
        async with self.http.get(url, headers=headers) as response:
            return response.status, await response.text()

    async def post(self, path: str, data: bytes) -> tuple[int, str]:
        headers = {"Authorization": next(iter(KEYS))}
        async with self.http.post(self.address + path, data=data, headers=headers) as response:
            return response.status, await response.text()


@pytest.fixture
async def world(cells: CellMap) -> AsyncGenerator[RouterWorld]:
    fakes = {"a": FakeCell("a", {"acme", "other"}), "b": FakeCell("b", {"acme"})}
    for fake in fakes.values():
        await fake.start()
    served = replace(cells, cells={name: CellAddresses(name, fake.url) for name, fake in fakes.items()})
    leave, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    router = CellRouter(served, wait=20.0, domain="example.test", hooks={"github": "acme"})
    serving = asyncio.create_task(serve_router(router, "127.0.0.1", free_port(), leave, ready.set_result))
    async with connected(cells.routes) as connection:
        world = RouterWorld(await ready, fakes, RoutingTable(connection, "a"), router)
        yield world
        await world.http.close()
    leave.set()
    await serving
    for fake in fakes.values():
        await fake.stop()


async def switch(world: RouterWorld, **changes: object) -> None:
    """Change the route of the tenant, and wait until the router knows it."""
    changed = await world.table.change(await world.table.get("acme"), **changes)
    while world.router.epoch("acme") < changed.epoch:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


pytestmark = [pytest.mark.live, pytest.mark.timeout(60)]


async def test_requests_follow_the_route_of_their_tenant(world: RouterWorld) -> None:
    assert await world.get("/api/sessions?x=%2F..%41") == (200, "a 0")
    assert world.cells["a"].seen[-1] == "GET /api/sessions?x=%2F..%41", "the path is sent as it came"
    await switch(world, cell="b", is_held=True)
    waiting = asyncio.create_task(world.get("/api/sessions"))
    await asyncio.sleep(0)
    await switch(world, is_held=False)
    assert await waiting == (200, "b 0")
    assert await world.get("/api/sessions", "other") == (200, "a 0")
    assert await world.post("/api/upload", b"x" * 300_000) == (200, "b 300000")
    assert world.cells["a"].seen.count("GET /api/me") == 2, "a cell is asked once for each credential"


async def test_a_cell_is_told_which_address_the_router_has_seen(world: RouterWorld) -> None:
    headers = {"Authorization": next(iter(KEYS)), "X-Forwarded-For": "203.0.113.9"}
    async with world.http.get(f"{world.address}/api/sessions", headers=headers) as response:
        assert response.status == 200
    assert world.cells["a"].headers[-1]["X-Forwarded-For"] == "203.0.113.9, 127.0.0.1"


async def test_a_request_that_a_cell_refuses_during_a_move_is_sent_again(world: RouterWorld) -> None:
    await switch(world, cell="a")
    world.cells["a"].is_moving = True
    waiting = asyncio.create_task(world.post("/api/sessions", b"{}"))
    while "POST /api/sessions" not in world.cells["a"].seen:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await switch(world, cell="b")
    assert await waiting == (200, "b 2")


async def test_a_stream_ends_when_its_tenant_is_held(world: RouterWorld) -> None:
    headers = {"Authorization": next(iter(KEYS))}
    async with world.http.get(f"{world.address}/api/events", headers=headers) as response:
        assert await response.content.readline() == b"id: 1\n"
        await switch(world, is_held=True)
        assert (await response.read()).startswith(b"data: a")


async def test_host_names_hooks_and_callbacks(world: RouterWorld) -> None:
    await switch(world, cell="b")

    async def ask(method: str, path: str, host: str = "") -> tuple[int, str]:
        headers = {"Host": host} if host else {}
        async with world.http.request(method, world.address + path, headers=headers) as response:
            return response.status, response.headers.get("X-Cell", "")

    assert await ask("GET", "/", "acme.example.test:8350") == (200, "b")
    assert await ask("GET", "/") == (200, "a")
    assert await ask("POST", "/api/hooks/github") == (200, "b")
    assert (await ask("POST", "/api/hooks/unknown"))[0] == 404
    assert (await ask("POST", "/api/callbacks/known-in-b"))[0] == 204
    assert (await ask("POST", "/api/callbacks/unknown"))[0] == 404
    for path in ("/api/login", "/api/invitations/open", "/api/invitations/accept"):  # nobody is logged in yet
        assert (await ask("POST", f"{path}?known-in-b"))[0] == 204


async def test_a_url_where_a_path_belongs_is_refused(world: RouterWorld) -> None:
    address = URL(world.address)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(b"GET http://127.0.0.1:1/api/me HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
    writer.close()


async def test_headers_of_a_connection_stay_on_it(world: RouterWorld) -> None:
    headers = {
        "Authorization": next(iter(KEYS)),
        "Connection": "X-Private, keep-alive",
        "X-Private": "1",
        "X-Kept": "2",
    }
    async with world.http.get(f"{world.address}/api/sessions", headers=headers) as response:
        await response.read()
    seen = world.cells["a"].headers[-1]
    assert seen["X-Kept"] == "2"
    assert "X-Private" not in seen


@pytest.mark.parametrize(("path", "size"), [("/short", 5), ("/long", 300_000)])
async def test_an_answer_keeps_its_length_reason_and_repeated_headers(world: RouterWorld, path: str, size: int) -> None:
    for method in ("GET", "HEAD"):
        async with world.http.request(
            method, world.address + path, headers={"Authorization": next(iter(KEYS))}
        ) as response:
            assert (response.status, response.reason) == (200, "As asked")
            assert response.content_length == size
            assert len(await response.read()) == (size if method == "GET" else 0)
            assert response.headers.getall("Set-Cookie", []) == (["a=1", "b=2"] if path == "/short" else [])
            assert "X-Private" not in response.headers


def test_a_login_cookie_is_a_credential_and_other_cookies_are_not() -> None:
    login = "evl_" + "a" * 40
    found = credential_of({"Cookie": f"theme=dark; __Host-everturn={login}; x=1"})
    assert found == {"Cookie": f"__Host-everturn={login}"}
    assert credential_of({"Cookie": "theme=dark"}) == {}


def test_a_host_name_has_one_label_before_the_domain() -> None:
    async def ask(cell: str, credential: object) -> str | None:
        return None

    identity = TenantIdentity(ask, "example.com")
    assert identity.tenant_of_host("acme.example.com") == "acme"
    assert identity.tenant_of_host("a.b.example.com") == ""
    assert identity.tenant_of_host("example.com") == ""
    assert identity.tenant_of_host("evilexample.com") == ""
