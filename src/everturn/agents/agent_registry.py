"""Agent registry: the agents of an app by name, each bound to the app once, and those that they call or hand over to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from everturn.agents.bound_agent import BoundAgent, agents_below, handoff_names
from everturn.agents.definition import DEFAULT_NAME, AgentDefinition
from everturn.core.options import TurnOptions
from everturn.errors import ConfigError

Bind = Callable[[AgentDefinition[Any], str], BoundAgent]


class AgentRegistry:
    """The agents of an app. They can be replaced while turns are running."""

    def __init__(self, bind: Bind, needs_names: bool) -> None:
        self._bind, self._needs_names = bind, needs_names
        self._bound: dict[str, BoundAgent] = {}
        self._removed: dict[str, BoundAgent] = {}  # agents that were replaced by none, for their unfinished turns
        self._overridden: dict[int, BoundAgent] = {}  # by the id of a definition that a test put in place
        self.default = ""  # the name of the first agent

    def __contains__(self, name: str) -> bool:
        return name in self._bound

    def __iter__(self) -> Iterator[str]:
        return iter(self._bound)

    @property
    def definitions(self) -> Mapping[str, AgentDefinition[Any]]:
        """The agents by name, the default one first."""
        return {name: binding.definition for name, binding in self._bound.items()}

    @property
    def bindings(self) -> Iterable[BoundAgent]:
        """The agents as they are bound to the app."""
        return self._bound.values()

    def add(self, agent: AgentDefinition[Any], name: str = "") -> str:
        """Add an agent and those below it, and return its name; the same agent may be added again.

        Raises:
            ConfigError: it has no name, or another agent has the name.
        """
        return self._add(agent, name, {})

    def _add(self, agent: AgentDefinition[Any], name: str, before: Mapping[str, BoundAgent]) -> str:
        """The same; agents of `before` that have not changed are not bound again."""
        name = name or agent.name
        if not name and self._needs_names:
            raise ConfigError("an agent of an app needs a name: Agent(…, name='support')")
        name = name or DEFAULT_NAME
        if (known := self._bound.get(name)) is not None:
            if known.definition is agent:
                return name
            hint = "" if agent.name and known.definition.name else ": give each a name, Agent(…, name='support')"
            raise ConfigError(f"two agents have the name {name!r}; names must be unique{hint}")
        kept = before.get(name)
        is_unchanged = kept is not None and kept.definition is agent
        self._bound[name] = kept if kept is not None and is_unchanged else self._bind(agent, name)
        for below, definition in agents_below(agent):
            self._add(definition, below, before)
        return name

    def replace(self, agents: Iterable[AgentDefinition[Any]]) -> None:
        """Replace the agents; the first is the default. Turns that are running keep their options.

        Raises:
            ConfigError: one of them cannot be bound, or hands over to an unknown one; the old ones stay.
        """
        before, self._bound = self._bound, {}
        try:
            names = [self._add(agent, "", before) for agent in agents]
            self._check_handoffs()
        except ConfigError:
            self._bound = before
            raise
        known = {**self._removed, **before}
        self._removed = {name: binding for name, binding in known.items() if name not in self._bound}
        self.default = names[0] if names else ""

    def put(self, agent: AgentDefinition[Any]) -> BoundAgent | None:
        """Add an agent and those below it, in place of the one of its name and those below that; return the old one.

        Raises:
            ConfigError: it cannot be bound, or another agent has a name; the old ones stay.
        """
        before, old = self._bound, self._bound.get(agent.name)
        replaced = {agent.name, *(() if old is None else (name for name, _ in agents_below(old.definition)))}
        self._bound = {name: binding for name, binding in before.items() if name not in replaced}
        try:
            self._add(agent, "", before)
        except ConfigError:
            self._bound = before
            raise
        self._removed |= {name: before[name] for name in replaced if name in before and name not in self._bound}
        return old

    def _check_handoffs(self) -> None:
        for name, binding in self._bound.items():
            for target in handoff_names(binding.definition):
                if target not in self._bound:
                    raise ConfigError(
                        f"agent {name!r} hands over to {target!r}, which is unknown; "
                        f"the agents of this app: {', '.join(self._bound)}"
                    )

    def binding(self, name: str) -> BoundAgent:
        """An agent by its name, as a test may have changed it; "" is the default one.

        Raises:
            ConfigError: the app does not know it; the text lists those it knows.
        """
        binding = self._bound.get(name or self.default)
        if binding is None:
            known = ", ".join(self._bound) or "none"
            raise ConfigError(f"unknown agent {name[:80]!r}; the agents of this app: {known}")
        current = binding.definition.current
        if current is binding.definition:
            return binding
        if id(current) not in self._overridden:
            self._overridden[id(current)] = self._bind(current, binding.name)
        return self._overridden[id(current)]

    def options(self, name: str, base: TurnOptions) -> TurnOptions:
        """The options of a turn that an agent takes over; what is not the agent's is kept from `base`."""
        binding = self.binding(name)
        model = base.model if binding.model is None else binding.model.name
        return replace(binding.definition.options(model, base), agent=binding.name)

    def find_driver(self, options: TurnOptions) -> BoundAgent | None:
        """The agent that drives a turn with these options; None: no agent of this app does."""
        if options.agent in self._bound:
            return self.binding(options.agent)
        return self._removed.get(options.agent) if options.needs_agent else None
