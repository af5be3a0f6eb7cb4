"""Denied tools: finds agents that could use none of their tools, as soon as their rules are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from everturn.core.ports import Tool
from everturn.core.rules.policy import Policy
from everturn.errors import ConfigError
from everturn.tools.groups import ToolGroup
from everturn.tools.subagent import SubagentTool


def check_tools_allowed(
    name: str, tools: Iterable[Any], policies: Sequence[Policy], shared: Mapping[str, Tool] | None = None
) -> None:
    """Refuse an agent all of whose tools are denied whatever their arguments, and the same of its sub-agents.

    `policies` are the rules that hold for it, one for each place that has some: each of them can deny. `shared` are the
    tools that it may name. If some of its tools are not known yet, nothing is said: then a turn tells.

    Raises:
        ConfigError: it could use none of its tools; the text names them.
    """
    known = _known_tools(tools, shared)
    if known is None:
        return
    allowed = [tool for tool in known if not _is_denied(tool, policies)]
    if known and not allowed:
        names = ", ".join(sorted(tool.spec.name for tool in known))
        raise ConfigError(
            f"agent {name!r} cannot use any of its tools: rules deny {names}; change the rules, or leave the tools out"
        )
    for tool in allowed:
        if isinstance(tool, SubagentTool) and tool.agent is not None:
            below = tool.agent
            try:
                check_tools_allowed(tool.spec.name, below.tools, (*policies, Policy(below.rules)), shared)
            except ConfigError as error:
                raise ConfigError(f"agent {name!r}: its sub-agent: {error}") from None


def _known_tools(tools: Iterable[Any], shared: Mapping[str, Tool] | None) -> list[Tool] | None:
    """All tools of an agent; None if some are not known yet: those of a source, behind a name or a pattern, of skills."""
    known: list[Tool] = []
    for tool in _without_groups(tools):
        if isinstance(tool, str):
            if shared is None or tool not in shared:
                return None
            known.append(shared[tool])
        elif not hasattr(tool, "spec"):
            return None
        else:
            known.append(tool)
    return known


def _without_groups(tools: Iterable[Any]) -> Iterator[Any]:
    for tool in tools:
        if isinstance(tool, ToolGroup) and not tool.skills:
            yield from tool.tools
        else:
            yield tool


def _is_denied(tool: Tool, policies: Iterable[Policy]) -> bool:
    spec = tool.spec
    return spec.approval == "deny" or any(policy.denies_outright(spec.name) for policy in policies)
