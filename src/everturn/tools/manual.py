"""Manual tools: a wrapper for a tool that a person runs. The model calls it, and the person does it and enters the
result.

For work that no program can do, and for users who want no program to do it.
"""

from __future__ import annotations

from collections.abc import Awaitable

from msgspec.structs import replace

from everturn.core.canonical_json import JsonObject
from everturn.core.ports import Tool, ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import ToolError


class ManualTool:
    """A tool that a person runs: its gate is answered with a result, `answer(gate, result=…)`."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self._spec = replace(tool.spec, manual=True)
        self.before, self.after = getattr(tool, "before", None), getattr(tool, "after", None)
        self.preview = getattr(tool, "preview", None)

    @property
    def spec(self) -> ToolSpec:
        """The wrapped tool's specification, marked as manual."""
        return self._spec

    def validate(self, arguments: JsonObject) -> JsonObject | None:
        """Check arguments, so that no person is asked to do something invalid."""
        return self._tool.validate(arguments)

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[object]:
        """Fail: the gate was approved without a result, and no program runs this tool."""
        raise ToolError(f"{self._spec.name} is run by a person, who approved it without giving a result")


def manual(tool: Tool) -> ManualTool:
    """Make a manual tool: a person does the work and enters the result of each call."""
    return ManualTool(tool)
