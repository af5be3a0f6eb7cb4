"""Published tools of one server: what is listed as tools of turns, as far as it is trusted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from everturn.errors import EverturnError
from everturn.mcp.config import ServerSpec
from everturn.mcp.task_tool import make_tool
from everturn.mcp.tool import ChangedTool, ServerTool, ToolCaller
from everturn.mcp.tool_list import ListedTool, assign_tool_names
from everturn.mcp.trust import Trust, tool_hash


class PublishedTools:
    """The tools of a server. They stay published while it is disconnected."""

    def __init__(
        self,
        spec: ServerSpec,
        servers: Sequence[str],
        trust: Trust,
        publish: Callable[[str, Sequence[ServerTool]], None],
    ) -> None:
        self._spec, self._servers, self._trust, self._publish = spec, servers, trust, publish
        self.tools: list[ServerTool] = []
        self.listed: list[ListedTool] = []

    async def update(self, caller: ToolCaller, listed: list[ListedTool], resumable: Mapping[str, bool] | bool) -> str:
        """Publish the tools if they differ from those before; return a problem, or ""."""
        hashes = {tool.name: hash_tool(tool) for tool in listed}
        trusted = await asyncio.to_thread(self._trust.tools, self._spec.name, hashes)
        names = assign_tool_names(self._spec.name, [tool.name for tool in listed], self._servers)

        def can_resume(name: str) -> bool:
            return resumable if isinstance(resumable, bool) else resumable.get(name, False)

        tools = [
            make_tool(caller, self._spec, tool, names[tool.name], resumable=can_resume(tool.name))
            if tool.name in trusted
            else ChangedTool(caller, self._spec, tool, names[tool.name])
            for tool in listed
        ]
        is_changed = [tool.spec for tool in tools] != [tool.spec for tool in self.tools]
        self.listed = listed
        if is_changed:
            self.tools = tools
            try:
                self._publish(f"mcp:{self._spec.name}", tools)
            except EverturnError as error:  # a name that another tool has; the previous tools stay published
                return str(error)
        return ""


def hash_tool(tool: ListedTool) -> str:
    """Return the hash of everything that a server says about a tool."""
    return tool_hash(tool.name, tool.description, tool.schema, tool.annotations)
