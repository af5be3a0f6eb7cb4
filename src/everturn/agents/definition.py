"""Agent definition: model, instructions, tools, dependencies, output type, rules and limits under one name.

A definition is immutable and belongs to no app. What it contributes to a request becomes the options of a turn, which are
in the log: a turn that runs is not changed by another definition of the same name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypedDict, TypeVar, cast

from msgspec.structs import replace

from everturn.agents.denied_tools import check_tools_allowed
from everturn.agents.dependencies import DependencyFactory, check_factory
from everturn.agents.output_type import OutputType, OutputValidator
from everturn.core.context.compaction import check_context
from everturn.core.options import REVIEWS, Budget, LatePolicy, Review, ToolHistory, TurnOptions, smallest_limit
from everturn.core.ports import Model, RunContext, Tool, ToolSource, TurnInfo
from everturn.core.rules.policy import Policy, Rule
from everturn.core.validate import validate_budget, validate_rules
from everturn.errors import ConfigError
from everturn.running.plugin_table import invoke_hook
from everturn.tools.function import ToolLike, ensure_tool
from everturn.tools.groups import ToolGroup
from everturn.tools.registry import ToolItem, is_tool_source
from everturn.tools.subagent import SubagentTool
from everturn.tools.tool_options import TOOL_NAME

OutputT = TypeVar("OutputT", covariant=True)

Instructions = str | Callable[..., Any]
"""A text, or a function that returns one: plain or async, of a `RunContext` or of nothing."""
AgentTools = ToolItem | str

DEFAULT_NAME = "agent"  # of an agent without a name, which only an app in memory may have


class AgentOptions(TypedDict, total=False):
    """The keyword arguments of an agent besides its output type; `AgentDefinition` has their defaults."""

    name: str
    description: str
    instructions: Instructions | Sequence[Instructions]
    tools: Iterable[AgentTools]
    deps: DependencyFactory | None
    output_retries: int
    plugins: Iterable[object]
    rules: Iterable[Rule]
    budget: Budget | None
    max_steps: int
    timeout: float
    gate_timeout: float
    timezone: str
    reasoning: str
    params: Mapping[str, Any] | None
    tool_history: ToolHistory
    context: str
    review: Review
    manual: Iterable[str]
    late: LatePolicy


class AgentDefinition(Generic[OutputT]):
    """What an agent is; `Agent` adds the methods that run it."""

    def __init__(
        self,
        model: Model | str | None = None,
        *,
        name: str = "",
        description: str = "",
        instructions: Instructions | Sequence[Instructions] = "",
        tools: Iterable[AgentTools] = (),
        deps: DependencyFactory | None = None,
        output_type: Any = str,
        output_retries: int = 1,
        plugins: Iterable[object] = (),
        rules: Iterable[Rule] = (),
        budget: Budget | None = None,
        max_steps: int = 25,
        timeout: float = 0.0,
        gate_timeout: float = 0.0,
        timezone: str = "",
        reasoning: str = "",
        params: Mapping[str, Any] | None = None,
        tool_history: ToolHistory = "full",
        context: str = "auto",
        review: Review = "never",
        manual: Iterable[str] = (),
        late: LatePolicy = "inject",
    ) -> None:
        self.name = _check_name(name)
        where = f"agent {name!r}" if name else "the agent"
        if not (model is None or isinstance(model, str) or hasattr(model, "stream")):
            raise ConfigError(
                f"{where}: {model!r} is not a model; pass a name such as 'openai:gpt-5.2', or get_model(…)"
            )
        if isinstance(output_retries, bool) or not isinstance(output_retries, int) or output_retries < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"{where}: output_retries={output_retries!r}: must be a number of further attempts, 0 or more"
            )
        if isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"{where}: max_steps={max_steps!r}: must be a number of steps, at least 1")
        check_factory(deps)
        self.model, self.description, self.deps = model, description, deps
        self.tools, self.plugins = _checked_tools(tools, where), tuple(plugins)
        texts = (instructions,) if isinstance(instructions, str) or callable(instructions) else tuple(instructions)
        self._instructions: list[Instructions] = list(texts)
        self._step_instructions: list[Instructions] = []
        self._validators: list[OutputValidator] = []
        self.output_type, self.output_retries = output_type, output_retries
        self._output: OutputType | None = None
        self._arguments: dict[str, Any] = {
            "rules": tuple(
                replace(rule, layer="agent", source=rule.source or name)
                for rule in validate_rules(rules, f"{where}: rules")
            ),
            "budget": validate_budget(budget or Budget(), f"{where}: budget"),
            "max_steps": max_steps,
            "timeout": timeout,
            "gate_timeout": gate_timeout,
            "timezone": timezone,
            "tool_history": tool_history,
            "context": check_context(context, f"{where}: context"),
            "review": review,
            "manual": tuple(manual),
            "late": late,
        }
        self._params = {**({"reasoning": reasoning} if reasoning else {}), **(params or {})}
        self._overrides: list[AgentDefinition[Any]] = []  # the last one is in force
        check_tools_allowed(name, self.tools, (Policy(self.rules),))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The permission rules of the agent itself."""
        return self._arguments["rules"]

    # What functions contribute ------------------------------------------------------------------------------------

    def instructions(self, function: Callable[..., Any] | None = None, *, each_step: bool = False) -> Any:
        """Decorate a function whose text is added to the instructions: once for a turn, or with `each_step` for each.

        What it returns is written to the log before the request, so a repeated request is the same.
        """

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            (self._step_instructions if each_step else self._instructions).append(function)
            return function

        return add if function is None else add(function)

    def output_validator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function that checks an output: it returns the output, or raises `OutputRetry` with what to change."""
        self._validators.append(function)
        self._output = None
        return function

    @property
    def has_instruction_functions(self) -> bool:
        """Whether its instructions have to be rendered for each turn."""
        return any(callable(part) for part in self._instructions)

    @property
    def has_step_instructions(self) -> bool:
        """Whether some of its instructions are rendered for each step."""
        return bool(self._step_instructions)

    async def render_instructions(self, ctx: RunContext, each_step: bool = False) -> str:
        """Render the functions among the instructions: those of a turn, or those of each step."""
        texts: list[str] = []
        for part in self._step_instructions if each_step else self._instructions:
            if callable(part):
                text = await invoke_hook(part, *([ctx] if inspect.signature(part).parameters else []))
                texts.append(str(text or ""))
        return "\n\n".join(text for text in texts if text)

    @property
    def output(self) -> OutputType | None:
        """The output type; None: any text."""
        if self.output_type is str and not self._validators:
            return None
        if self._output is None:
            self._output = OutputType(self.output_type, self.output_retries, self._validators)
        return self._output

    def parse_output(self, text: str) -> OutputT:
        """The output that the text of an answer is: of the output type, or the text itself."""
        output = self.current.output
        return text if output is None else output.parse(text)  # pyright: ignore[reportReturnType]

    # As options of a turn -----------------------------------------------------------------------------------------

    @property
    def needs_code(self) -> bool:
        """Whether only a process that has this definition can drive its turns."""
        has_tools = any(not isinstance(tool, str) for tool in self.tools)
        functions = self.has_instruction_functions or self.has_step_instructions
        return has_tools or functions or self.deps is not None or self.output is not None or bool(self.plugins)

    def options(self, model: str, base: TurnOptions) -> TurnOptions:
        """The options of a turn of this agent; what is not the agent's is kept from `base`.

        Limits, review and rules are those of both: what is stricter holds.
        """
        params = dict(self._params)
        if (output := self.output) is not None and output.schema is not None:
            params["output_schema"] = output.schema
        arguments = self._arguments
        kept = tuple(rule for rule in base.rules if rule.layer != "agent")
        selected = tuple(tool for tool in self.tools if isinstance(tool, str))
        has_own = len(selected) < len(self.tools)  # then its registry has those that it names as well
        has_all = has_own or selected == ("*",)
        return replace(
            base,
            agent=self.name or DEFAULT_NAME,
            needs_agent=self.needs_code,
            model=model,
            budget=arguments["budget"].narrowed(base.budget),
            max_steps=arguments["max_steps"],
            tool_history=arguments["tool_history"],
            late=arguments["late"],
            context=arguments["context"],
            system="\n\n".join(part for part in self._instructions if isinstance(part, str) and part),
            params=params or None,
            rules=(*arguments["rules"], *kept),
            tools=base.tools if base.tools is not None else None if has_all else selected,
            manual=(*arguments["manual"], *base.manual),
            review=max(base.review, arguments["review"], key=REVIEWS.index),
            timezone=arguments["timezone"] or base.timezone,
            timeout=smallest_limit(arguments["timeout"], base.timeout),
            gate_timeout=smallest_limit(arguments["gate_timeout"], base.gate_timeout),
        )

    def as_tool(
        self, *, name: str = "", description: str = "", metadata: Mapping[str, Any] | None = None
    ) -> SubagentTool:
        """This agent as a tool of another one: it runs in a session of its own, and its output is the result."""
        if not self.name and not name:
            raise ConfigError("an agent that is used as a tool needs a name: Agent(…, name='researcher')")
        about = description or self.description or f"Give a task to the agent {self.name}."
        return SubagentTool(name or self.name, about, agent=self, metadata=metadata)

    def parameters(self) -> dict[str, Any]:
        """What it is made of, by the names of its parameters; functions of each step are `step_instructions`."""
        return {
            **self._arguments,
            "model": self.model,
            "name": self.name,
            "description": self.description,
            "instructions": tuple(self._instructions),
            "step_instructions": tuple(self._step_instructions),
            "tools": self.tools,
            "deps": self.deps,
            "output_type": self.output_type,
            "output_retries": self.output_retries,
            "plugins": self.plugins,
            "reasoning": str(self._params.get("reasoning", "")),
            "params": dict(self._params),
        }

    # Tests --------------------------------------------------------------------------------------------------------

    @property
    def current(self) -> AgentDefinition[Any]:
        """The definition in force: this one, or what a test put in its place."""
        return self._overrides[-1] if self._overrides else self

    @contextmanager
    def override(
        self,
        *,
        model: Model | str | None = None,
        deps: Any = None,
        tools: Iterable[AgentTools] | None = None,
    ) -> Generator[None]:
        """For tests: another model, other dependencies (a factory, or the object) or other tools, until the block ends.

        It is in force in the whole process, also for turns that a server in it drives.
        """
        changed = object.__new__(type(self))
        changed.__dict__.update(self.current.__dict__)
        if model is not None:
            changed.model = model
        if deps is not None:
            changed.deps = _factory(deps)
        if tools is not None:
            changed.tools = _checked_tools(tools, "override")
        changed._overrides = []
        self._overrides.append(changed)
        try:
            yield
        finally:
            self._overrides.remove(changed)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name or self.model!r})"


def _factory(deps: Any) -> DependencyFactory:
    def make(_turn: TurnInfo) -> Any:
        return deps

    return deps if callable(deps) else make


def _check_name(name: object) -> str:
    if not isinstance(name, str) or (name and TOOL_NAME.fullmatch(name) is None):
        raise ConfigError(f"{name!r} is not a name for an agent; letters, digits, '_' and '-', at most 64")
    return name


def _checked_tools(tools: Iterable[AgentTools], where: str) -> tuple[Tool | ToolGroup | ToolSource | str, ...]:
    """The tools of an agent; functions become tools, and a group is on unless it is `on_demand`."""
    if hasattr(tools, "spec") or callable(tools) or isinstance(tools, str | ToolGroup):
        raise ConfigError(f"{where}: tools must be a list: tools=[search]")
    checked: list[Tool | ToolGroup | ToolSource | str] = []
    for tool in tools:
        if isinstance(tool, str):
            checked.append(tool)
        elif isinstance(tool, ToolGroup):
            checked.append(tool if tool.is_on_demand else tool.enabled())
        else:
            checked.append(cast(ToolSource, tool) if is_tool_source(tool) else ensure_tool(cast(ToolLike, tool)))
    return tuple(checked)
