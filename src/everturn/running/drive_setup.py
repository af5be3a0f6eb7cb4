"""Drive setup: the settings, ports and services that turns are driven with, as an app assembled them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.commands import AnyCommand
from everturn.core.options import NO_PROMPT, Budget, Prompt, TurnOptions
from everturn.core.ports import (
    Bus,
    Clock,
    Engine,
    IdSource,
    Model,
    RunContext,
    SubagentResult,
    Tool,
    TurnInfo,
)
from everturn.core.rate_limits import RequestLimiter
from everturn.core.requests import REQUEST_MESSAGE_FIELDS
from everturn.core.store_ports import Store
from everturn.running.permissions import Permissions
from everturn.running.plugin_table import PluginTable
from everturn.running.tool_tasks import ToolTasks


class TurnSettings(Struct, frozen=True):
    """Settings for all turns of a runtime; one frozen value, so that nothing changes during a turn."""

    prompt: Prompt = NO_PROMPT
    model_instructions: Mapping[str, str] = {}  # by model: for agents that have no instructions of their own
    layers: tuple[Mapping[str, Any], ...] = ()  # options: provider < model < agent < variant; the turn's come last
    request_message_fields: frozenset[str] = REQUEST_MESSAGE_FIELDS
    summary_model: str = ""  # the model that writes summaries; "": the model of the turn
    title_model: str = ""  # the model that writes titles of sessions; "": a title is the first message, cut
    # With more tools than this, the model finds those of groups and MCP servers with `find_tools`; 0: never.
    tool_search_above: int = 40
    first_chunk_timeout: float = 300.0
    idle_timeout: float = 120.0
    step_timeout: float = 3600.0  # in total: a stream that never ends is stopped
    session_budget: Budget = Budget()
    tenant_budget: Budget = Budget()
    tenant_period: float = 0.0  # seconds of a tenant's past that count; 0: all of it
    weight_of: Callable[[str], float] | None = None  # a tenant's share when requests wait for a rate limit; None: 1
    # The same two by tenant id, if tenants differ.
    budget_of: Callable[[str], tuple[Budget, float]] | None = None

    def tenant_limits(self, tenant: str) -> tuple[Budget, float]:
        """The budget of a tenant, and the seconds of its past that count towards it; 0: all."""
        return (self.tenant_budget, self.tenant_period) if self.budget_of is None else self.budget_of(tenant)


class SubagentRun(Struct, frozen=True):
    """A sub-agent run: its session, turn and options, and the idempotency key that makes a retry harmless."""

    session: str
    turn: str
    key: str
    tenant: str
    options: TurnOptions
    prompt: str


class SubagentPort(Protocol):
    """Runs sub-agents for tools."""

    async def run(
        self, child_run: SubagentRun, can_leave: bool, is_wanted: Callable[[], bool]
    ) -> SubagentResult | None:
        """Run a sub-agent in a session of its own, once, and wait for its end; None if it waits for a person."""
        ...

    async def cancel(self, child_run: SubagentRun) -> None:
        """Cancel a run whose tool is stopped."""
        ...


class CheckedOutput(Struct, frozen=True):
    """An answer that was checked against an output type: its text as it is stored, or the problem as the model reads it.

    `reason` is the problem alone, for people: without the request to answer again.
    """

    text: str
    problem: str = ""
    reason: str = ""


class OutputPort(Protocol):
    """The output type of an agent."""

    retries: int

    async def check(self, text: str, ctx: RunContext) -> CheckedOutput:
        """Check the final text of a turn."""
        ...


class AgentPort(Protocol):
    """An agent, as the turns that it has see it."""

    @property
    def output(self) -> OutputPort | None:
        """The output type; None: any text."""
        ...

    @property
    def has_instruction_functions(self) -> bool:
        """Whether its instructions have to be rendered for each turn."""
        ...

    @property
    def has_step_instructions(self) -> bool:
        """Whether some of its instructions are rendered for each step."""
        ...

    async def render_instructions(self, ctx: RunContext, each_step: bool = False) -> str:
        """Render the instructions: those of a turn, or those of each step."""
        ...

    def open_dependencies(self, turn: TurnInfo) -> AbstractAsyncContextManager[Any] | None:
        """Make the dependencies of a turn; None: the agent has none."""
        ...


class AppPort(Protocol):
    """The runtime, as its turns see it: models and tools by name, and a way for their own commands."""

    def agent_options(self, name: str, base: TurnOptions) -> TurnOptions:
        """The options of a turn that this agent takes over; what is not the agent's is kept from `base`.

        Raises:
            ConfigError: there is no such agent.
        """
        ...

    def model_for(self, name: str) -> Model:
        """A model by its name; "" is the default model.

        Raises:
            ConfigError: there is no such model.
        """
        ...

    def find_tool(self, name: str) -> Tool | None:
        """A present tool by its name."""
        ...

    async def wait_for_tool(self, name: str) -> Tool | None:
        """A tool by its name; after a start, wait a while for the source that publishes it."""
        ...

    async def command(self, command: AnyCommand) -> object:
        """Admit a command, and wake the driver of its session."""
        ...

    async def deliver(self, command: AnyCommand) -> None:
        """Admit a command, and try again while the store is unavailable."""
        ...


class DriveSetup(Struct, frozen=True):
    """The ports, services and settings that turns are driven with, as `App` assembled them."""

    store: Store
    bus: Bus
    clock: Clock
    ids: IdSource
    engine: Engine
    app: AppPort
    subagents: SubagentPort
    hooks: PluginTable
    tool_tasks: ToolTasks
    permissions: Permissions
    settings: TurnSettings = TurnSettings()
    client_hooks: PluginTable | None = None  # for turns with client tools, if the runtime has no tools of its own
    agent: AgentPort | None = None
    setup_of: Callable[[TurnOptions], DriveSetup | None] | None = (
        None  # the setup of a turn; None: its agent is unknown here
    )
    max_drive_seconds: float = 0.0  # seconds after which a drive releases its session between two steps; 0: never
    limiter: RequestLimiter | None = None  # of requests to providers
    # Called in the task of each tool before it runs, with session, turn, options and call, to set context variables.
    enter_call: Callable[[str, str, TurnOptions, str], None] | None = None

    def for_turn(self, options: TurnOptions) -> DriveSetup:
        """The setup of a turn with these options: that of its agent, if this process knows it."""
        return (self.setup_of(options) if self.setup_of is not None else None) or self

    def of_tenant(self, tenant: str) -> DriveSetup:
        """This setup with the permissions of a tenant, also for the agents of its turns."""
        permissions, find = self.permissions.of_tenant(tenant), self.setup_of
        if find is None:
            return replace(self, permissions=permissions)

        def setup_of(options: TurnOptions) -> DriveSetup | None:
            found = find(options)
            return None if found is None else replace(found, permissions=permissions, setup_of=setup_of)

        return replace(self, permissions=permissions, setup_of=setup_of)
