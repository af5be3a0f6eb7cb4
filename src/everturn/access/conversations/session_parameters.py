"""Parameters of a session in its turns: what of them the model and the agent of a turn take.

They can only reduce what an agent may do: groups of tools are left out, and no limit of the agent is exceeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everturn.access.context.agents import AgentSpec
from everturn.access.context.scope import ScopedAccess
from everturn.access.conversations.turn_options import PARAMS
from everturn.chat.session_parameters import read_session_parameters
from everturn.core.events import TurnStarted
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.session_parameters import NO_PARAMETERS, SessionParameters, model_params
from everturn.models.prices import NO_FACTS, ModelFacts, facts_of
from everturn.tools.registry import ToolRegistry


async def _params_for(
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


async def stored_parameters(scope: ScopedAccess, session: str) -> SessionParameters:
    """The parameters that a person chose for a session."""
    with scope.tenant_scope():
        return await read_session_parameters(scope.store, session)


async def message_params(
    scope: ScopedAccess, stored: SessionParameters, agent: AgentSpec, model: str, explicit: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """The model parameters of a message: its own, over those of the session if its model is for chat."""
    app, name = scope.server_context.app, model or agent.options.model
    if stored == NO_PARAMETERS or app.modality_of(name) != "chat":
        return explicit
    return await _params_for(stored, agent, app.model_for(name), explicit)


async def last_options(scope: ScopedAccess, session: str, leaf: str | None) -> TurnOptions:
    """The options of the turn at the end of a branch."""
    for message in await scope.store.path(session, leaf, 1) if leaf is not None else ():
        for entry in await scope.store.events(session, turn=message.turn):
            if isinstance(entry.event, TurnStarted):
                return entry.event.options
    return TurnOptions()


async def params_of_answer(scope: ScopedAccess, session: str, message: Message, model: str) -> dict[str, Any] | None:
    """The parameters of an answer that is not chat (an image, speech), so that it is regenerated with the same ones."""
    if message.role != "assistant" or scope.server_context.app.modality_of(model) == "chat":
        return None
    with scope.tenant_scope():
        log = await scope.store.events(session, turn=message.turn)
    options = next((entry.event.options for entry in log if isinstance(entry.event, TurnStarted)), None)
    return {name: value for name, value in ((options and options.params) or {}).items() if name in PARAMS}
