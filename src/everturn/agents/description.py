"""Description of an agent as data: what it is made of, under the keys that everturn.toml has for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from everturn import api
from everturn.agents.definition import AgentDefinition
from everturn.agents.handoff import HandoffTool
from everturn.tools.groups import ToolGroup
from everturn.tools.subagent import SubagentTool


def describe_agent(agent: AgentDefinition[Any], models: Iterable[str] = ()) -> api.AgentDetails:
    """Describe an agent; code appears as `module:name`. The options of plugins are left out: they may be secrets."""
    made = agent.parameters()
    model, output = made["model"], agent.output
    subagents = [tool for tool in made["tools"] if isinstance(tool, SubagentTool) and tool.agent is not None]
    handoffs = [tool for tool in made["tools"] if isinstance(tool, HandoffTool)]
    return api.AgentDetails(
        model=model if isinstance(model, str) else "" if model is None else model.name,
        models=list(models),
        description=made["description"],
        instructions=[*_instructions(made["instructions"]), *_instructions(made["step_instructions"], each_step=True)],
        tools=[_tool(tool) for tool in made["tools"] if tool not in subagents and tool not in handoffs],
        subagents=[tool.request.agent for tool in subagents],
        handoffs=[tool.target for tool in handoffs],
        deps="" if made["deps"] is None else _place(made["deps"]),
        output_type=None if output is None else output.schema,
        output_retries=made["output_retries"],
        plugins=[_place(plugin if hasattr(plugin, "__qualname__") else type(plugin)) for plugin in made["plugins"]],
        permissions=[api.RuleRow(tool=rule.tool, action=rule.action, match=rule.match) for rule in made["rules"]],
        budget=made["budget"],
        max_steps=made["max_steps"],
        timeout=made["timeout"],
        gate_timeout=made["gate_timeout"],
        timezone=made["timezone"],
        reasoning=made["reasoning"],
        params=made["params"],
        tool_history=made["tool_history"],
        context=made["context"],
        late=made["late"],
        review=made["review"],
        manual=list(made["manual"]),
    )


def _instructions(parts: Iterable[Any], each_step: bool = False) -> list[str | api.InstructionsFunction]:
    return [
        part if isinstance(part, str) else api.InstructionsFunction(function=_place(part), each_step=each_step)
        for part in parts
        if part
    ]


def _tool(tool: Any) -> str:
    """A tool as it is selected: its name, or `@group`; a tool source by its class."""
    if isinstance(tool, str):
        return tool
    if isinstance(tool, ToolGroup):
        return f"@{tool.name}"
    return tool.spec.name if hasattr(tool, "spec") else _place(type(tool))


def _place(code: Any) -> str:
    return f"{getattr(code, '__module__', '')}:{getattr(code, '__qualname__', type(code).__qualname__)}"
