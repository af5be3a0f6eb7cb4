"""Agents: the configured agents by name, and the limits of tenants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from everturn.agents.definition import AgentDefinition
from everturn.core.options import Budget, PermissionMode, TurnOptions
from everturn.errors import ConfigError, UnknownAgent


class AgentSpec(Struct, frozen=True):
    """What a server offers of an agent: the options that its turns start with. `options.model` names the model."""

    name: str
    options: TurnOptions
    description: str = ""
    models: tuple[str, ...] = ()  # other models that a message may choose
    modes: tuple[PermissionMode, ...] = ("plan", "ask")  # permission modes that a message may choose
    any_model: bool = False  # a message may choose any model: the server of one user
    definition: AgentDefinition[Any] | None = None  # which the app is given as well


class TenantLimits(Struct, frozen=True):
    """The limits of a tenant; 0 is no limit."""

    requests: float = 50.0  # per second, in the long run; twice that at once
    turns: int = 0  # running at once
    budget: Budget = Budget()  # of all its turns
    period: float = 0.0  # seconds over which the budget counts; 0: all time
    streams: int = 1000  # open at once, on one node
    uploads: int = 100_000_000  # bytes of one file
    uploaded: int = 5_000_000_000  # bytes of all files in a day, on one node; that many may come at once
    weight: Annotated[float, Meta(gt=0)] = 1.0  # its share, when requests of several tenants wait for a rate limit


class Agents:
    """The current agents. They may be replaced while turns run: a turn keeps the options it started with."""

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
        """Replace the agents; the first is the default.

        Raises:
            ConfigError: there is no agent, or two have one name; the old ones stay.
        """
        new = list(agents)
        by_name = {agent.name: agent for agent in new}
        if not by_name or len(by_name) != len(new):
            raise ConfigError("at least one agent is needed, and names must be unique")
        self._agents, self._limits, self._default = by_name, dict(limits), default_limits

    def add(self, agent: AgentSpec) -> None:
        """Add an agent, or replace the one of its name; the default stays."""
        self._agents = {**self._agents, agent.name: agent}

    @property
    def all(self) -> list[AgentSpec]:
        """All agents, the default one first."""
        return list(self._agents.values())

    def get(self, name: str) -> AgentSpec:
        """An agent by its name; "" is the default.

        Raises:
            UnknownAgent: there is no agent of this name.
        """
        if not name:
            return next(iter(self._agents.values()))
        if name not in self._agents:
            raise UnknownAgent(f"there is no agent {name[:80]!r}; there are {', '.join(self._agents)}")
        return self._agents[name]

    def limits(self, tenant: str) -> TenantLimits:
        """The limits of a tenant."""
        return self._limits.get(tenant, self._default)
