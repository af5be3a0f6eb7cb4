"""The agents that can be talked to: a name → what a turn is told when it begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from everturn.core.options import Budget, TurnOptions
from everturn.errors import ConfigError, UnknownAgent


class AgentSpec(Struct, frozen=True):
    """An agent: a model, a prompt, tools, rules and limits under one name. `options.model` names the model."""

    name: str
    options: TurnOptions
    description: str = ""
    models: tuple[str, ...] = ()  # others that a message may ask for instead


class TenantLimits(Struct, frozen=True):
    """How much a tenant may ask for; 0 is no limit."""

    requests: float = 50.0  # per second, in the long run; twice that at once
    turns: int = 0  # under way at once
    budget: Budget = Budget()  # of all its turns
    period: float = 0.0  # seconds of the past that count for it; 0: all
    streams: int = 1000  # open at once, on one node
    uploads: int = 100_000_000  # bytes of one file
    uploaded: int = 5_000_000_000  # bytes of all files in a day, on one node; that many may come at once


class Agents:
    """The agents there are now. They may be replaced while turns run: a turn keeps what it began with."""

    def __init__(
        self,
        agents: Iterable[AgentSpec],
        limits: Mapping[str, TenantLimits] | None = None,
        default_limits: TenantLimits | None = None,
    ) -> None:
        self._agents: dict[str, AgentSpec] = {}
        self._limits: dict[str, TenantLimits] = {}
        self._default = default_limits or TenantLimits()
        self.replace(agents, limits or {}, self._default)

    def replace(
        self, agents: Iterable[AgentSpec], limits: Mapping[str, TenantLimits], default_limits: TenantLimits
    ) -> None:
        """Let these be the agents from now on; the first is the default.

        Raises:
            ConfigError: there is none, or two of one name; the old ones stay.
        """
        given = list(agents)
        named = {agent.name: agent for agent in given}
        if not named or len(named) != len(given):
            raise ConfigError("there must be an agent, and no two of one name")
        self._agents, self._limits, self._default = named, dict(limits), default_limits

    @property
    def all(self) -> list[AgentSpec]:
        """All of them, the default one first."""
        return list(self._agents.values())

    def get(self, name: str) -> AgentSpec:
        """An agent by its name; "" is the first.

        Raises:
            UnknownAgent: there is none of this name.
        """
        if not name:
            return next(iter(self._agents.values()))
        if name not in self._agents:
            raise UnknownAgent(f"there is no agent {name[:80]!r}; there are {', '.join(self._agents)}")
        return self._agents[name]

    def limits(self, tenant: str) -> TenantLimits:
        """How much a tenant may ask for."""
        return self._limits.get(tenant, self._default)
