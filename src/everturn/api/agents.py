"""Agents, models, tools and folders, as clients see them."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from everturn.api.base import Body, View
from everturn.core.options import Budget, LatePolicy, PermissionMode, Review, ToolHistory


class InstructionsFunction(View, frozen=True, kw_only=True):
    """A function among the instructions of an agent."""

    function: str  # module:name
    each_step: bool = False  # whether it is called for each step, not once for a turn


class RuleRow(View, frozen=True, kw_only=True):
    """A permission rule, as it is written in everturn.toml."""

    tool: str
    action: str
    match: dict[str, str] = {}


class AgentDetails(View, frozen=True, kw_only=True):
    """What an agent is made of, under the keys of `[agents.NAME]` in everturn.toml; code is named as `module:name`."""

    model: str
    models: list[str]
    description: str
    instructions: list[str | InstructionsFunction]
    tools: list[str]
    subagents: list[str]
    handoffs: list[str]
    deps: str
    output_type: dict[str, Any] | None  # a JSON Schema; None: any text
    output_retries: int
    plugins: list[str]
    permissions: list[RuleRow]
    budget: Budget
    max_steps: int
    timeout: float
    gate_timeout: float
    timezone: str
    reasoning: str
    params: dict[str, Any]
    tool_history: ToolHistory
    context: str
    late: LatePolicy
    review: Review
    manual: list[str]


class AgentView(View, frozen=True, kw_only=True):
    """A configured agent."""

    name: str
    description: str
    model: str
    tools: list[str] | None = None
    is_default: bool = False
    models: list[str] = []  # other models that a message may select
    modes: list[str] = []  # permission modes that a message may select
    any_model: bool = False  # a message may select any model
    folder: str = ""  # the folder that it works in; "": none
    details: AgentDetails | None = None  # for operators only: it has the instructions


class OpenFolder(Body, frozen=True, kw_only=True):
    """Open a folder of this machine: its agent works there."""

    path: Annotated[str, Meta(min_length=1, max_length=4_096)]
    key: Annotated[str, Meta(max_length=200)] = ""  # the Idempotency-Key that a first message will have


class FolderCommand(View, frozen=True, kw_only=True):
    """A slash command that a file defines: `text` is what it sends, with `$ARGUMENTS` and `$1` for its arguments."""

    name: str
    text: str
    description: str = ""
    hint: str = ""  # its arguments, for people
    source: str = ""  # the file


class FolderView(View, frozen=True, kw_only=True):
    """A folder that the server of a terminal has open: its agent, and notes about what is missing or risky."""

    agent: str
    root: str
    label: str  # its path, for people
    mode: PermissionMode = "ask"  # the permission mode to begin with
    notes: list[str] = []
    session: str = ""  # the session that a first message with that key starts; "": no key was given
    commands: list[FolderCommand] = []
    skills: list[str] = []  # the names of its skills
    subagents: list[str] = []  # the names of its sub-agents


class ToolView(View, frozen=True, kw_only=True):
    """A tool as a model sees it."""

    name: str
    description: str
    schema: dict[str, Any]
    origin: str
    approval: str
    read_only: bool
    idempotent: bool
    group: str = ""


class ModelView(View, frozen=True, kw_only=True):
    """A model that one of the agents may use."""

    name: str  # the name to send in a message
    badge: str = ""  # the name on its answers
    context: int = 0  # the size of its context window in tokens; 0: unknown
    vendor: str = ""  # "": unknown
    input_price: float | None = None  # US dollars per million tokens; None: unknown
    output_price: float | None = None
    inputs: list[str] | None = None  # what it accepts beside text: image, audio, pdf; None: unknown
    has_native_tools: bool | None = None  # False: it is prompted to call tools; None: unknown
    has_temperature: bool | None = None  # False: it refuses a temperature; None: unknown
    reasoning_levels: list[str] | None = None  # the levels of `reasoning` that it has; None: unknown


class AgentList(View, frozen=True, kw_only=True):
    """Agents, the default one first, and the models that they use."""

    agents: list[AgentView]
    models: list[ModelView] = []


class ToolList(View, frozen=True, kw_only=True):
    """Tools, by name."""

    tools: list[ToolView]
