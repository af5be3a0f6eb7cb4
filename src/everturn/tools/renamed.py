"""A tool → the same tool under another name, for when two have the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import Any

from msgspec.structs import replace

from everturn.core.canonical import JsonObject
from everturn.core.ports import Tool, ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import ConfigError


class Renamed:
    """A tool that models and rules know by another name."""

    def __init__(self, tool: Tool, name: str) -> None:
        if not hasattr(tool, "spec") or not name:
            raise ConfigError('a tool is renamed with another name: renamed(search, "github_search")')
        self._tool = tool
        self._spec = replace(tool.spec, name=name)
        self.before: Any = getattr(tool, "before", None)
        self.after: Any = getattr(tool, "after", None)
        self.preview: Any = getattr(tool, "preview", None)

    @property
    def spec(self) -> ToolSpec:
        """What it is: the tool's own, but for its name."""
        return self._spec

    def validate(self, arguments: JsonObject) -> JsonObject | None:
        """Check arguments, as the tool does."""
        return self._tool.validate(arguments)

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[object] | AsyncIterator[object]:
        """Do it."""
        return self._tool.run(arguments, context)


def renamed(tool: Tool, name: str) -> Renamed:
    """Give a tool another name."""
    return Renamed(tool, name)
