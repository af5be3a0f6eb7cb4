"""A house with two tenants who have one of everything, and every route asked for by everybody.

What is expected comes from the routes themselves: `needs` says who may. What is theirs must look as if it were not there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import Struct

from everturn import api
from everturn.access.access import Access
from everturn.access.auth.authentication import Authenticator
from everturn.access.context.agents import Agents, AgentSpec, TenantLimits
from everturn.access.context.server_context import ServerContext
from everturn.app import App
from everturn.clock import SystemClock
from everturn.config.server_options import ServerOptions
from everturn.core.options import TurnOptions
from everturn.core.parts import TextPart
from everturn.core.requests import ModelRequest
from everturn.core.tenants.accounts import ROLES, Principal, Role, Tenant, User
from everturn.core.webhooks import PushTarget, Webhook
from everturn.server.app import Application, make_app
from everturn.server.protocols.openai.turns import ResponseId
from everturn.server.route import Route
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from everturn.tools.function import tool
from tests.helpers.server_app import Answer, NoStreams, ask
from tests.helpers.tools import pay
from tests.helpers.waiting import wait_until

SOON = 10.0
CANARY = "canary-of-{tenant}-0815"
"""A word that stands in everything that a tenant has."""


@tool(approval="ask", idempotent=True)
def sell(amount: int) -> str:
    """Sell."""
    return f"sold {amount}"


def _answer(request: ModelRequest) -> Sequence[Any]:
    last = request.messages[-1]
    text = "".join(part.text for part in last.parts if isinstance(part, TextPart)) if last.role == "user" else ""
    for name in ("pay", "sell"):
        if name in text:
            return calls(call(name, amount=7))
    return say("Done.")


class Things(Struct):
    """One of everything that a tenant has."""

    session: str
    message: str
    answer: str
    turn: str
    gate: str
    hash: str
    grant: str
    blob: str
    file: str
    key: str
    response: str
    schedule: str
    webhook: str
    subscription: str
    share: str
    notice: str
    invitation: str

    def ids(self) -> dict[str, str]:
        """By the names that paths have for them."""
        named = {"id": self.response, "chat": self.session, "user": "viewer", "tenant": "ours", "server": "files"}
        named |= {"vendor": "openai", "model": "fast", "hook": "issues"}
        return {**msgspec.to_builtins(self), **named, "agent": "assistant"}


class World:
    """The house, the keys of everybody in it, and what they have."""

    def __init__(self, app: Application, house: ServerContext, keys: dict[tuple[str, str], str]) -> None:
        self.app, self.house, self.keys = app, house, keys
        self.things: dict[str, Things] = {}

    def key(self, tenant: str, role: str) -> str:
        return self.keys[tenant, role]

    @property
    def routes(self) -> list[Route]:
        return self.app.table.routes

    async def ask(self, route: Route, bearer: str, ids: dict[str, str], body: Any = None) -> Answer:
        """Ask a route with ids, and a body that fits it."""
        path = "/".join(ids[part[1:-1]] if part.startswith("{") else part for part in route.path.split("/"))
        query = "&".join(f"{param.name}=canary" for param in route.query if param.is_needed)
        more: dict[str, Any] = {}
        if route.takes == "bytes":
            kind = "image/png" if route.media == ("*/*",) else route.media[0]
            more = {"body": b"data", "headers": {"content-type": kind}}
        elif route.body is not None:
            more = {"json": fitting(route, ids) if body is None else body}
        return await ask(self.app, route.method, f"{path}?{query}" if query else path, bearer, **more)


def fitting(route: Route, ids: dict[str, str]) -> dict[str, Any]:
    """A body that a route takes, with ids in it where it has any."""
    bodies: dict[str, dict[str, Any]] = {
        "answer": {"hash": ids["hash"], "allow": "once"},
        "claim": {"hash": ids["hash"], "claim": "c" * 16},
        "revert": {"root": "", "tree": "t"},
        "start": {"text": "hello"},
        "send": {"text": "hello", "after": ids["answer"]},
        "edit": {"text": "hello again"},
        "fork": {"step": 1},
        "select": {"message": ids["message"]},
        "switch_agent": {"agent": "assistant"},
        "update_session": {"title": "x"},
        "presence": {"tab": "t", "at": [{"session": ids["session"], "gate": ids["gate"]}]},
        "rate": {"rating": "up"},
        "speak": {"text": "hello"},
        "put_user": {"role": "viewer"},
        "invite": {"user": "somebody-new"},
        "change_password": {"new": "a long enough password"},
        "password_login": {"user": "owner", "password": "x"},
        "open_invitation": {"token": "x"},
        "accept_invitation": {"token": "x"},
        "write_memory": {"path": "a", "text": "x"},
        "write_prompt": {"name": "a", "text": "x"},
        "write_instructions": {"text": "x"},
        "write_session_instructions": {"text": "x"},
        "put_model_key": {"key": "sk-something-long"},
        "put_model": {"settings": {"model": "openai:m"}},
        "put_agent": {"settings": {}},
        "restore_agent": {"version": 1},
        "put_rules": {"rules": []},
        "restore_rules": {"version": 1},
        "dry_run_rules": {"rules": []},
        "explain_draft": {"rules": [], "tool": "pay"},
        "put_mcp": {"url": "https://mcp.example.com/mcp"},
        "trust_mcp": {"hash": "h"},
        "create_webhook": {"url": "https://example.com/hook"},
        "update_webhook": {"description": "x"},
        "put_hook": {"scheme": "standard", "text": "x"},
        "plan_schedule": {"cron": "0 9 * * *"},
        "share": {"user": "viewer"},
        "subscribe_push": {"endpoint": "https://push.example.com/x", "p256dh": "x", "auth": "x", "key": "x"},
        "open_link": {"link": ids["share"]},
        "open_as_administrator": {"reason": "x"},
        "create_schedule": {"text": "x", "cron": "0 9 * * *"},
        "replace_schedule": {"text": "x", "cron": "0 9 * * *"},
        "explain": {"tool": "pay", "arguments": {"amount": 7}, "session": ids["session"]},
        "trust_server": {"hash": "h"},
        "finish_mcp_login": {"state": "x"},
        "mcp_prompt": {"name": "review"},
        "mcp_resource": {"uri": "notes://today"},
        "openai_chat": {"model": "assistant", "messages": [{"role": "user", "content": "hello"}]},
        "openai_create": {"model": "assistant", "input": "hello", "previous_response_id": ids["response"]},
        "ai_sdk_chat": {
            "id": ids["session"],
            "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "hello"}]}],
            "trigger": "submit-message",
        },
        "ai_sdk_answer": {"approved": True},
        "ag_ui_run": {
            "threadId": ids["session"],
            "runId": "r",
            "state": {},
            "messages": [{"id": "m", "role": "user", "content": "hello"}],
            "tools": [],
            "context": [],
            "forwardedProps": {},
        },
        "a2a_call": {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": {
                "message": {"messageId": "m", "contextId": ids["session"], "parts": [{"text": "hello"}]},
                "configuration": {"returnImmediately": True},
            },
        },
    }
    return bodies.get(route.name, {})


@asynccontextmanager
async def a_world(
    streams: Any = None, options: ServerOptions | None = None, store: Any = None
) -> AsyncGenerator[World]:
    """A house that is lived in, until the end."""
    store = store or MemoryStore()
    runtime = App(ScriptedModel(*[_answer] * 100), tools=[pay, sell], store=store)
    agents = Agents([AgentSpec("assistant", TurnOptions())], default_limits=TenantLimits(requests=0))
    house = ServerContext(runtime, store.accounts, agents)
    entrance = Authenticator(house.accounts, SystemClock())
    parts: Any = streams or NoStreams()
    keys: dict[tuple[str, str], str] = {}
    house.webhooks.allow("127.0.0.1:1")  # where nobody is: a test event goes nowhere
    await runtime.start()
    try:
        for tenant in ("ours", "theirs"):
            await house.accounts.put_tenant(Tenant(tenant))
            for role in ROLES:
                await house.accounts.put_user(User(tenant, role, role=role))
                top = Access(house, Principal(tenant, "operator", "operator", "c"))
                keys[tenant, role] = (await top.accounts.create_key(api.NewKey(user=role, role=role))).secret
        world = World(make_app(house, entrance, parts, options or ServerOptions()), house, keys)
        for tenant in ("ours", "theirs"):
            world.things[tenant] = await fill(house, tenant)
        yield world
    finally:
        await runtime.aclose()


async def fill(house: ServerContext, tenant: str) -> Things:
    """Let a tenant have one of everything."""
    access = Access(house, Principal(tenant, "owner", "owner", "c"))
    word = CANARY.format(tenant=tenant)
    file = await access.files.upload(b"\x89PNG\r\n\x1a\n" + word.encode(), "image/png", f"{word}.png")
    for role in ROLES:  # `canary` is what a route is asked for by a query
        mine = Access(house, Principal(tenant, role, "member", "c"))
        await mine.memory.write(api.PutMemory(path="canary", text=word))
        await mine.prompts.write(api.PutPrompt(name="canary", text=word))
        await mine.prompts.write_instructions(api.PutInstructions(text=word))
    schedule = await house.schedules.create(word, cron="0 9 * * *", tenant=tenant)
    webhook = await house.webhooks.create("https://127.0.0.1:1/hook", description=word, tenant=tenant)
    first = await access.sessions.start(api.NewSession(text=f"pay {word}", files=[file.file]))
    gate = (await _wait_for_gates(access, first.session))[0].gate
    always = api.AnswerGate(hash=gate.hash, allow="always", rule=gate.offers[0])
    await access.gates.resolve(first.session, gate.id, always)
    async with asyncio.timeout(SOON):
        while not (await access.sessions.turn(first.session, first.turn)).phase.is_terminal:  # noqa: ASYNC110
            await asyncio.sleep(0.002)
    answer = (await access.sessions.messages(first.session)).messages[-1].id
    second = await access.sessions.send(first.session, api.NewMessage(text=f"sell {word}"))
    waiting = (await _wait_for_gates(access, first.session))[0].gate
    everybody = await access.sharing.share(first.session, api.NewShare(role="viewer", level="write"))
    top = Access(house, Principal(tenant, "operator", "operator", "c"))
    notice = await top.sharing.open_as_administrator(first.session, api.OpenAsAdministrator(reason=word))
    target = PushTarget(user="owner", credential="c", p256dh="p", auth="a", key="k", label=word)
    push = Webhook(
        id=f"push_{tenant}", tenant=tenant, url="https://push.example.com/x", events=("gate.opened",), push=target
    )
    await house.app.store.webhooks.put(push)
    return Things(
        session=first.session,
        message=first.message,
        answer=answer,
        turn=second.turn,
        gate=waiting.id,
        hash=waiting.hash,
        grant=(await access.gates.grants(first.session)).grants[0].id,
        blob=file.part.blob,
        file=file.file,
        key=(await access.accounts.create_key(api.NewKey(user="viewer", role="viewer"))).id,
        response=ResponseId(first.session, first.turn).id,
        schedule=schedule.id,
        webhook=webhook.webhook.id,
        subscription=push.id,
        share=everybody.id,
        notice=notice.id,
        invitation=(await access.users.invite(api.NewInvitation(user=f"new-{word}"))).id,
    )


async def _wait_for_gates(access: Access, session: str) -> list[api.GateView]:
    async def find() -> list[api.GateView]:
        return (await access.gates.page(session)).gates

    return await wait_until(find, SOON)


def absent(things: Things) -> Things:
    """Ids of the same shape that nobody has."""
    mixed = {name: value[:4] + value[4:][::-1] for name, value in msgspec.to_builtins(things).items()}
    mixed["response"] = ResponseId(mixed["session"], mixed["turn"]).id
    return Things(**mixed)


async def state_of(world: World, tenant: str) -> dict[str, Any]:
    """All that a tenant has, to be compared."""
    store, accounts = world.house.app.store, world.house.accounts
    sessions = [info.id for info in await store.sessions() if info.tenant == tenant]
    return {
        "logs": {session: await store.events(session) for session in sessions},
        "inboxes": {session: await store.inbox(session) for session in sessions},
        "leaves": {session: (await store.info(session)).leaf for session in sessions},
        "users": await accounts.users(tenant),
        "credentials": await accounts.credentials(tenant),
        "memory": {role: await store.user_memory.files(tenant, role) for role in ROLES},
        "prompts": {role: await store.user_memory.files(tenant, f"prompts:{role}") for role in ("", *ROLES)},
        "schedules": await store.schedules.list(tenant),
        "webhooks": await store.webhooks.list(tenant),
        "tenants": [one for one in await accounts.tenants() if one.id == tenant],
    }


def may(role: Role | None, route: Route) -> bool:
    """Whether a role is enough for a route."""
    return route.needs is None or (role is not None and ROLES.index(role) >= ROLES.index(route.needs))


__all__ = ["CANARY", "Things", "World", "a_world", "absent", "fitting", "may", "state_of"]
