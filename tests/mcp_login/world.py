"""A server with users and an MCP server to which each of them logs in; the model calls what a message says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from everturn import api
from everturn.access.access import Access
from everturn.access.context.agents import Agents, AgentSpec, TenantLimits
from everturn.access.context.server_context import ServerContext
from everturn.app import App
from everturn.core.options import TurnOptions
from everturn.core.parts import TextPart, ToolPart
from everturn.core.requests import ModelRequest
from everturn.core.rules.policy import Rule
from everturn.core.tenants.accounts import LOCAL, Principal, Role, Tenant, User
from everturn.core.tenants.sharing import Share, user_subject
from everturn.mcp.login_store import LoginStore
from everturn.mcp.servers import McpServers
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from everturn.tools.subagent import SubagentTool
from tests.helpers.protected_mcp_server import Drive, browse
from tests.helpers.waiting import wait_until

RETURN_TO = "https://everturn.example/mcp/login"
USERS: dict[str, Role] = {"ada": "approver", "bob": "approver", "carol": "owner", "root": "operator"}
RULES = (Rule("drive_whose", "allow"), Rule("drive_note", "allow"), Rule("clerk", "allow"))


def answer_to(request: ModelRequest) -> Sequence[Any]:
    last = request.messages[-1]
    text = "".join(part.text for part in last.parts if isinstance(part, TextPart)) if last.role == "user" else ""
    word, _, rest = text.partition(" ")
    if word in ("whose", "note"):
        return calls(*(call(f"drive_{word}", text=each) for each in rest.split(",")))
    if word == "clerk":
        return calls(call("clerk", task=rest))
    return say("Done.")


class World:
    """A node."""

    def __init__(self, context: ServerContext, servers: McpServers) -> None:
        self.context, self.servers = context, servers

    def access(self, user: str) -> Access:
        return Access(self.context, Principal(LOCAL, user, USERS[user], f"key_{user}"))

    async def log_in(self, user: str, account: str = "", server: str = "drive") -> None:
        """Log a user in, in their own browser, to the account of the same name."""
        access = self.access(user)
        begun = await access.mcp_logins.log_in_server(server, RETURN_TO)
        assert begun.returns
        end = await access.mcp_logins.finish_login(await answer_of(begun.address, account or f"{user}@drive"))
        assert end.server == server

    async def say(self, user: str, text: str, session: str = "") -> api.MessageReceipt:
        access = self.access(user)
        if session:
            return await access.sessions.send(session, api.NewMessage(text=text))
        return await access.sessions.start(api.NewSession(text=text))

    async def results(self, user: str, sent: api.MessageReceipt) -> list[str]:
        """The results of the calls of a turn, once it is over."""
        access = self.access(user)

        async def look() -> api.TurnView | None:
            view = await access.sessions.turn(sent.session, sent.turn)
            return view if view.phase.is_terminal else None

        await wait_until(look, 60)
        page = await access.sessions.messages(sent.session, limit=200)
        parts = [part for message in page.messages if message.turn == sent.turn for part in message.parts]
        return [part.output.text for part in parts if isinstance(part, ToolPart) and part.output is not None]

    async def ask(self, user: str, text: str, session: str = "") -> list[str]:
        return await self.results(user, await self.say(user, text, session))

    async def share(self, session: str, user: str) -> None:
        row = Share(
            id=f"{session}-{user}",
            tenant=LOCAL,
            session=session,
            kind="user",
            subject=user_subject(user),
            level="write",
        )
        await self.context.app.store.sharing.add(row)

    async def gate(self, user: str, session: str) -> api.GateView:
        async def look() -> list[api.GateView]:
            return (await self.access(user).gates.page(session)).gates

        return (await wait_until(look, 60))[0]

    async def view(self, user: str) -> api.McpView:
        return (await self.access(user).admin.servers()).servers[0]


async def answer_of(address: str, account: str) -> api.FinishMcpLogin:
    """What the authorization server gives to the browser of somebody who has an account there."""
    _, where = await browse(address, account)
    assert where.startswith(RETURN_TO), where
    query = {name: values[0] for name, values in parse_qs(urlsplit(where).query).items()}
    return api.FinishMcpLogin(
        state=query["state"], code=query.get("code", ""), error=query.get("error", ""), iss=query.get("iss")
    )


@asynccontextmanager
async def world(
    drive: Drive, folder: Path, store: Any = None, login: str = "user", logins: LoginStore | None = None
) -> AsyncGenerator[World]:
    """A node with these users; `store` and `folder` may be those of an earlier one."""
    store = store or MemoryStore()
    servers = McpServers([drive.spec(login)], tokens=folder, timeout=10, logins=logins)
    app = App(
        ScriptedModel(*[answer_to] * 200),
        tools=[servers, SubagentTool("clerk", "Does it.", tools=["drive_*"])],
        store=store,
        rules=RULES,
    )
    agents = (AgentSpec("helper", TurnOptions(model="scripted"), "Helps."),)
    context = ServerContext(app, store.accounts, Agents(agents, default_limits=TenantLimits(requests=0)))
    await store.accounts.put_tenant(Tenant(LOCAL, created=1.0))
    for user, role in USERS.items():
        await store.accounts.put_user(User(LOCAL, user, role=role, created=1.0))
    await app.start()
    await asyncio.gather(*(source.wait_until_open() for source in app.sources))
    try:
        yield World(context, servers)
    finally:
        await app.aclose()
