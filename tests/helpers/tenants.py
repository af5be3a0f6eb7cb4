"""A house with three tenants: `ada` and `bob` who know nothing of one another, and `local`, whose operator sees to it.

The model does what it is told: the first word of a message says which tool it calls.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from everturn import api
from everturn.access.access import Access
from everturn.access.context.agents import Agents, AgentSpec, TenantLimits
from everturn.access.context.server_context import ServerContext
from everturn.app import App
from everturn.core.options import ClientTool, TurnOptions
from everturn.core.parts import TextPart
from everturn.core.ports import Bus, Clock
from everturn.core.requests import ModelRequest
from everturn.core.rules.policy import Rule
from everturn.core.store_ports import Store
from everturn.core.tenants.accounts import ROLES, Accounts, Principal, Role, Tenant, User
from everturn.core.tenants.sharing import Share, role_subject
from everturn.core.tool import Question, ToolContext
from everturn.testing import MemoryStore, ScriptedHang, ScriptedModel, call, calls, say
from everturn.tools.function import tool
from everturn.tools.subagent import SubagentTool
from tests.helpers.tools import pay
from tests.helpers.waiting import wait_until

SOON = 60  # seconds after which something that should have happened is taken to hang
SECRET = "the-result-that-waits-0815"
PRIVATE = "+49-30-5550199"
TENANTS = ("ada", "bob", "local")
BELL = ClientTool("bell", "Ring a bell.", {"type": "object", "properties": {}})


@tool(read_only=True)
def look() -> str:
    """Look."""
    return "it is empty"


@tool(read_only=True, review="always")
def peek() -> str:
    """Peek."""
    return SECRET


@tool(read_only=True, private=("phone",))
def whois() -> dict[str, str]:
    """Say who it is."""
    return {"name": "Ada", "phone": PRIVATE}


@tool(read_only=True)
async def quiz(ctx: ToolContext) -> str:
    """Ask how much."""
    return (await ctx.ask(Question("How much?", schema={"type": "integer"}))).result or ""


def answer_to(request: ModelRequest) -> Sequence[Any]:
    last = request.messages[-1]
    text = "".join(part.text for part in last.parts if isinstance(part, TextPart)) if last.role == "user" else ""
    word = text.split()[0] if text.split() else ""
    if word == "hang":
        return [say("Well"), ScriptedHang()]
    if word == "pay":
        return calls(call("pay", amount=7))
    if word == "clerk":
        return calls(call("clerk", task="pay now"))
    if word in ("look", "peek", "whois", "quiz", "bell"):
        return calls(call(word))
    return say("Done.")


def model(name: str = "scripted") -> ScriptedModel:
    return ScriptedModel(*[answer_to] * 50, name=name)


AGENTS = (
    AgentSpec("helper", TurnOptions(model="scripted"), "Helps.", ("other",)),
    AgentSpec("reader", TurnOptions(model="scripted", tools=("look",), max_steps=3)),
)


def somebody(tenant: str = "ada", role: Role = "member", user: str = "") -> Principal:
    """A user of a tenant; each has one for every role."""
    return Principal(tenant, user or f"{role}-{tenant}", role, f"key_{role}_{tenant}")


async def settle(accounts: Accounts) -> None:
    """Let there be the tenants and their users."""
    for tenant in TENANTS:
        await accounts.put_tenant(Tenant(tenant, created=1.0))
        for role in ROLES:
            if role != "operator" or tenant == "local":
                await accounts.put_user(User(tenant, f"{role}-{tenant}", role=role, created=1.0))


@asynccontextmanager
async def a_house(
    store: Any = None,
    clock: Clock | None = None,
    limits: TenantLimits | None = None,
    agents: Sequence[AgentSpec] = AGENTS,
    rules: Sequence[Rule] = (),
    bus: Bus | None = None,
) -> AsyncGenerator[ServerContext]:
    """A house that is lived in, until the end."""
    store = store or MemoryStore()
    app_store: Store = store
    tools = [look, pay, peek, whois, quiz, SubagentTool("clerk", "Pays.", tools=["pay"])]
    app = App(model(), tools=tools, store=app_store, clock=clock, rules=rules, bus=bus)
    app.add_model(model("other"))
    house = ServerContext(app, store.accounts, Agents(agents, default_limits=limits or TenantLimits(requests=0)))
    await settle(house.accounts)
    await app.start()
    try:
        yield house
    finally:
        await app.aclose()


async def start_session(access: Access, text: str, private: bool = False, **how: Any) -> api.MessageReceipt:
    """Begin a session and, unless it is to be private, share it with everybody in the tenant."""
    sent = await access.sessions.start(api.NewSession(text=text, **how))
    if not private:
        await share_with_all(access.scope.store, sent.session, access.principal.tenant)
    return sent


async def share_with_all(store: Store, session: str, tenant: str = "ada") -> None:
    """Share a session with everybody in a tenant, as its author would, and without an audit record."""
    subject = role_subject("viewer")
    await store.sharing.add(
        Share(id=f"all-{session}", tenant=tenant, session=session, kind="role", subject=subject, level="write")
    )


async def over(access: Access, sent: api.MessageReceipt) -> api.TurnView:
    """Wait until a turn is over."""

    async def look_again() -> api.TurnView | None:
        view = await access.sessions.turn(sent.session, sent.turn)
        return view if view.phase.is_terminal else None

    return await wait_until(look_again)


async def gate_in(access: Access, session: str) -> api.GateView:
    """The one gate that stands open in a session, once it does."""

    async def look_again() -> list[api.GateView]:
        return (await access.gates.page(session)).gates

    return (await wait_until(look_again))[0]


def access_of(context: ServerContext, role: Role, tenant: str = "ada") -> Access:
    """The access of a tenant's user with that role."""
    return Access(context, somebody(tenant, role))
