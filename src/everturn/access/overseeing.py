"""What is set up, as one principal may see it: rules, remembered answers, MCP servers, and which model there is.

All tenants share the tools and servers of a house. What those run, and why one of them fails, only operators are told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from everturn import api
from everturn.access.agents import AgentSpec
from everturn.access.explaining import explained
from everturn.access.gating import Gating
from everturn.access.needs import needs
from everturn.core.accounts import is_at_least
from everturn.core.canonical import canonical, clean_all, digest
from everturn.core.policy import Judgement, Policy, Rule
from everturn.errors import BadArguments, ConfigError, HashMismatch, UnknownGrant, UnknownServer, UnknownTool
from everturn.models.offline import OFFLINE
from everturn.turn.permit import is_by_hand

if TYPE_CHECKING:
    from everturn.mcp.config import ServerSpec
    from everturn.mcp.link import ServerStatus
    from everturn.mcp.servers import McpServers

Survey = Callable[[str, str], Awaitable[api.SetupView]]
"""The default agent and its model → what of a configuration could be another way."""

LARGEST: Final = 100_000  # characters of arguments that are explained
REVIEWS: Final = ("auto", "on_error", "ask")


class Overseeing(Gating):
    """What somebody may know of how calls are decided on, and where tools and answers come from."""

    # Rules -----------------------------------------------------------------------------------------------------------

    @needs("member")
    async def rules(self, agent: str = "") -> api.RulesView:
        """The rules that hold for an agent, and what its tools say of themselves."""
        runtime, spec = self.house.runtime, self.house.agents.get(agent)
        options, permits = spec.options, runtime.permits
        rules = [*permits.policy.rules, *options.rules]
        shadows = {id(one.rule): one.why for one in await asyncio.to_thread(Policy(rules).shadowed)}
        look = runtime.registry.look(options.tools)
        groups = {name: group.name for group, names in look.groups for name in names}
        tools = [tool.spec for tool in look.tools.values()]
        return api.RulesView(
            agent=spec.name,
            rules=[self._rule(rule, shadows.get(id(rule), "")) for rule in rules],
            tools=[
                api.ToolRules(
                    name=one.name,
                    origin=one.origin,
                    group=groups.get(one.name, ""),
                    execute=one.execute,
                    result=max(one.result, options.result, key=REVIEWS.index),
                    effects=one.effects,
                    is_offered=not permits.is_denied(one, options),
                    by_hand=is_by_hand(one, options),
                    egress=one.egress,
                    subjects=dict(one.subjects),
                )
                for one in sorted(tools, key=lambda one: one.name)
            ],
        )

    @needs("member")
    async def explain(self, asked: api.Explain) -> api.ExplainView:
        """Say what would become of a call, and which rule decides. Nothing is run.

        Raises:
            UnknownTool: the agent has none of this name.
        """
        if len(canonical(asked.arguments)) > LARGEST:
            raise ConfigError(f"these arguments are too long to be explained; at most {LARGEST} characters")
        info = await self.own(asked.session) if asked.session is not None else None
        agent = self.house.agents.get(asked.agent or (info.agent if info is not None else ""))
        runtime = self.house.runtime
        there = runtime.registry.enabled(agent.options.tools)
        tool = there.get(asked.tool)
        if tool is None:
            raise UnknownTool(f"{agent.name} has no tool of this name; it has: {', '.join(there) or 'none'}")
        arguments, problem = clean_all(asked.arguments), ""
        meant = arguments
        try:
            meant = tool.validate(arguments) or arguments
        except BadArguments as error:
            problem = str(error)
        granted = await self._granted_rules(asked.session) if asked.session is not None else []
        found = await explained(runtime.permits, tool.spec, arguments, meant, agent.options, granted)
        return api.ExplainView(
            action=found.judgement.action,
            reason="" if found.judgement.rule is not None else found.judgement.reason,
            rule=self._maybe(found.judgement.rule),
            is_final=found.judgement.is_final,
            cases=[self._case(one) for one in found.each],
            others=[self._rule(rule) for rule in found.others],
            lines=found.lines if self._is_operator else [],
            problem=problem,
            by_hand=is_by_hand(tool.spec, agent.options),
            review=max(tool.spec.result, agent.options.result, key=REVIEWS.index),
        )

    async def _granted_rules(self, session: str) -> list[Rule]:
        """What was allowed in a session from then on, to turns that this user asks for."""
        runtime = self.house.runtime
        with self.within():
            found = await self.store.grants(session, runtime.clock.now())
        return runtime.permits.granted(found, runtime.tools.get, self.principal.user)

    @property
    def _is_operator(self) -> bool:
        return is_at_least(self.principal.role, "operator")

    def _rule(self, rule: Rule, shadow: str = "") -> api.RuleView:
        """A rule; where in the installation its file lies is the operator's to know."""
        shown = rule if self._is_operator else replace(rule, source=rule.source.rpartition("/")[2])
        return api.RuleView(rule=shown, text=str(rule), shadow=shadow)

    def _maybe(self, rule: Rule | None) -> api.RuleView | None:
        return None if rule is None else self._rule(rule)

    def _case(self, one: Judgement) -> api.CaseView:
        reason = "" if one.rule is not None else one.reason
        return api.CaseView(case=one.case, action=one.action, rule=self._maybe(one.rule), reason=reason)

    # Remembered answers ------------------------------------------------------------------------------------------------

    @needs("viewer")
    async def granted(self) -> api.GrantedList:
        """What people of the tenant have allowed from then on, in any session."""
        with self.within():
            found = await self.store.granted(self.principal.tenant, self.house.runtime.clock.now())
        tops = await self._tops({grant.session or origin for origin, grant in found})
        titles = {session: info.title for session, info in tops.items()}
        return api.GrantedList(
            grants=[
                api.GrantedView(grant=grant, origin=origin, title=titles.get(grant.session or origin, ""))
                for origin, grant in found
            ]
        )

    @needs("approver")
    async def revoke_anywhere(self, grant: str) -> None:
        """Let a remembered answer hold no more, wherever it was given; one that holds everywhere takes an owner."""
        with self.within():
            found = await self.store.granted(self.principal.tenant, self.house.runtime.clock.now())
        where = next((one.session or origin for origin, one in found if one.id == grant), None)
        if where is None:
            raise UnknownGrant("there is no such grant")
        await self.revoke_grant(where, grant)

    # MCP servers -------------------------------------------------------------------------------------------------------

    @needs("viewer")
    async def servers(self) -> api.McpList:
        """The MCP servers that tools come from, as this node sees them."""
        return api.McpList(
            servers=[
                self._server(source, spec, status)
                for source in self._sources()
                for spec, status in zip(source.specs, source.status(), strict=True)
            ]
        )

    @needs("operator")
    async def trust_server(self, server: str, seen: api.TrustServer) -> None:
        """Trust a server as it was shown, with the tools that it had then.

        Raises:
            UnknownServer: there is none of this name.
            HashMismatch: it is not what was shown.
        """
        source, spec = self._named_server(server)
        if _hash(source, spec) != seen.hash:
            raise HashMismatch("this server is not what was shown any more; look at it again")
        await self.note("mcp.trust", server, hash=seen.hash)
        if _hash(source, spec) != seen.hash:  # while that was written down
            raise HashMismatch("this server is not what was shown any more; look at it again")
        await source.trust(server)

    @needs("operator")
    async def log_in_server(self, server: str) -> api.LoginView:
        """Begin to log in to a server: a person goes on in a browser on the machine of this node.

        Raises:
            UnknownServer: there is none of this name.
            NeedsLogin: it did not work.
        """
        source, spec = self._named_server(server)
        await self.note("mcp.login", server)
        return api.LoginView(address=await source.logins.begin(spec))

    @needs("operator")
    async def retry_server(self, server: str) -> None:
        """Try a server now: somebody has mended it.

        Raises:
            UnknownServer: there is none of this name.
        """
        source, _ = self._named_server(server)
        source.again(server)

    def _sources(self) -> Sequence[McpServers]:
        if not self.house.runtime.sources:
            return ()
        from everturn.mcp.servers import McpServers  # who has none does not load it

        return [source for source in self.house.runtime.sources if isinstance(source, McpServers)]

    def _named_server(self, name: str) -> tuple[McpServers, ServerSpec]:
        for source in self._sources():
            for spec in source.specs:
                if spec.name == name:
                    return source, spec
        raise UnknownServer("there is no such server")

    def _server(self, source: McpServers, spec: ServerSpec, status: ServerStatus) -> api.McpView:
        tools = self.house.runtime.tools
        shown = api.McpView(
            name=spec.name,
            transport="http" if spec.url else "stdio",
            state=status.state,
            since=status.since,
            title=status.title,
            tools=[
                api.McpToolView(name=name, description=tools[name].spec.description, is_changed=name in status.changed)
                for name in status.tools
                if name in tools
            ],
        )
        if not self._is_operator:
            return shown
        address = urlsplit(spec.url)
        return replace(
            shown,
            reason=status.reason,
            problems=list(status.problems),
            runs=f"{address.scheme}://{address.netloc}{address.path}" if spec.url else spec.command,
            variables=sorted(spec.headers if spec.url else spec.env),
            changes=source.changes(spec.name) if status.changed else [],
            hash=_hash(source, spec),
            can_log_in=spec.auth == "oauth",
            is_logging_in=source.logins.is_waiting(spec.name),
            login_problem=source.logins.problem(spec.name),
        )

    # The model ---------------------------------------------------------------------------------------------------------

    @needs("operator")
    async def setup(self) -> api.SetupView:
        """Which model answers by default, and what could be written where for another. It looks around on this machine."""
        agent = self.house.agents.get("")
        model = self._model_of(agent)
        if self.house.survey is not None:
            return await self.house.survey(agent.name, model)
        return api.SetupView(
            agent=agent.name,
            model=model,
            is_offline=model == OFFLINE,
            file="",
            has_file=False,
            has_agent=False,
            ways=[],
        )

    def _model_of(self, agent: AgentSpec) -> str:
        return agent.options.model or self.house.runtime.model_for("").name


def _hash(source: McpServers, spec: ServerSpec) -> str:
    """Of all that is trusted by trusting a server now: how it is started or reached, and each of its tools."""
    try:
        tools = sorted(fact.hash for fact in source.facts(spec.name))
    except ConfigError:  # it is not open yet
        tools = []
    return digest("server", spec.launch_hash, tools)
