"""Turn options of a client: checks what a client chooses for a turn against the agent's configuration.

A client can only reduce the tools, choose one of the agent's models, and set parameters that change how an answer is
generated, never where it is sent or what the agent may do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from everturn.access.context.agents import AgentSpec
from everturn.core.options import ClientTool, LatePolicy, PermissionMode, ToolHistory
from everturn.core.rate_limits import Priority
from everturn.errors import ConfigError, Forbidden
from everturn.tools.registry import ToolRegistry

PARAMS: Final = frozenset(
    (
        *("temperature", "top_p", "top_k", "min_p", "seed", "stop", "stop_sequences"),
        *("max_tokens", "presence_penalty", "frequency_penalty", "repetition_penalty"),
        *("reasoning", "reasoning_effort", "thinking", "verbosity", "text"),
        *("output_schema", "response_format", "tool_choice", "parallel_tool_calls"),
        *("size", "quality", "style", "background", "voice", "speed", "language", "output_format"),
    )
)
"""The parameters that a client may set."""

MAX_TOKENS: Final = 2**31 - 1
LARGEST: Final = 256 * 1024  # bytes of parameters, and of a client's tools
LONGEST_TIMEOUT: Final = 30 * 86_400.0  # seconds that the runtime may wait for a client tool


class TurnChoice(Struct, frozen=True):
    """What a client chose for a turn; None and "" mean the agent's own value."""

    model: str = ""
    params: Mapping[str, Any] | None = None
    tools: Iterable[str] | None = None
    tool_history: ToolHistory | None = None
    context: str | None = None
    late: LatePolicy | None = None
    max_steps: int | None = None
    clients: tuple[ClientTool, ...] = ()
    priority: Priority | None = None


def check_choice(agent: AgentSpec, choice: TurnChoice, registry: ToolRegistry) -> dict[str, Any]:
    """The keyword arguments of `Chat.send` for a client's choice.

    Raises:
        Forbidden, ConfigError: it may not be chosen; the text says what may.
    """
    options: dict[str, Any] = {"tool_history": choice.tool_history, "context": choice.context, "late": choice.late}
    options["priority"] = choice.priority
    if choice.model:
        options["model"] = check_model(agent, choice.model)
    if choice.params:
        options["params"] = _check_max_tokens(agent, check_params(choice.params))
    if choice.tools is not None:
        options["tools"] = narrow_tools(agent, choice.tools, registry)
    if choice.max_steps is not None:
        if choice.max_steps > agent.options.max_steps:
            raise ConfigError(f"max_steps={choice.max_steps}: this agent takes at most {agent.options.max_steps}")
        options["max_steps"] = choice.max_steps
    if choice.clients:
        options["clients"] = (*agent.options.clients, *_check_clients(choice.clients))
    return options


def check_model(agent: AgentSpec, model: str) -> str:
    """Check that a model is one of the agent's.

    Raises:
        Forbidden: it is not.
    """
    names = models_of(agent)
    if model not in names and not agent.any_model:
        raise Forbidden(f"agent {agent.name!r} does not offer the model {model[:80]!r}; its models: {', '.join(names)}")
    return model


def check_mode(agent: AgentSpec, mode: PermissionMode) -> PermissionMode:
    """Check that a permission mode is one of the agent's.

    Raises:
        Forbidden: it is not.
    """
    if mode and mode not in agent.modes:
        raise Forbidden(f"agent {agent.name!r} has no permission mode {mode!r}; it has: {', '.join(agent.modes)}")
    return mode


def models_of(agent: AgentSpec) -> tuple[str, ...]:
    """The models of an agent, its default first."""
    return tuple(dict.fromkeys((agent.options.model, *agent.models)))


def check_params(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check that a client may set these parameters.

    Raises:
        ConfigError: it may not.
    """
    if others := sorted(name[:40] for name in set(params) - PARAMS):
        raise ConfigError(
            f"params: {', '.join(others[:10])} cannot be set here; there are: {', '.join(sorted(PARAMS))}"
        )
    _refuse_large("params", params)
    return params


def _check_max_tokens(agent: AgentSpec, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check that parameters do not exceed the agent's own limits."""
    limit: Any = (agent.options.params or {}).get("max_tokens", MAX_TOKENS)
    max_tokens = params.get("max_tokens", 0)
    if isinstance(max_tokens, int | float) and isinstance(limit, int | float) and max_tokens > limit:
        raise ConfigError(f"params: max_tokens={max_tokens}: agent {agent.name!r} takes at most {limit:,}")
    return params


def narrow_tools(agent: AgentSpec, wanted: Iterable[str], registry: ToolRegistry) -> tuple[str, ...]:
    """Those of an agent's tools that match the client's patterns, by name.

    Raises:
        ConfigError: a pattern matches none of them.
    """
    agent_tools = registry.enabled(agent.options.tools)
    names: set[str] = set()
    for pattern in wanted:
        matching = set(registry.enabled((pattern,))) & set(agent_tools)
        if not matching:
            raise ConfigError(
                f"agent {agent.name!r} has no tool {pattern[:80]!r}; it has: {', '.join(agent_tools) or 'none'}"
            )
        names |= matching
    return tuple(name for name in agent_tools if name in names)


def _check_clients(clients: tuple[ClientTool, ...]) -> tuple[ClientTool, ...]:
    _refuse_large("clients", clients)
    for tool in clients:
        if not 0 <= tool.timeout <= LONGEST_TIMEOUT:
            raise ConfigError(f"clients: a timeout is at most {LONGEST_TIMEOUT:g} seconds; 0: the timeout of gates")
    return clients


def _refuse_large(name: str, value: object) -> None:
    if len(msgspec.json.encode(value)) > LARGEST:
        raise ConfigError(f"{name}: at most {LARGEST:,} bytes")
