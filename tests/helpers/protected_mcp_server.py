"""A real MCP server, made with the SDK, whose every request needs a token of the authority; it knows whose each call was."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager

import aiohttp
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from pydantic import AnyHttpUrl

from everturn.mcp.config import ServerSpec
from tests.helpers.oauth_server import Authority, authority
from tests.helpers.waiting import wait_until


class Drive:
    """The server, and what reached it."""

    def __init__(self, giver: Authority) -> None:
        self.giver, self.port = giver, 0
        self.calls: list[tuple[str, str]] = []  # whose token, and the text

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def spec(self, login: str = "user", name: str = "drive") -> ServerSpec:
        inside = self.giver.base.removeprefix("http://")
        return ServerSpec(name, url=self.url, auth="oauth", login=login, login_hosts=(inside,))  # pyright: ignore[reportArgumentType]

    async def verify_token(self, token: str) -> AccessToken | None:
        if token not in self.giver.access:
            return None
        return AccessToken(token=token, client_id="c", scopes=[], subject=self.giver.accounts[token])

    def server(self) -> MCPServer:
        issuer, resource = AnyHttpUrl(self.giver.base), AnyHttpUrl(self.url)
        auth = AuthSettings(issuer_url=issuer, resource_server_url=resource, validate_token_resource=False)
        server = MCPServer("drive", token_verifier=self, auth=auth)

        def account() -> str:
            token = get_access_token()
            assert token is not None
            return token.subject or ""

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        async def whose(text: str) -> str:
            """Say whose files these are."""
            self.calls.append((account(), text))
            await asyncio.sleep(0.01)  # calls of several people overlap
            return f"{account()}:{text}"

        @server.tool()
        def note(text: str) -> str:
            """Write a note."""
            self.calls.append((account(), text))
            return f"noted for {account()}: {text}"

        @server.resource("drive://mine", description="A note")
        def mine() -> str:
            return f"the note of {account()}"

        return server


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def drive() -> AsyncGenerator[Drive]:
    """The authority and the server, on ports of their own."""
    async with authority() as giver:
        served = Drive(giver)
        giver.issuer = f"{giver.base}/"  # as the SDK of the server writes it
        import socket

        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            sock.listen()
            served.port = sock.getsockname()[1]
            app = served.server().streamable_http_app()
            running = _Server(
                uvicorn.Config(app, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=1)
            )
            task = asyncio.create_task(running.serve(sockets=[sock]))
            try:
                await wait_until(lambda: running.started)
                yield served
            finally:
                running.should_exit = True
                await task


async def browse(address: str, account: str) -> tuple[int, str]:
    """Open a login page in the browser of somebody who has an account there; returns where it leads."""
    async with aiohttp.ClientSession(headers={"x-account": account}) as browser:
        async with browser.get(address, allow_redirects=False) as page:
            where = page.headers.get("location", "")
        if not where.startswith("http://127.0.0.1"):
            return page.status, where
        async with browser.get(where) as back:
            return back.status, where
