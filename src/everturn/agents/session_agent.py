"""Session agent: the options of a turn that is taken by the agent that has the session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from msgspec.structs import replace

from everturn.core.commands import Send
from everturn.core.options import TurnOptions
from everturn.turn.request import merge_params


class AgentLookup(Protocol):
    """The part of an app that knows the options of its agents."""

    def agent_options(self, name: str, base: TurnOptions) -> TurnOptions:
        """The options of a turn that an agent takes over."""
        ...


def options_of_agent(app: AgentLookup, agent: str, base: TurnOptions, chosen: Iterable[str] = ()) -> TurnOptions:
    """The options of a turn of an agent: its own on top of `base`, and on top of both what the caller chose.

    `chosen` names the fields of `base` that were chosen for this message.

    Raises:
        ConfigError: the app does not know the agent.
    """
    options = app.agent_options(agent, base)
    changed: dict[str, Any] = {name: getattr(base, name) for name in chosen}
    if "params" in changed:
        changed["params"] = merge_params((options.params or {}, base.params or {}))
    return replace(options, **changed) if changed else options


def base_of(command: Send) -> TurnOptions:
    """What the caller gave for a message, whichever agent takes its turn."""
    assert command.base is not None
    options = command.options
    return replace(command.base, clients=options.clients, metadata=options.metadata, trace=options.trace)
