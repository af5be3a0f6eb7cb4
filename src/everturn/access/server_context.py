"""Server context: the runtime, the accounts and the agents that a node serves, shared by all requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct

from everturn import api
from everturn.access.agents import Agents, AgentSpec
from everturn.access.quotas import TenantMeter
from everturn.core.accounts import Accounts
from everturn.runtime import Runtime

SetupSurvey = Callable[[str, str], Awaitable[api.SetupView]]
"""(default agent, its model) -> how the configuration could be changed to use another model."""


class ServerContext(Struct, dict=True):
    """What a node serves: its runtime, its accounts and its agents. There is one per process."""

    runtime: Runtime
    accounts: Accounts
    agents: Agents

    def __post_init__(self) -> None:
        self.meter = TenantMeter(self.runtime.store, self.runtime.clock, self.agents)
        # Changes of users are serialized: of two owners who demote each other one stays.
        self.user_lock = asyncio.Lock()
        self._secrets: dict[str, bytes] = {}
        # Set by the code that loaded the configuration, which knows how to change it.
        self.setup_survey: SetupSurvey | None = None

    async def secret(self, name: str) -> bytes:
        """A secret of the whole installation. It never changes, so it is read once."""
        if name not in self._secrets:
            self._secrets[name] = await self.accounts.secret(name)
        return self._secrets[name]

    def model_of(self, agent: AgentSpec) -> str:
        """The name of an agent's model; an agent without one has the default model of the runtime."""
        return agent.options.model or self.runtime.model_for("").name

    def count(self, tenant: str) -> None:
        """Count a request of a tenant.

        Raises:
            TooMuch: the tenant has exceeded its rate limit.
        """
        self.meter.count_request(tenant)
