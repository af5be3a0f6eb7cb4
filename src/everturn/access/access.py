"""A principal → what they may see and do. Every id that comes from outside is checked here, and only here.

talking   sessions and messages
looking   the log, and what waits to be begun
gating    turns and the questions they ask
filing    files, search, moving sessions, what was used
people    users, keys, tenants, what was done
overseeing rules, remembered answers, MCP servers, which model there is
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final, Protocol, runtime_checkable

from msgspec import Struct

from everturn import api
from everturn.access.agents import Agents
from everturn.access.csrf import csrf_of
from everturn.access.filing import Filing
from everturn.access.gating import Gating
from everturn.access.limits import Meter
from everturn.access.looking import Looking
from everturn.access.needs import needs
from everturn.access.overseeing import Overseeing, Survey
from everturn.access.people import People
from everturn.access.saying import models_of
from everturn.access.talking import MOST_LISTED, Talking, session_view
from everturn.access.titles import with_titles
from everturn.core.accounts import Accounts, Principal
from everturn.core.ports import Tool
from everturn.errors import ConfigError
from everturn.models.prices import NO_FACTS, Facts
from everturn.wiring import Runtime

MOST_ASKED: Final = 200  # questions on a page


@runtime_checkable
class HasFacts(Protocol):
    """A model of which more is known than its name."""

    async def facts(self) -> Facts: ...


class House(Struct, dict=True):
    """What a node serves: its runtime, who may come in, and the agents. One of it per process."""

    runtime: Runtime
    accounts: Accounts
    agents: Agents

    def __post_init__(self) -> None:
        self.meter = Meter(self.runtime.store, self.runtime.clock, self.agents)
        self.changing = (
            asyncio.Lock()
        )  # users, one after the other: of two owners who demote each other one is the last

        self._secrets: dict[str, bytes] = {}
        self.survey: Survey | None = None  # whoever has made all this of a configuration can say what to put into it

    async def secret(self, name: str) -> bytes:
        """A secret of the whole installation. It never changes, so it is asked for once."""
        if name not in self._secrets:
            self._secrets[name] = await self.accounts.secret(name)
        return self._secrets[name]

    def access(self, principal: Principal) -> Access:
        """What somebody may do here."""
        return Access(self, principal)

    def count(self, tenant: str) -> None:
        """Count a request of a tenant.

        Raises:
            TooMuch: there were too many of late.
        """
        self.meter.count(tenant)


class Access(Talking, Looking, Overseeing, Gating, Filing, People):
    """What one principal may see and do. Whatever is another tenant's is not there, and looks exactly so.

    Raises (all methods):
        Forbidden: their role is not enough.
        UnknownSession, UnknownTurn, UnknownMessage, UnknownGate, UnknownGrant, UnknownFile: it is not there, or theirs.
        TooMuch: the tenant asked for more than it may.
    """

    @needs("viewer")
    async def me(self) -> api.Me:
        """Who is asking."""
        from everturn import __version__

        by = self.principal
        csrf = csrf_of(await self.house.secret("csrf"), by) if by.kind == "login" else ""
        return api.Me(tenant=by.tenant, user=by.user, role=by.role, version=__version__, csrf=csrf)

    @needs("viewer")
    async def agents(self) -> api.AgentList:
        """The agents that can be talked to, the default one first."""
        return api.AgentList(
            agents=[
                api.AgentView(
                    name=agent.name,
                    description=agent.description,
                    model=self._model_of(agent),
                    tools=None if agent.options.tools is None else list(agent.options.tools),
                    is_default=at == 0,
                    models=list(agent.models),
                )
                for at, agent in enumerate(self.house.agents.all)
            ],
            models=[await self._model(name) for name in self._models()],
        )

    def _models(self) -> list[str]:
        return list(dict.fromkeys(name for agent in self.house.agents.all for name in models_of(agent)))

    async def _model(self, name: str) -> api.ModelView:
        try:
            model = self.house.runtime.model_for(name)
        except ConfigError:  # whoever sends something to it is told why
            return api.ModelView(name=name)
        facts: Facts = await model.facts() if isinstance(model, HasFacts) else NO_FACTS
        return api.ModelView(name=name or model.name, badge=model.name, context=facts.window or 0)

    @needs("viewer")
    async def tools(self) -> api.ToolList:
        """The tools that some agent has."""
        registry = self.house.runtime.registry
        found: dict[str, Tool] = {}
        groups: dict[str, str] = {}
        for agent in self.house.agents.all:
            look = registry.look(agent.options.tools)
            found.update(look.tools)
            groups.update((name, group.name) for group, names in look.groups for name in names)
        specs = [found[name].spec for name in sorted(found)]
        return api.ToolList(
            tools=[
                api.ToolView(
                    name=spec.name,
                    description=spec.description,
                    schema=spec.schema,
                    origin=spec.origin,
                    execute=spec.execute,
                    effects=spec.effects,
                    group=groups.get(spec.name, ""),
                )
                for spec in specs
            ]
        )

    @needs("viewer")
    async def follow(self, session: str) -> bool:
        """See that a session may be followed; True: results that wait for a review are to be veiled from this one."""
        await self.readable(session)
        return self.is_veiled

    @needs("viewer")
    async def inbox(self) -> api.InboxView:
        """What waits for somebody in the tenant, as far as it is on the first page, and what is under way."""
        with self.within():
            found = await self.store.listed(self.principal.tenant, limit=MOST_LISTED)
            found = await with_titles(self.store, [info for info in found if info.is_awake])
        awake = [session_view(info) for info in found]
        page = await self.gates(limit=MOST_ASKED)
        return api.InboxView(gates=page.gates, awake=awake, next=page.next)


async def inbox_after(access: Access, first: api.InboxView) -> AsyncGenerator[api.InboxItem]:
    """What waits and is not on the first page: each session with all that waits in it, as far as was read."""
    waits: dict[str, list[api.GateView]] = {}
    page = api.GateList(gates=first.gates, next=first.next)
    while True:
        for gate in page.gates:
            waits.setdefault(gate.session, []).append(gate)
        if page.gates is not first.gates:
            names = list(dict.fromkeys(gate.session for gate in page.gates))
            with access.within():
                infos = await access.store.infos(names)
            for name in names:
                if name in infos:
                    yield api.InboxItem(session=session_view(infos[name]), waits=waits[name])
        if not page.next:
            return
        page = await access.gates(limit=MOST_ASKED, after=page.next)
