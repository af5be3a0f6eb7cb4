"""Configured agents: makes an `AgentDefinition` of each table of `[agents]`, as `Agent(…)` is in Python.

Naming a module runs it: the author of the configuration trusts it as any program.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from everturn.access.context.agents import AgentSpec
from everturn.agents.definition import AgentDefinition, AgentTools
from everturn.agents.handoff import handoff
from everturn.base_app import BaseApp
from everturn.config.load import LoadedConfig
from everturn.config.modules import load_object
from everturn.config.plugins import create_plugins
from everturn.config.schema import AgentTable
from everturn.core.options import TurnOptions
from everturn.core.ports import Model
from everturn.core.rules.policy import Rule
from everturn.errors import ConfigError

ASSISTANT: Final = "assistant"
AgentDefinitions = dict[str, AgentDefinition[Any]]
"""Agents by name, the default one first."""


class AgentExtras(Struct, frozen=True):
    """What an agent has beside what its table says; its first instructions come before those of the table."""

    name: str = ""
    description: str = ""
    instructions: tuple[Any, ...] = ()
    tools: tuple[Any, ...] = ()
    plugins: tuple[object, ...] = ()
    rules: tuple[Rule, ...] = ()
    max_steps: int = 0


NO_EXTRAS: Final = AgentExtras()


def agent_tables(loaded: LoadedConfig) -> Mapping[str, AgentTable]:
    """Return the tables of the agents; without any, that of an assistant."""
    return loaded.config.agents or {ASSISTANT: AgentTable(description="General assistant.")}


def make_agents(
    loaded: LoadedConfig,
    model: str,
    environ: Mapping[str, str] | None = None,
    *,
    app: BaseApp | None = None,
    keep: Mapping[str, AgentDefinition[Any]] | None = None,
    models: Mapping[str, Model] | None = None,
    only: Collection[str] | None = None,
) -> AgentDefinitions:
    """Make the configured agents, or `only` these.

    `model` is the default model, `models` are those of single agents instead of what their tables say. `app` has the
    tools that they select from. Agents of `keep` are used as they are.

    Raises:
        ConfigError: a function, a type or a plugin cannot be loaded; the message says where it is named.
    """
    tables = agent_tables(loaded)
    known = os.environ if environ is None else environ
    others = ("*",) if app is None or _has_open_tools(app) else ()
    made: AgentDefinitions = {}
    wanted = tables if only is None else {name: table for name, table in tables.items() if name in only}
    for name in _subagents_first(wanted):
        if keep is not None and name in keep:
            made[name] = keep[name]
        else:
            chosen = (models or {}).get(name) or tables[name].model or model or None
            made[name] = _AgentMaker(loaded, name, tables, known).make(chosen, others, made, NO_EXTRAS)
    return {name: made[name] for name in wanted}


def make_agent(
    loaded: LoadedConfig, name: str, model: Model | str, environ: Mapping[str, str], app: BaseApp, extras: AgentExtras
) -> AgentDefinition[Any]:
    """Make another agent of the table of a configured one, with extras.

    Raises:
        ConfigError: as `make_agents`.
    """
    tables = agent_tables(loaded)
    maker = _AgentMaker(loaded, name, tables, environ)
    below = {other: app.agents[other] for other in tables[name].subagents}
    others = ("*",) if _has_open_tools(app) else ()
    return maker.make(tables[name].model or model or None, others, below, extras)


def agent_specs(loaded: LoadedConfig, agents: Mapping[str, AgentDefinition[Any]]) -> list[AgentSpec]:
    """Return what a server offers of agents: the options that their turns start with."""
    tables = agent_tables(loaded)
    return [
        AgentSpec(
            name,
            agent.options(_model_name(agent), TurnOptions()),
            agent.description,
            tables[name].models,
            definition=agent,
        )
        for name, agent in agents.items()
    ]


def configured_agents(
    loaded: LoadedConfig, model: str, app: BaseApp | None = None, environ: Mapping[str, str] | None = None
) -> list[AgentSpec]:
    """Return the configured agents; without any, an assistant. `model` is the default model."""
    return agent_specs(loaded, make_agents(loaded, model, environ, app=app))


def unchanged_agents(
    old: LoadedConfig, new: LoadedConfig, agents: Mapping[str, AgentDefinition[Any]]
) -> AgentDefinitions:
    """Return the agents that another configuration defines in the same way, and so do those that they are made of."""
    before, after = agent_tables(old), agent_tables(new)

    def is_unchanged(name: str) -> bool:
        return (
            name in agents
            and before.get(name) == after.get(name)
            and old.systems.get(name) == new.systems.get(name)
            and old.agent_rules.get(name) == new.agent_rules.get(name)
            and all(before[other].description == after[other].description for other in after[name].handoffs)
            and all(map(is_unchanged, after[name].subagents))
        )

    return {name: agents[name] for name in after if is_unchanged(name)}


def agents_reached_from(tables: Mapping[str, AgentTable], name: str) -> list[str]:
    """Return an agent, and those that it can call or hand over to, at any distance."""
    found = [name]
    for reached in found:  # it grows
        found += [other for other in (*tables[reached].subagents, *tables[reached].handoffs) if other not in found]
    return found


class _AgentMaker:
    """Makes one agent of its table."""

    def __init__(
        self, loaded: LoadedConfig, name: str, tables: Mapping[str, AgentTable], environ: Mapping[str, str]
    ) -> None:
        self._loaded, self._name, self._tables, self._environ = loaded, name, tables, environ
        self._table = tables[name]

    def make(
        self, model: Model | str | None, others: tuple[str, ...], made: AgentDefinitions, extras: AgentExtras
    ) -> AgentDefinition[Any]:
        table = self._table
        own = [self._loaded.systems.get(self._name, table.system), *self._functions(each_step=False)]
        agent = AgentDefinition[Any](
            model,
            name=extras.name or self._name,
            description=extras.description or table.description,
            instructions=[*extras.instructions[:1], *own, *extras.instructions[1:]],
            tools=[*extras.tools, *self._selected(others), *self._agents_as_tools(made)],
            deps=self._loaded_from("deps", table.deps) if table.deps else None,
            output_type=self._output_type(),
            output_retries=table.output_retries,
            plugins=[
                *extras.plugins,
                *create_plugins(self._loaded, self._environ, ("agents", self._name, "plugins"), table.plugins),
            ],
            rules=(*self._loaded.agent_rules.get(self._name, ()), *extras.rules),
            budget=table.budget,
            max_steps=extras.max_steps or table.max_steps,
            timeout=table.timeout,
            gate_timeout=table.gate_timeout,
            timezone=local_timezone() if table.timezone == "local" else table.timezone,
            reasoning=table.reasoning,
            params=table.params,
            tool_history=table.tool_history,
            context=table.context,
            review=table.review,
            manual=table.manual,
            late=table.late,
        )
        for function in self._functions(each_step=True):
            agent.instructions(function, each_step=True)
        try:
            _ = agent.output  # its schema is made now, so that a wrong type is reported with its line
        except ConfigError as error:
            raise self._error("output_type", error) from None
        return agent

    def _selected(self, others: tuple[str, ...]) -> tuple[str, ...]:
        table = self._table
        if not table.groups:
            return ("*",) if table.tools is None else table.tools
        return (*(others if table.tools is None else table.tools), *(f"@{group}" for group in table.groups))

    def _agents_as_tools(self, made: AgentDefinitions) -> Iterator[AgentTools]:
        for name in self._table.subagents:
            yield made[name].as_tool()
        for name in self._table.handoffs:  # by name: two agents may hand over to each other
            about = self._tables[name].description
            yield handoff(name, description=f"Hand the conversation over to {name}.{f' {about}' if about else ''}")

    def _functions(self, each_step: bool) -> list[Any]:
        parts = () if isinstance(self._table.instructions, str) else self._table.instructions
        return [
            self._loaded_from("instructions", part.function, at)
            for at, part in enumerate(parts)
            if not isinstance(part, str) and part.function and part.each_step is each_step
        ]

    def _output_type(self) -> Any:
        written = self._table.output_type
        if written is None:
            return str
        return self._loaded_from("output_type", written, is_function=False) if isinstance(written, str) else written

    def _loaded_from(self, key: str, word: str, at: int | None = None, is_function: bool = True) -> Any:
        where = self._loaded.tree.where(("agents", self._name, key, *(() if at is None else (at,))))
        try:
            found = load_object(word, Path(where.source).resolve().parent if where.line else None)
            if is_function and not callable(found):
                raise ConfigError(f"{word} is not a function")
            return found
        except ConfigError as error:
            raise self._error(key, error, at) from None

    def _error(self, key: str, error: ConfigError, at: int | None = None) -> ConfigError:
        where = self._loaded.tree.where(("agents", self._name, key, *(() if at is None else (at,))))
        return ConfigError(f"{where}: agents.{self._name}.{key}{'' if at is None else f'[{at}]'}: {error}")


def _subagents_first(tables: Mapping[str, AgentTable]) -> Iterable[str]:
    """Return the names so that each agent comes after its sub-agents; `check` has refused cycles."""
    ordered: dict[str, None] = {}

    def add(name: str) -> None:
        for other in tables[name].subagents:
            add(other)
        ordered[name] = None

    for name in tables:
        add(name)
    return ordered


def _model_name(agent: AgentDefinition[Any]) -> str:
    return agent.model if isinstance(agent.model, str) else "" if agent.model is None else agent.model.name


def _has_open_tools(app: BaseApp) -> bool:
    """Return whether there are, or may be later, tools that belong to no group."""
    return bool(app.sources) or bool(app.registry.select(("*",)).tools)


def local_timezone(environ: Mapping[str, str] | None = None) -> str:
    """Return the name of this machine's time zone; UTC if it has none."""
    name = (os.environ if environ is None else environ).get("TZ", "").lstrip(":")
    if not name:
        with suppress(OSError):
            name = os.readlink("/etc/localtime").rpartition("zoneinfo/")[2]
    try:
        return ZoneInfo(name).key if name else "UTC"
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "UTC"
