"""Tool list (`/tools`): the available tools with their origin, and the status of MCP servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from everturn.core.ports import Tool
from everturn.terminal.text.visible_text import escape_invisible
from everturn.tools.tool_files import describe_origin

if TYPE_CHECKING:
    from everturn.mcp import ServerStatus

NO_TOOLS = "there are no tools; start with --tools FILE, --files DIR, --code, --shell, --web or --mcp FILE"
ASKS = {"auto": "", "always": "asks before it runs", "ask": "asks before it runs, once", "deny": "is denied"}
SIGNS = {"ready": ("good", "✓"), "connecting": ("dim", "…")}
Notify = Callable[..., None]


def print_tools(say: Notify, tools: Mapping[str, Tool], servers: Iterable[ServerStatus]) -> None:
    """Print the tools that a model may call, each with its origin, and the status of the servers."""
    servers = list(servers)
    if not tools and not servers:
        say(NO_TOOLS)
    width = max((len(escape_invisible(name)) for name in tools), default=0)
    for name, tool in tools.items():
        notes = [
            escape_invisible(describe_origin(tool.spec.origin)),
            "is done by hand" if tool.spec.manual else ASKS.get(tool.spec.approval, ""),
        ]
        say("; ".join(filter(None, notes)), "", label=f"{escape_invisible(name):<{min(width, 30)}}  ")
    for status in servers:
        say(describe_server(status), *SIGNS.get(status.state, ("bad", "×")))


def print_unhealthy_servers(say: Notify, servers: Iterable[ServerStatus]) -> None:
    """Print the servers that need attention, or whose tools are missing; untrusted ones were asked about before."""
    for status in servers:
        if status.changed or status.state not in (*SIGNS, "untrusted"):
            say(describe_server(status), "bad", "×")


def describe_server(status: ServerStatus) -> str:
    """Describe the status of a server on a line; text from the server is escaped."""
    count = len(status.tools)
    text = f"mcp:{status.name} is {status.state.replace('_', ' ')}"
    if status.state == "ready":
        text += f", {count} {'tool' if count == 1 else 'tools'}"
    if status.reason:
        text += f": {escape_invisible(status.reason)}"
    if status.changed:
        text += f"; not as they were trusted: {', '.join(map(escape_invisible, status.changed))}"
    for problem in status.problems:
        text += f"; {escape_invisible(problem)}"
    return text + HINTS.get("changed" if status.changed else status.state, "").format(name=status.name)


HINTS = {
    "changed": "; `everturn mcp trust FILE {name}` shows what is different",
    "untrusted": "; `everturn mcp trust FILE {name}` shows it, and trusts it",
    "needs_login": "; `everturn mcp login FILE {name}` logs in",
}
