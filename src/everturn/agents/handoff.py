"""Handoff: a tool that hands the conversation to another agent, which answers in the same turn."""

from __future__ import annotations

from everturn.agents.definition import AgentDefinition
from everturn.core.canonical_json import JsonObject
from everturn.core.ports import ToolContext
from everturn.core.requests import ToolSpec
from everturn.core.tool import Handoff
from everturn.errors import BadArguments

SCHEMA: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}


class HandoffTool:
    """A tool whose call hands the turn over. It has no effect of its own, so a crash may repeat it."""

    def __init__(self, agent: AgentDefinition[object] | str, name: str = "", description: str = "") -> None:
        self.agent = agent
        self.target = agent if isinstance(agent, str) else agent.name
        about = "" if isinstance(agent, str) else agent.description
        text = description or f"Hand the conversation over to {self.target}.{f' {about}' if about else ''}"
        self._spec = ToolSpec(
            name or f"transfer_to_{self.target}", text, SCHEMA, read_only=True, repeatable=True, origin="handoff"
        )

    @property
    def spec(self) -> ToolSpec:
        """The tool's specification."""
        return self._spec

    def validate(self, arguments: JsonObject) -> None:
        """Check that there are no arguments."""
        if arguments:
            raise BadArguments(f"{self._spec.name} takes no arguments")

    async def run(self, arguments: JsonObject, context: ToolContext) -> Handoff:
        """Hand the turn over."""
        return Handoff(self.target)


def handoff(agent: AgentDefinition[object] | str, *, name: str = "", description: str = "") -> HandoffTool:
    """Make a tool with which the model hands the conversation to another agent, given as an object or by name.

    The other agent sees the conversation, with its own instructions, tools and rules, and answers in the same turn.
    """
    return HandoffTool(agent, name, description)
