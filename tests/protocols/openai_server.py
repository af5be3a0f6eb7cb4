"""A real server on loopback, and the stock `openai` client in front of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from openai import AsyncOpenAI

from everturn import tool
from everturn.access.context.agents import Agents, AgentSpec, TenantLimits
from everturn.access.context.server_context import ServerContext
from everturn.app import App
from everturn.config.server_options import ServerOptions
from everturn.core.gates import Gate
from everturn.core.options import TurnOptions
from everturn.core.tenants.accounts import Tenant
from everturn.models.scripted import ScriptedModel, think
from everturn.server.app import make_app
from everturn.server.streams.open import StreamEndpoints
from everturn.stores.memory import MemoryStore
from everturn.testing import call, calls, say
from tests.helpers.server_app import PlainDoor, word

MAILS: list[str] = []
BELL: dict[str, Any] = {"type": "object", "properties": {"times": {"type": "integer"}}, "required": ["times"]}
CHAT_BELL: Any = {"type": "function", "function": {"name": "bell", "description": "Ring.", "parameters": BELL}}
RESPONSES_BELL: Any = {"type": "function", "name": "bell", "description": "Ring.", "parameters": BELL, "strict": False}


@tool(read_only=True, approval="auto")
async def look(path: str) -> str:
    """Look at a path."""
    return f"seen {path}"


@tool(idempotent=True, approval="always")
async def mail(to: str) -> str:
    """Send a mail."""
    MAILS.append(to)
    return f"sent to {to}"


HELLO: Sequence[Any] = ([think("A greeting."), say("Hello, how are you?")], [say("Fine as well.")], [say("Bye.")])
LOOKING: Sequence[Any] = ([say("I look."), calls(call("look", path="a.txt"))], [say("It is there.")])
MAILING: Sequence[Any] = ([calls(call("mail", to="ada"))], [say("It was sent.")])
RINGING: Sequence[Any] = ([say("I ring."), calls(call("bell", times=2))], [say("It rang.")])
BOTH: Sequence[Any] = ([calls(call("mail", to="ada"), call("mail", to="bob"), call("bell", times=1))], [say("Done.")])


class Served:
    """A server, its house, and clients of anybody."""

    def __init__(self, house: ServerContext, address: str, streams: StreamEndpoints, gone: set[str]) -> None:
        self.house, self.address, self.streams = house, address, streams
        self.gone = gone  # keys that hold no more
        self._clients: list[AsyncOpenAI] = []

    def client(self, role: str = "approver", tenant: str = "ours", user: str = "") -> Any:
        key = word(role, tenant, user)
        client = AsyncOpenAI(api_key=key, base_url=f"{self.address}/v1", max_retries=0, timeout=20)
        self._clients.append(client)
        return client

    async def aclose(self) -> None:
        for client in self._clients:
            await client.close()

    async def gates(self, session: str) -> list[Gate]:
        return [row.gate for row in await self.house.app.store.gates(session)]


@asynccontextmanager
async def served(
    *script: Any, keep_alive: float = 15.0, pace: float = 0.0, streams: int = 1000
) -> AsyncGenerator[Served]:
    """Serve an agent that says what it was told to."""
    MAILS.clear()
    runtime = App(ScriptedModel(*script, pace=pace), tools=[look, mail], store=MemoryStore())
    store: Any = runtime.store
    for tenant in ("ours", "theirs"):
        await store.accounts.put_tenant(Tenant(tenant))
    agents = Agents([AgentSpec("assistant", TurnOptions())], default_limits=TenantLimits(requests=0, streams=streams))
    house = ServerContext(runtime, store.accounts, agents)

    gone: set[str] = set()

    async def standing(principals: Any) -> set[str]:
        return {principal.credential for principal in principals} & gone

    options = ServerOptions(port=0, keep_alive=keep_alive, hosts=("127.0.0.1",))
    endpoints = StreamEndpoints(house, options, standing)
    door: Any = PlainDoor()
    app = make_app(house, door, endpoints, options)
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", ws="none", lifespan="off")
    server = uvicorn.Server(config)
    await endpoints.start()
    task = asyncio.get_running_loop().create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - the server has no bell for tests
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    instance = Served(house, f"http://127.0.0.1:{port}", endpoints, gone)
    try:
        yield instance
    finally:
        await instance.aclose()
        await endpoints.aclose()
        server.should_exit = True
        await task
        await runtime.aclose()
