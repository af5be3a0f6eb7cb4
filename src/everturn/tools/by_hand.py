"""A tool → the same tool, run by a person: the model calls it, and whoever is asked does it and says what came of it.

For what no program can do, and for those who want nothing done by one.
"""

from __future__ import annotations

from collections.abc import Awaitable

from msgspec.structs import replace

from everturn.core.canonical import JsonObject
from everturn.core.ports import Tool, ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import ToolError


class ByHand:
    """A tool that a person runs: its gate is answered with a result, `answer(gate, result=…)`."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self._spec = replace(tool.spec, by_hand=True)
        self.before, self.after = getattr(tool, "before", None), getattr(tool, "after", None)
        self.preview = getattr(tool, "preview", None)

    @property
    def spec(self) -> ToolSpec:
        """What it is: the tool's own, but for who is asked."""
        return self._spec

    def validate(self, arguments: JsonObject) -> JsonObject | None:
        """Check arguments, so that nobody is asked to do nonsense."""
        return self._tool.validate(arguments)

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[object]:
        """Say that it is not for us to run: somebody allowed the call, and did not do it."""
        raise ToolError(f"{self._spec.name} is run by a person, who allowed it and did not say what came of it")


def by_hand(tool: Tool) -> ByHand:
    """Let a person run a tool."""
    return ByHand(tool)
