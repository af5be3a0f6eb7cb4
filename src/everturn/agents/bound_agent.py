"""Bound agent: an agent in one app, with its own tools, hooks and model. Two agents may have tools of the same name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from msgspec.structs import replace

from everturn.agents.definition import AgentDefinition
from everturn.agents.dependencies import open_with, provide
from everturn.agents.handoff import HandoffTool
from everturn.calls.output import OutputLimits
from everturn.core.commands import AnyCommand
from everturn.core.options import TurnOptions
from everturn.core.ports import Model, RunContext, Tool, TurnInfo
from everturn.plugins.tool_calling import ToolCalling
from everturn.running.drive_setup import DriveSetup, OutputPort
from everturn.running.plugin_table import PluginTable
from everturn.tools.groups import ToolGroup
from everturn.tools.registry import ToolRegistry, split_sources
from everturn.tools.subagent import SubagentTool


class AgentHost(Protocol):
    """The app, as its agents see it."""

    @property
    def turn_dependencies(self) -> dict[str, Any]:
        """Dependencies that callers gave for one run, by turn."""
        ...

    def model_for(self, name: str) -> Model:
        """A model by its name."""
        ...

    def find_tool(self, name: str) -> Tool | None:
        """A shared tool by its name."""
        ...

    async def wait_for_source(self, name: str, registry: ToolRegistry) -> Tool | None:
        """A tool by its name, which a source may publish only some time after a start."""
        ...

    def agent_options(self, name: str, base: TurnOptions) -> TurnOptions:
        """The options of a turn that an agent takes over."""
        ...

    async def command(self, command: AnyCommand) -> object:
        """Admit a command."""
        ...

    async def deliver(self, command: AnyCommand) -> None:
        """Admit a command, and try again while the store is unavailable."""
        ...


class BoundAgent:
    """An agent in an app: what its turns are driven with."""

    def __init__(
        self,
        definition: AgentDefinition[Any],
        name: str,
        host: AgentHost,
        shared: ToolRegistry,
        make_model: Callable[[Model | str], Model],
        plugins: Sequence[object],
        limits: OutputLimits,
        setup: DriveSetup,
    ) -> None:
        self.definition, self.name, self._host, self._make_model = definition, name, host, make_model
        self._model: Model | None = None
        selected = tuple(tool for tool in definition.tools if isinstance(tool, str))
        own, self.sources = split_sources(tool for tool in definition.tools if not isinstance(tool, str))
        is_shared = bool(selected) and not own and not self.sources
        self.registry = shared if is_shared else ToolRegistry(own)
        if selected and not is_shared:
            self.registry.include(shared, selected)
        calling = ToolCalling(self.registry, limits)
        has_tools = bool(definition.tools)  # a source may publish those that it selects by name later
        self.setup = replace(
            setup,
            hooks=PluginTable([calling, *plugins] if has_tools else plugins),
            client_hooks=None if has_tools else PluginTable([calling, *plugins]),
            app=self,
            agent=self,
        )

    @property
    def model(self) -> Model | None:
        """The agent's own model, made when it is first asked for: a test may put another in its place."""
        if self._model is None and self.definition.model is not None:
            self._model = self._make_model(self.definition.model)
        return self._model

    # The agent, as its turns see it -------------------------------------------------------------------------------

    @property
    def output(self) -> OutputPort | None:
        """The output type; None: any text."""
        return self.definition.output

    @property
    def has_instruction_functions(self) -> bool:
        """Whether its instructions have to be rendered for each turn."""
        return self.definition.has_instruction_functions

    @property
    def has_step_instructions(self) -> bool:
        """Whether some of its instructions are rendered for each step."""
        return self.definition.has_step_instructions

    async def render_instructions(self, ctx: RunContext, each_step: bool = False) -> str:
        """Render the functions among its instructions."""
        return await self.definition.render_instructions(ctx, each_step)

    def open_dependencies(self, turn: TurnInfo) -> AbstractAsyncContextManager[Any] | None:
        """Make the dependencies of a turn; None: the agent has none."""
        run_dependencies = self._host.turn_dependencies
        if run_dependencies and turn.turn in run_dependencies:
            return provide(run_dependencies[turn.turn])
        if self.definition.deps is not None:
            return open_with(self.definition.deps, turn)
        if run_dependencies and turn.parent is not None and turn.parent.turn in run_dependencies:
            run_dependencies[turn.turn] = run_dependencies[turn.parent.turn]  # for the runs below it
            return provide(run_dependencies[turn.turn])
        return None

    # The app, as its turns see it ---------------------------------------------------------------------------------

    def model_for(self, name: str) -> Model:
        """The agent's own model, or another one by its name."""
        return self.model if self.model is not None and name in ("", self.model.name) else self._host.model_for(name)

    def find_tool(self, name: str) -> Tool | None:
        """A present tool of the agent by its name."""
        return self.registry.tools.get(name)

    async def wait_for_tool(self, name: str) -> Tool | None:
        """A tool of a resumed turn, which its source may publish only some time after a start."""
        return await self._host.wait_for_source(name, self.registry)

    def agent_options(self, name: str, base: TurnOptions) -> TurnOptions:
        """The options of a turn that an agent takes over."""
        return self._host.agent_options(name, base)

    async def command(self, command: AnyCommand) -> object:
        """Admit a command, and wake the driver of its session."""
        return await self._host.command(command)

    async def deliver(self, command: AnyCommand) -> None:
        """Admit a command, and try again while the store is unavailable."""
        await self._host.deliver(command)


def agents_below(definition: AgentDefinition[Any]) -> Iterator[tuple[str, AgentDefinition[Any]]]:
    """The agents that an agent can call or hand over to, each with the name it is known by."""
    for tool in _tools(definition.tools):
        if isinstance(tool, SubagentTool) and tool.agent is not None:
            yield tool.request.agent, tool.agent
        elif isinstance(tool, HandoffTool) and not isinstance(tool.agent, str):
            yield tool.target, tool.agent


def handoff_names(definition: AgentDefinition[Any]) -> Iterator[str]:
    """The agents that an agent names, and that the app must know."""
    for tool in _tools(definition.tools):
        if isinstance(tool, HandoffTool) and isinstance(tool.agent, str):
            yield tool.agent


def _tools(tools: Iterable[Any]) -> Iterator[Any]:
    for tool in tools:
        if isinstance(tool, ToolGroup):
            yield from tool.tools
        else:
            yield tool
