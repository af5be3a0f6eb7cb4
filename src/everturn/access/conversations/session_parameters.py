"""Parameters of a session in its turns: what of them the model and the agent of a turn take.

They can only reduce what an agent may do: groups of tools are left out, and no limit of the agent is exceeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everturn.access.context.agents import AgentSpec
from everturn.core.session_parameters import SessionParameters, model_params
from everturn.models.prices import NO_FACTS, ModelFacts, facts_of
from everturn.tools.registry import ToolRegistry


async def params_for(
    parameters: SessionParameters, agent: AgentSpec, model: object, explicit: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """The model parameters of a turn: those of the session that the model takes, and over them those of the message."""
    facts: ModelFacts = await facts_of(model) if parameters != SessionParameters() else NO_FACTS
    params = {**model_params(parameters, facts.has_temperature, facts.reasoning_levels)}
    limit: Any = (agent.options.params or {}).get("max_tokens")
    if isinstance(limit, int) and params.get("max_tokens", 0) > limit:
        params["max_tokens"] = limit
    return {**params, **(explicit or {})} or None


def tools_for(parameters: SessionParameters, agent: AgentSpec, registry: ToolRegistry) -> tuple[str, ...] | None:
    """The tools of a turn without the groups that the session leaves out; None: all of the agent's."""
    if not parameters.without_groups:
        return None
    enabled = registry.enabled(agent.options.tools)
    groups = registry.select(agent.options.tools).groups
    omitted = {name for group, names in groups if group.name in parameters.without_groups for name in names}
    return tuple(name for name in enabled if name not in omitted) if omitted & set(enabled) else None
