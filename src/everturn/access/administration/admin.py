"""Administration access: rules, grants of the tenant, MCP servers, and the model.

All tenants share the tools and MCP servers of a server. Only operators see what these run, and why one of them fails.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess
from everturn.access.gates import GateAccess, is_grant_shown, revoke_checked
from everturn.access.mcp.logins import mcp_sources, named_server
from everturn.access.mcp.views import caller_of, login_state, server_hash, server_view
from everturn.access.rules.explain_view import explain_view, is_operator, rule_view
from everturn.core.options import REVIEWS
from everturn.core.rules.policy import Rule
from everturn.core.rules.shadowed_rules import find_shadowed_rules
from everturn.errors import (
    HashMismatch,
    UnknownGrant,
    UnknownSession,
)
from everturn.models.offline import OFFLINE
from everturn.running.permissions import is_manual

if TYPE_CHECKING:
    from everturn.mcp.config import ServerSpec
    from everturn.mcp.connection import ServerStatus
    from everturn.mcp.servers import McpServers

LARGEST: Final = 100_000  # characters of arguments that are explained


class AdminAccess:
    """Access to rules, grants and MCP servers."""

    __slots__ = ("_gates", "scope")

    def __init__(self, scope: ScopedAccess, gates: GateAccess) -> None:
        self.scope, self._gates = scope, gates

    # Rules -----------------------------------------------------------------------------------------------------------

    @needs("member")
    async def rules(self, agent: str = "") -> api.RulesView:
        """The rules that apply to an agent, and the declared options of its tools."""
        app, spec = self.scope.server_context.app, self.scope.server_context.agents.get(agent)
        options, permits = spec.options, app.permissions.of_tenant(self.scope.principal.tenant)
        rules = [*permits.policy.rules, *options.rules]
        shadows = {id(shadowed.rule): shadowed.why for shadowed in await asyncio.to_thread(find_shadowed_rules, rules)}
        enabled = app.registry_of(spec.name).select(options.tools)
        groups = {name: group.name for group, names in enabled.groups for name in names}
        tools = [tool.spec for tool in enabled.tools.values()]
        return api.RulesView(
            agent=spec.name,
            rules=[rule_view(self.scope, rule, shadows.get(id(rule), "")) for rule in rules],
            tools=[
                api.ToolRules(
                    name=tool.name,
                    origin=tool.origin,
                    group=groups.get(tool.name, ""),
                    approval=tool.approval,
                    review=max(tool.review, options.review, key=REVIEWS.index),
                    read_only=tool.read_only,
                    idempotent=tool.idempotent,
                    is_offered=not permits.is_denied(tool, options),
                    manual=is_manual(tool, options),
                    egress=tool.egress,
                    subjects=dict(tool.subjects),
                )
                for tool in sorted(tools, key=lambda tool: tool.name)
            ],
        )

    @needs("member")
    async def explain(self, request: api.ExplainCall) -> api.ExplainView:
        """Explain how the rules would decide on a call. Nothing is run.

        Raises:
            UnknownTool: the agent has no tool of this name.
        """
        info = await self.scope.own_session(request.session) if request.session is not None else None
        agent = self.scope.server_context.agents.get(request.agent or (info.agent if info is not None else "")).name
        granted = await self._granted_rules(request.session, agent) if request.session is not None else []
        permits = self.scope.server_context.app.permissions.of_tenant(self.scope.principal.tenant)
        return await explain_view(self.scope, permits, agent, request.tool, request.arguments, granted)

    async def _granted_rules(self, session: str, agent: str) -> list[Rule]:
        """The grants of a session that apply to this user's turns, as rules."""
        context, user = self.scope.server_context, self.scope.principal.user
        app, folder = context.app, context.agents.get(agent).options.folder or context.folder
        with self.scope.tenant_scope():
            grants = await self.scope.store.grants(session, app.clock.now())
        return app.permissions.rules_from_grants(grants, app.registry_of(agent).tools.get, user, folder)

    # Grants --------------------------------------------------------------------------------------------------------------

    @needs("viewer")
    async def grants(self) -> api.GrantList:
        """The grants of the tenant: those that hold everywhere, and those of sessions that the caller may see."""
        with self.scope.tenant_scope(whole=True):
            grants = await self.scope.store.tenant_grants(
                self.scope.principal.tenant, self.scope.server_context.app.clock.now()
            )
        root_sessions = await self.scope.root_sessions({grant.session or origin for origin, grant in grants})
        titles = {session: info.title for session, info in root_sessions.items()}
        return api.GrantList(
            grants=[
                api.GrantView(grant=grant, origin=origin, title=titles.get(grant.session or origin, ""))
                for origin, grant in grants
                if (not grant.session or grant.session in root_sessions) and is_grant_shown(self.scope, grant)
            ]
        )

    @needs("approver")
    async def revoke_grant(self, grant: str) -> None:
        """Revoke a grant in any session; a tenant-wide one needs an owner."""
        with self.scope.tenant_scope(whole=True):
            grants = await self.scope.store.tenant_grants(
                self.scope.principal.tenant, self.scope.server_context.app.clock.now()
            )
        found = next(((origin, row) for origin, row in grants if row.id == grant), None)
        if found is None:
            raise UnknownGrant("there is no such grant")
        origin, row = found
        if row.session:
            try:
                await self.scope.own_session(row.session, "write")
            except UnknownSession:
                raise UnknownGrant("there is no such grant") from None
        await revoke_checked(self.scope, row.session or origin, grant)

    # MCP servers -------------------------------------------------------------------------------------------------------

    @needs("viewer")
    async def servers(self) -> api.McpList:
        """The MCP servers and their state, as this node sees them."""
        servers: list[api.McpView] = []
        for source in mcp_sources(self.scope):
            for spec, status in zip(source.specs, source.status(), strict=True):
                servers.append(await self._server(source, spec, status))
        return api.McpList(servers=servers)

    @needs("operator")
    async def trust_server(self, server: str, seen: api.TrustServer) -> None:
        """Trust a server as the caller has seen it, with the tools that it had then.

        Raises:
            UnknownServer: there is no server of this name.
            HashMismatch: the server has changed since.
        """
        source, spec = named_server(self.scope, server)
        if server_hash(source, spec) != seen.hash:
            raise HashMismatch("this server has changed since it was shown; review it again")
        await self.scope.audit_action("mcp.trust", server, hash=seen.hash)
        if server_hash(source, spec) != seen.hash:  # it may have changed during the audit write
            raise HashMismatch("this server has changed since it was shown; review it again")
        await source.trust(server)

    @needs("operator")
    async def retry_server(self, server: str) -> None:
        """Reconnect to a server now.

        Raises:
            UnknownServer: there is no server of this name.
        """
        source, _ = named_server(self.scope, server)
        source.reconnect(server)

    async def _server(self, source: McpServers, spec: ServerSpec, status: ServerStatus) -> api.McpView:
        caller = caller_of(self.scope)
        whole = server_view(source, spec, status, caller, await login_state(source, spec, caller))
        if is_operator(self.scope):
            return whole
        return api.McpView(
            name=whole.name,
            transport=whole.transport,
            state=whole.state,
            since=whole.since,
            title=whole.title,
            tools=whole.tools,
            is_stored=whole.is_stored,
            login=whole.login,
            is_logged_in=whole.is_logged_in,
            logged_in_as=whole.logged_in_as,
            logged_in_since=whole.logged_in_since if spec.is_per_person else 0.0,
            can_log_in=spec.is_per_person,
            is_logging_in=spec.is_per_person and whole.is_logging_in,
            login_problem=whole.login_problem if spec.is_per_person else "",
        )

    # The model ---------------------------------------------------------------------------------------------------------

    @needs("operator")
    async def setup(self) -> api.SetupView:
        """The default model, and how the configuration could be changed to use another. It inspects this machine."""
        agent = self.scope.server_context.agents.get("")
        model = self.scope.server_context.model_of(agent)
        if self.scope.server_context.setup_survey is not None:
            return await self.scope.server_context.setup_survey(agent.name, model)
        return api.SetupView(
            agent=agent.name,
            model=model,
            is_offline=model == OFFLINE,
            file="",
            has_file=False,
            has_agent=False,
            options=[],
        )
