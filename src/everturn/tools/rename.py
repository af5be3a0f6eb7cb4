"""Tool renaming: a wrapper that gives a tool another name, for when two tools have the same name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import Any

from msgspec.structs import replace

from everturn.core.canonical_json import JsonObject
from everturn.core.ports import Tool, ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import ConfigError


class RenamedTool:
    """A tool that models and rules know by another name."""

    def __init__(self, tool: Tool, name: str) -> None:
        if not hasattr(tool, "spec") or not name:
            raise ConfigError('rename_tool needs the new name: rename_tool(search, "github_search")')
        self._tool = tool
        self._spec = replace(tool.spec, name=name)
        self.before: Any = getattr(tool, "before", None)
        self.after: Any = getattr(tool, "after", None)
        self.preview: Any = getattr(tool, "preview", None)
        self.takes_context: bool = getattr(tool, "takes_context", True)

    @property
    def spec(self) -> ToolSpec:
        """The wrapped tool's specification with the new name."""
        return self._spec

    def validate(self, arguments: JsonObject) -> JsonObject | None:
        """Check arguments, as the tool does."""
        return self._tool.validate(arguments)

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[object] | AsyncIterator[object]:
        """Run the wrapped tool."""
        return self._tool.run(arguments, context)


def rename_tool(tool: Tool, name: str) -> RenamedTool:
    """Give a tool another name."""
    return RenamedTool(tool, name)
