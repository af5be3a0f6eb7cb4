"""What somebody says, and to which agent → the options of a turn. A client chooses among what is configured, and no more.

Tools can only become fewer, the model is one of the agent's, and of the parameters only those can be set that change how
something is said, never where it is sent or what the agent may do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from everturn.access.agents import AgentSpec
from everturn.core.options import ClientTool, HistoryPolicy, LatePolicy
from everturn.errors import ConfigError, Forbidden
from everturn.tools.registry import Registry

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

MOST_TOKENS: Final = 2**31 - 1
LARGEST: Final = 256 * 1024  # bytes of parameters, and of the tools of a client
LONGEST_TIMEOUT: Final = 30 * 86_400.0  # seconds that a tool of a client may be waited for


class Choice(Struct, frozen=True):
    """What a client chose for a turn; None and "" are as the agent has it."""

    model: str = ""
    params: Mapping[str, Any] | None = None
    tools: Iterable[str] | None = None
    history: HistoryPolicy | None = None
    late: LatePolicy | None = None
    max_steps: int | None = None
    clients: tuple[ClientTool, ...] = ()


def chosen(agent: AgentSpec, choice: Choice, registry: Registry) -> dict[str, Any]:
    """The keywords of `Chat.send` for what a client chose.

    Raises:
        Forbidden, ConfigError: it may not be chosen; the text says what may.
    """
    options: dict[str, Any] = {"history": choice.history, "late": choice.late}
    if choice.model:
        options["model"] = model_of(agent, choice.model)
    if choice.params:
        options["params"] = _capped(agent, plain(choice.params))
    if choice.tools is not None:
        options["tools"] = narrowed(agent, choice.tools, registry)
    if choice.max_steps is not None:
        if choice.max_steps > agent.options.max_steps:
            raise ConfigError(f"max_steps={choice.max_steps}: this agent takes at most {agent.options.max_steps}")
        options["max_steps"] = choice.max_steps
    if choice.clients:
        options["clients"] = (*agent.options.clients, *_checked(choice.clients))
    return options


def model_of(agent: AgentSpec, model: str) -> str:
    """A model that an agent may be answered by.

    Raises:
        Forbidden: it is none of the agent's.
    """
    names = models_of(agent)
    if model not in names:
        raise Forbidden(f"agent {agent.name!r} is not answered by {model[:80]!r}; its models: {', '.join(names)}")
    return model


def models_of(agent: AgentSpec) -> tuple[str, ...]:
    """The models of an agent, its own first."""
    return tuple(dict.fromkeys((agent.options.model, *agent.models)))


def plain(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Parameters that a client may set.

    Raises:
        ConfigError: it may not set these.
    """
    if others := sorted(name[:40] for name in set(params) - PARAMS):
        raise ConfigError(
            f"params: {', '.join(others[:10])} cannot be set here; there are: {', '.join(sorted(PARAMS))}"
        )
    _refuse_large("params", params)
    return params


def _capped(agent: AgentSpec, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Parameters that ask for no more than the agent's own do, where it sets them."""
    most: Any = (agent.options.params or {}).get("max_tokens", MOST_TOKENS)
    wanted = params.get("max_tokens", 0)
    if isinstance(wanted, int | float) and isinstance(most, int | float) and wanted > most:
        raise ConfigError(f"params: max_tokens={wanted}: agent {agent.name!r} takes at most {most:,}")
    return params


def narrowed(agent: AgentSpec, wanted: Iterable[str], registry: Registry) -> tuple[str, ...]:
    """Those of an agent's tools that are wanted, by their names.

    Raises:
        ConfigError: a pattern fits none of them.
    """
    its = registry.enabled(agent.options.tools)
    names: set[str] = set()
    for pattern in wanted:
        fit = set(registry.enabled((pattern,))) & set(its)
        if not fit:
            raise ConfigError(f"agent {agent.name!r} has no tool {pattern[:80]!r}; it has: {', '.join(its) or 'none'}")
        names |= fit
    return tuple(name for name in its if name in names)


def _checked(clients: tuple[ClientTool, ...]) -> tuple[ClientTool, ...]:
    _refuse_large("clients", clients)
    for one in clients:
        if not 0 <= one.timeout <= LONGEST_TIMEOUT:
            raise ConfigError(f"clients: a timeout is at most {LONGEST_TIMEOUT:g} seconds; 0 is as long as any gate")
    return clients


def _refuse_large(name: str, value: object) -> None:
    if len(msgspec.json.encode(value)) > LARGEST:
        raise ConfigError(f"{name}: at most {LARGEST:,} bytes")
