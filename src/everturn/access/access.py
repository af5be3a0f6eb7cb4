"""Access: what one principal may see and do, by resource: sessions and their shares, the log, gates, files, memory,
prompts, schedules, webhooks, settings, inbound hooks, accounts, MCP prompts and resources, and administration.

Every id from outside is checked in this package, and only here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final, Protocol, runtime_checkable

from everturn import api
from everturn.access.administration.accounts import AccountAccess
from everturn.access.administration.admin import AdminAccess
from everturn.access.administration.quarantine import QuarantineAccess
from everturn.access.administration.users import UserAccess
from everturn.access.auth.csrf import csrf_of
from everturn.access.context.agents import AgentSpec
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess
from everturn.access.context.server_context import ServerContext
from everturn.access.conversations.audio import AudioAccess
from everturn.access.conversations.files import FileAccess
from everturn.access.conversations.log import LogAccess
from everturn.access.conversations.presence import PresenceAccess
from everturn.access.conversations.prompts import PromptAccess
from everturn.access.conversations.sessions import MOST_LISTED, SessionAccess, session_view
from everturn.access.conversations.sharing import SharingAccess, outside_view
from everturn.access.conversations.titles import with_titles
from everturn.access.conversations.traces import TraceAccess
from everturn.access.conversations.turn_options import models_of
from everturn.access.gates import GateAccess
from everturn.access.hooks import HookAccess
from everturn.access.mcp.logins import McpLoginAccess
from everturn.access.mcp.offers import McpOfferAccess
from everturn.access.mcp.settings import McpSettingsAccess
from everturn.access.memory import MemoryAccess
from everturn.access.push import PushAccess
from everturn.access.rules.settings import RuleSettingsAccess
from everturn.access.schedules import ScheduleAccess
from everturn.access.settings import SettingsAccess
from everturn.access.webhooks import WebhookAccess
from everturn.agents.description import describe_agent
from everturn.core.ports import Tool
from everturn.core.tenants.accounts import Principal
from everturn.errors import ConfigError
from everturn.models.prices import NO_FACTS, ModelFacts
from everturn.version import __version__

GATE_PAGE_LIMIT: Final = 200  # gates on a page


@runtime_checkable
class ModelWithFacts(Protocol):
    """A model that reports facts such as its context window."""

    async def facts(self) -> ModelFacts: ...


class Access:
    """What one principal may see and do. Another tenant's objects look exactly as if they did not exist.

    Raises (all methods, also of the resources):
        Forbidden: the principal's role is not enough.
        UnknownSession, UnknownTurn, UnknownMessage, UnknownGate, UnknownGrant, UnknownFile: the tenant has no such
            object.
        TooMuch: the tenant has exceeded a limit.
    """

    __slots__ = (
        "accounts",
        "admin",
        "audio",
        "files",
        "gates",
        "hooks",
        "log",
        "mcp",
        "mcp_logins",
        "mcp_settings",
        "memory",
        "presence",
        "prompts",
        "push",
        "quarantine",
        "rule_settings",
        "schedules",
        "scope",
        "sessions",
        "settings",
        "sharing",
        "traces",
        "users",
        "webhooks",
    )

    def __init__(self, server_context: ServerContext, principal: Principal) -> None:
        self.scope = scope = ScopedAccess(server_context, principal)
        self.audio = AudioAccess(scope)
        self.presence = PresenceAccess(scope)
        self.prompts = PromptAccess(scope)
        self.push = PushAccess(scope)
        self.sessions = SessionAccess(scope)
        self.sharing = SharingAccess(scope)
        self.log = LogAccess(scope)
        self.traces = TraceAccess(scope)
        self.gates = GateAccess(scope)
        self.files = FileAccess(scope)
        self.memory = MemoryAccess(scope)
        self.schedules = ScheduleAccess(scope)
        self.webhooks = WebhookAccess(scope)
        self.settings = SettingsAccess(scope)
        self.mcp_settings = McpSettingsAccess(scope)
        self.rule_settings = RuleSettingsAccess(scope)
        self.hooks = HookAccess(scope)
        self.accounts = AccountAccess(scope)
        self.users = UserAccess(scope)
        self.quarantine = QuarantineAccess(scope)
        self.admin = AdminAccess(scope, self.gates)
        self.mcp = McpOfferAccess(scope, self.files)
        self.mcp_logins = McpLoginAccess(scope, self.gates)

    @property
    def principal(self) -> Principal:
        """The caller."""
        return self.scope.principal

    @needs("viewer")
    async def me(self) -> api.Me:
        """The caller."""
        principal = self.principal
        csrf = (
            csrf_of(await self.scope.server_context.accounts.keys.first("csrf"), principal)
            if principal.kind == "login"
            else ""
        )
        return api.Me(tenant=principal.tenant, user=principal.user, role=principal.role, version=__version__, csrf=csrf)

    @needs("viewer")
    async def agents(self) -> api.AgentList:
        """The configured agents, the default one first."""
        return api.AgentList(
            agents=[
                api.AgentView(
                    name=agent.name,
                    description=agent.description,
                    model=self.scope.server_context.model_of(agent),
                    tools=None if agent.options.tools is None else list(agent.options.tools),
                    is_default=at == 0,
                    models=list(agent.models),
                    modes=list(agent.modes),
                    any_model=agent.any_model,
                    folder=agent.options.folder,
                    details=self._details(agent),
                )
                for at, agent in enumerate(self.scope.server_context.agents.all)
            ],
            models=[await self._model(name) for name in self._models()],
        )

    def _details(self, agent: AgentSpec) -> api.AgentDetails | None:
        is_shown = self.principal.role == "operator" and agent.definition is not None
        return describe_agent(agent.definition, agent.models) if agent.definition is not None and is_shown else None

    def _models(self) -> list[str]:
        return list(dict.fromkeys(name for agent in self.scope.server_context.agents.all for name in models_of(agent)))

    async def _model(self, name: str) -> api.ModelView:
        try:
            model = self.scope.server_context.app.model_for(name)
        except ConfigError:  # a message to this model fails with the reason
            return api.ModelView(name=name)
        facts: ModelFacts = await model.facts() if isinstance(model, ModelWithFacts) else NO_FACTS
        input_price, output_price = facts.prices
        return api.ModelView(
            name=name or model.name,
            badge=model.name,
            context=facts.window or 0,
            vendor=facts.vendor,
            input_price=input_price,
            output_price=output_price,
            inputs=None if facts.inputs is None else sorted(facts.inputs),
            has_native_tools=facts.has_native_tools,
            has_temperature=facts.has_temperature,
            reasoning_levels=None if facts.reasoning_levels is None else list(facts.reasoning_levels),
        )

    @needs("viewer")
    async def tools(self) -> api.ToolList:
        """The tools that any agent has."""
        app = self.scope.server_context.app
        tools: dict[str, Tool] = {}
        groups: dict[str, str] = {}
        for agent in self.scope.server_context.agents.all:
            enabled = app.registry_of(agent.name).select(agent.options.tools)
            tools.update(enabled.tools)
            groups.update((name, group.name) for group, names in enabled.groups for name in names)
        specs = [tools[name].spec for name in sorted(tools)]
        return api.ToolList(
            tools=[
                api.ToolView(
                    name=spec.name,
                    description=spec.description,
                    schema=spec.schema,
                    origin=spec.origin,
                    approval=spec.approval,
                    read_only=spec.read_only,
                    idempotent=spec.idempotent,
                    group=groups.get(spec.name, ""),
                )
                for spec in specs
            ]
        )

    @needs("viewer")
    async def follow(self, session: str) -> bool:
        """Check that the caller may follow a session. Returns whether results under review are to be redacted."""
        await self.scope.readable_session(session)
        return self.scope.is_redacted

    @needs("viewer")
    async def inbox(self) -> api.InboxView:
        """The first page of the open gates, and the running sessions that the caller may see."""
        with self.scope.tenant_scope():
            sessions = await self.scope.store.session_page(
                self.principal.tenant, limit=MOST_LISTED, reader=self.scope.reader
            )
            sessions = await with_titles(self.scope.store, [info for info in sessions if info.is_awake])
        awake = [session_view(info) for info in sessions]
        page = await self.gates.page(limit=GATE_PAGE_LIMIT)
        return api.InboxView(gates=page.gates, awake=awake, next=page.next)


async def read_inbox_after(access: Access, first: api.InboxView) -> AsyncGenerator[api.InboxItem]:
    """The gates after the first page: each session with all its open gates that were read so far."""
    waits: dict[str, list[api.GateView]] = {}
    page = api.GateList(gates=first.gates, next=first.next)
    while True:
        for gate in page.gates:
            waits.setdefault(gate.session, []).append(gate)
        if page.gates is not first.gates:
            names = list(dict.fromkeys(gate.session for gate in page.gates))
            readable = await access.scope.root_sessions(set(names))
            with access.scope.tenant_scope(whole=True):
                infos = await access.scope.store.infos(names)
            for name in names:
                if name in infos:
                    view = session_view(infos[name])
                    shown = view if name in readable else outside_view(view, waits[name][0].title)
                    yield api.InboxItem(session=shown, waits=waits[name])
        if not page.next:
            return
        page = await access.gates.page(limit=GATE_PAGE_LIMIT, after=page.next)
