"""Arguments of an app: validates settings, rules and agents, and separates tools from tool sources."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import Any

from everturn.core.ports import Tool, ToolSource
from everturn.core.rules.policy import Rule
from everturn.core.validate import validate_budget, validate_rules
from everturn.errors import ConfigError
from everturn.running.drive_setup import TurnSettings
from everturn.tools.groups import ToolGroup
from everturn.tools.registry import ToolItem, ToolRegistry, split_sources
from everturn.tools.subagent import SubagentTool


def read_rules(rules: Iterable[Rule] | str | Path) -> list[Rule]:
    """Rules as they were passed, or those of a file.

    Raises:
        ConfigError: a rule is not valid.
    """
    if isinstance(rules, str | Path):
        from everturn.permissions.rules_file import load_rules

        return load_rules(rules)
    return list(validate_rules(rules))


def check_settings(settings: TurnSettings | None) -> TurnSettings:
    """Validate settings; without any, the defaults.

    Raises:
        ConfigError: a setting is not valid.
    """
    if settings is None:
        return TurnSettings()
    if not isinstance(settings, TurnSettings):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"settings must be a Settings(...), not a {type(settings).__name__}")
    for name in ("session_budget", "tenant_budget"):
        validate_budget(getattr(settings, name), name)
    above: Any = settings.tool_search_above
    if isinstance(above, bool) or not isinstance(above, int) or above < 0:
        raise ConfigError(f"tool_search_above={above!r}: must be a number of tools; 0 always offers all of them")
    period: Any = settings.tenant_period
    if isinstance(period, bool) or not isinstance(period, int | float) or not 0 <= period < inf:
        raise ConfigError(f"tenant_period={period!r}: must be a number of seconds; 0: no limit")
    return settings


def separate_sources(
    tools: Iterable[ToolItem] | ToolRegistry, sources: Iterable[ToolSource]
) -> tuple[list[Tool | ToolGroup] | ToolRegistry, list[ToolSource]]:
    """Separate tools from the tool sources among them, which follow the given `sources`."""
    if isinstance(tools, ToolRegistry):
        return tools, list(sources)
    plain_tools, tool_sources = split_sources(tools)
    return plain_tools, [*sources, *tool_sources]


def check_subagents(registry: ToolRegistry) -> None:
    """Refuse an agent that names an unknown tool: it would run without it. A pattern may be for tools added later."""
    for name, tool in registry.tools.items():
        selection = tool.request.tools if isinstance(tool, SubagentTool) else None
        for pattern in selection or ():
            if not any(char in "*?[" for char in pattern) and pattern not in registry.tools:
                try:
                    registry.check_selection((pattern,))
                except ConfigError as error:
                    raise ConfigError(f"agent {name!r}: {error}") from None
