"""Tool calling, as a plugin: it offers the tools before a request and settles the calls after it.

It uses the hooks every plugin has, waiting for days included: while a person is asked it returns `PENDING`, and is
called again, here or in another process, when the answer has come.
"""

from __future__ import annotations

from collections.abc import Iterable

from everturn.core.hooks import Pending, RequestContext, StepContext
from everturn.core.ports import Tool
from everturn.errors import ConfigError
from everturn.turn.tools import Limits, offered, settle_calls

RESERVED = "invalid"  # the name under which calls to tools that do not exist are answered


class ToolCalling:
    """Lets a model call these tools."""

    name = "tool_calling"
    writes_first = True  # no call runs that is not written down, and nothing is done with their results

    def __init__(self, tools: Iterable[Tool], limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.spec.name in self._tools or tool.spec.name == RESERVED:
                raise ConfigError(f"there are two tools called {tool.spec.name!r}; names must be unique")
            self._tools[tool.spec.name] = tool

    def on_before_request(self, ctx: RequestContext) -> None:
        """Offer the tools, unless this is the request that closes a turn."""
        if not ctx.closing:
            ctx.body.tools = offered(self._tools)

    async def on_after_request(self, ctx: StepContext) -> Pending | None:
        """Bring every call of the step to its result."""
        if not ctx.calls:
            return None
        return await settle_calls(ctx, self._tools, self._limits)
