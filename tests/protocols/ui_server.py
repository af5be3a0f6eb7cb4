"""A real server on loopback with an agent that says what it was told to, and requests to it as a face makes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import uvicorn

from everturn import tool
from everturn.access.context.agents import Agents, AgentSpec, TenantLimits
from everturn.access.context.server_context import ServerContext
from everturn.app import App
from everturn.config.server_options import ServerOptions
from everturn.core.gates import Gate
from everturn.core.options import TurnOptions
from everturn.core.tenants.accounts import Tenant
from everturn.models.scripted import ScriptedModel
from everturn.server.app import make_app
from everturn.server.streams.open import StreamEndpoints
from everturn.stores.memory import MemoryStore
from everturn.testing import call, calls, say, think
from tests.helpers.server_app import PlainDoor, word

MAILS: list[str] = []


@tool(read_only=True, approval="auto")
async def look(path: str) -> str:
    """Look at a path."""
    return f"seen {path}"


@tool(idempotent=True, approval="always")
async def mail(to: str) -> str:
    """Send a mail."""
    MAILS.append(to)
    return f"sent to {to}"


@tool(read_only=True, approval="auto", review="always")
async def peek(path: str) -> str:
    """Look at something that a person reads first."""
    return f"the secret of {path}"


TALK: Sequence[Any] = ([think("A greeting."), say("Hello, Ada.")], say("Fine."), say("Bye."))
MAILING: Sequence[Any] = (
    [say("One moment."), calls(call("look", path="a"), call("mail", to="Bob"))],
    say("It was sent."),
    say("Yes."),
)
TWICE: Sequence[Any] = (calls(call("mail", to="Ada"), call("mail", to="Bob")), say("Both."))
PEEKING: Sequence[Any] = (calls(call("peek", path="a")), say("I have read it."))
RINGING: Sequence[Any] = ([say("I ring."), calls(call("bell", times=2))], say("It rang."))
BELL = {
    "name": "bell",
    "description": "Ring a bell.",
    "schema": {"type": "object", "properties": {"times": {"type": "integer"}}, "required": ["times"]},
}


class Face:
    """Somebody's program that talks to the server."""

    def __init__(self, http: aiohttp.ClientSession, house: ServerContext, address: str, key: str) -> None:
        self.http, self.house, self.address, self.key = http, house, address, key

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """One request, and all of its answer."""
        headers = {"authorization": f"Bearer {self.key}"}
        async with self.http.request(method, self.address + path, json=body, headers=headers) as response:
            return response.status, await response.text()

    async def told(self, method: str, path: str, body: Any = None) -> list[dict[str, Any]]:
        """The messages of a stream, to its end."""
        status, text = await self.ask(method, path, body)
        assert status == 200, (status, text)
        lines = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
        return [json.loads(line) for line in lines if line != "[DONE]"]

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, body: Any = None
    ) -> AsyncGenerator[AsyncIterator[dict[str, Any]], None]:
        """The messages of a stream as they come; leaving it is a dropped connection."""
        headers = {"authorization": f"Bearer {self.key}"}
        async with self.http.request(method, self.address + path, json=body, headers=headers) as response:
            assert response.status == 200, await response.text()
            yield _messages(response)

    async def gates(self) -> list[Gate]:
        """All that stands open."""
        return [row.gate for row in await self.house.app.store.gates()]


async def _messages(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    async for line in response.content:
        text = line.decode().strip()
        if text.startswith("data: ") and text != "data: [DONE]":
            yield json.loads(text.removeprefix("data: "))


class Served:
    """A server, its house, and whoever talks to it."""

    def __init__(self, http: aiohttp.ClientSession, house: ServerContext, address: str) -> None:
        self.http, self.house, self.address = http, house, address

    def face(self, role: str = "approver", tenant: str = "ours", user: str = "") -> Face:
        return Face(self.http, self.house, self.address, word(role, tenant, user))


@asynccontextmanager
async def served(
    *script: Any, pace: float = 0.0, origins: tuple[str, ...] = (), **parts: Any
) -> AsyncGenerator[Served, None]:
    """Serve an agent that says what it was told to; other parts of its `App` may be given."""
    MAILS.clear()
    tools = [look, mail, peek]
    arguments: dict[str, Any] = {"tools": tools, "store": MemoryStore(), **parts}
    runtime = App(ScriptedModel(*script, pace=pace), **arguments)
    store: Any = runtime.store
    for tenant in ("ours", "theirs"):
        await store.accounts.put_tenant(Tenant(tenant))
    agents = Agents([AgentSpec("assistant", TurnOptions())], default_limits=TenantLimits(requests=0))
    house = ServerContext(runtime, store.accounts, agents)

    async def standing(principals: Any) -> set[str]:
        return set()

    options = ServerOptions(port=0, hosts=("127.0.0.1",), origins=origins)
    streams = StreamEndpoints(house, options, standing)
    door: Any = PlainDoor()
    app = make_app(house, door, streams, options)
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", ws="none", lifespan="off")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    await streams.start()
    task = asyncio.get_running_loop().create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as http:
            yield Served(http, house, f"http://127.0.0.1:{port}")
    finally:
        await streams.aclose()
        server.should_exit = True
        await task
        await runtime.aclose()
