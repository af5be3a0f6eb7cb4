"""A hostile MCP server → where its login may lead us: to itself and to what is public, and nowhere inside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from aiohttp import web

from everturn.egress import EgressClient
from everturn.errors import AddressRefused, ConfigError, NeedsLogin
from everturn.mcp.config import ServerSpec
from everturn.mcp.http import BoundedResponse, RedirectRefused, login_policy
from everturn.mcp.oauth import TokenFile, login


class Hostile:
    """An MCP server that sends whoever logs in to a victim beside it, by one of the addresses it may name."""

    def __init__(self) -> None:
        self.url = self.victim = ""
        self.leads: dict[str, str] = {}
        self.arrived: list[str] = []  # at the victim
        self.headers: list[dict[str, str]] = []

    async def serve(self, request: web.Request) -> web.Response:
        where = self.leads.get("resource", f"{self.url}/resource")
        return web.Response(status=401, headers={"WWW-Authenticate": f'Bearer resource_metadata="{where}"'})

    async def resource(self, request: web.Request) -> web.Response:
        servers = [self.leads.get("server", self.url)]
        return web.json_response({"resource": f"{self.url}/mcp", "authorization_servers": servers})

    async def metadata(self, request: web.Request) -> web.Response:
        endpoints = {name: self.leads.get(name, f"{self.url}/{name}") for name in ("authorize", "token", "register")}
        return web.json_response(
            {
                "issuer": self.url,
                **{f"{name}_endpoint": where for name, where in endpoints.items() if name == "token"},
                "authorization_endpoint": endpoints["authorize"],
                "registration_endpoint": endpoints["register"],
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            }
        )

    async def register(self, request: web.Request) -> web.Response:
        return web.json_response({**await request.json(), "client_id": "c"}, status=201)

    async def inside(self, request: web.Request) -> web.Response:
        self.arrived.append(f"{request.method} {request.path}")
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        return web.json_response({})


@asynccontextmanager
async def hostile() -> AsyncGenerator[Hostile]:
    server = Hostile()
    attacker, victim = web.Application(), web.Application()
    attacker.router.add_post("/mcp", server.serve)
    attacker.router.add_get("/resource", server.resource)
    attacker.router.add_get("/.well-known/oauth-authorization-server", server.metadata)
    attacker.router.add_post("/register", server.register)
    victim.router.add_route("*", "/{tail:.*}", server.inside)
    runners = [web.AppRunner(app, access_log=None) for app in (attacker, victim)]
    try:
        places: list[str] = []
        for runner in runners:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            places.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
        server.url, server.victim = places
        yield server
    finally:
        for runner in runners:
            await runner.cleanup()


async def back(url: str) -> None:
    """A person who logs in at once."""
    from urllib.parse import parse_qs, urlsplit

    query = parse_qs(urlsplit(url).query)
    async with httpx2.AsyncClient() as browser:
        await browser.get(query["redirect_uri"][0], params={"code": "x", "state": query["state"][0]})


@pytest.mark.parametrize("by", ["resource", "server", "register", "token"])
async def test_a_login_is_led_nowhere_inside(by: str, tmp_path: Path) -> None:
    async with hostile() as server:
        server.leads[by] = f"{server.victim}/latest/meta-data"
        spec = ServerSpec("far", url=f"{server.url}/mcp", auth="oauth", headers={"X-Key": "secret"})
        shown: list[asyncio.Task[None]] = []
        with pytest.raises((ConfigError, NeedsLogin)):
            await login(spec, tmp_path, lambda url: shown.append(asyncio.ensure_future(back(url))), max_wait=20)
        assert server.arrived == []
        inside = ServerSpec("far", url=spec.url, auth="oauth", login_hosts=(server.victim.removeprefix("http://"),))
        with pytest.raises((ConfigError, NeedsLogin)):
            await login(inside, tmp_path, lambda url: shown.append(asyncio.ensure_future(back(url))), max_wait=20)
        assert server.arrived, "an operator can say that it is inside"
        await asyncio.gather(*shown, return_exceptions=True)


async def test_the_refusal_says_what_to_configure(tmp_path: Path) -> None:
    async with hostile() as server:
        server.leads["resource"] = f"{server.victim}/x"
        with pytest.raises(ConfigError, match=r"login_hosts = \["):
            await login(ServerSpec("far", url=f"{server.url}/mcp", auth="oauth"), tmp_path, back)


@pytest.mark.parametrize("where", ["https://10.0.0.1/x", "http://example.com/x"])
async def test_a_person_is_shown_no_address_that_nobody_should_open(where: str, tmp_path: Path) -> None:
    shown: list[str] = []
    async with hostile() as server:
        server.leads["authorize"] = where
        with pytest.raises((ConfigError, NeedsLogin)):
            await login(ServerSpec("far", url=f"{server.url}/mcp", auth="oauth"), tmp_path, shown.append, max_wait=20)
    assert shown == []


async def test_a_token_is_not_renewed_at_an_address_inside(tmp_path: Path) -> None:
    from contextvars import ContextVar

    from everturn.mcp.events import SessionEvents
    from everturn.mcp.http import _GuardedTransport
    from everturn.mcp.oauth import auth_for

    async with hostile() as server:
        spec = ServerSpec("far", url=f"{server.url}/mcp", auth="oauth")
        metadata: dict[str, Any] = {
            "issuer": server.url, "authorization_endpoint": f"{server.url}/a", "token_endpoint": f"{server.victim}/token",
            "response_types_supported": ["code"],
        }  # fmt: skip
        tokens = {"access_token": "a", "refresh_token": "r", "token_type": "Bearer"}
        client = {"client_id": "c", "redirect_uris": ["http://127.0.0.1:1/callback"]}
        TokenFile(spec, tmp_path).write(tokens=tokens, expires=1.0, client=client, server=metadata)
        transport = _GuardedTransport(spec, SessionEvents(), ContextVar("sending", default=None))
        async with httpx2.AsyncClient(transport=transport, auth=auth_for(spec, tmp_path)) as client_of:
            try:
                answer = await client_of.post(spec.url, json={})
            except (NeedsLogin, httpx2.HTTPError):
                answer = httpx2.Response(503)
        assert answer.status_code == 503
        assert server.arrived == []


async def test_headers_for_the_server_do_not_go_where_it_leads() -> None:
    spec = ServerSpec("far", url="http://127.0.0.1:9/mcp", auth="oauth", headers={"X-Key": "secret"})
    async with hostile() as server:
        policy = EgressClient([spec.url], [server.victim.removeprefix("http://")])
        async with httpx2.AsyncClient(transport=BoundedResponse(policy), headers=spec.headers) as client:
            answer = await client.get(f"{server.victim}/x")
        assert answer.status_code == 200
        assert server.arrived == ["GET /x"]
        assert server.headers[0].get("x-key") is None
        async with httpx2.AsyncClient(transport=BoundedResponse(login_policy(spec))) as client:
            with pytest.raises(RedirectRefused):
                await client.get(f"{server.victim}/x")


@pytest.mark.parametrize(
    ("address", "is_let"),
    [
        ("http://127.0.0.1:8000/x", True), ("http://127.0.0.1:8001/x", False), ("http://127.0.0.1:8000@evil.example/", False),
        ("https://example.com/token", True), ("http://example.com/token", False), ("https://example.com:22/", False),
        ("https://169.254.169.254/latest", False), ("https://10.0.0.1/", False), ("https://metadata.internal/", False),
        ("http://127.0.0.1:9000/token", True), ("http://127.0.0.1:9001/token", False), ("ftp://example.com/", False),
        ("javascript:alert(1)", False), ("file:///etc/passwd", False),
    ],
)  # fmt: skip
def test_the_policy_lets_own_origins_public_ones_and_exceptions(address: str, is_let: bool) -> None:
    policy = EgressClient(["http://127.0.0.1:8000/mcp"], ["127.0.0.1:9000"])
    if is_let:
        policy.check(address)
    else:
        with pytest.raises(AddressRefused):
            policy.check(address)


async def test_a_name_that_leads_inside_is_not_gone_to() -> None:
    async def inside(host: str) -> list[str]:
        return ["127.0.0.1"]

    with pytest.raises(AddressRefused, match="loopback"):
        await EgressClient(["https://own.example/"], resolve=inside).request("GET", "https://login.example/token")


def test_an_own_name_that_is_read_from_nobody_else_is_still_our_own() -> None:
    policy = EgressClient(["http://my_server:8000/mcp"])
    assert policy.is_own("http://my_server:8000/mcp?x=1")
    assert not policy.is_own("http://my_server:8000@evil.example/mcp")
    assert not policy.is_own("http://my_server:80001/mcp")
