"""Views of MCP servers: their state on this node, and the hash of what somebody trusts who has seen them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from everturn import api
from everturn.core.canonical_json import hash_values
from everturn.errors import ConfigError

if TYPE_CHECKING:
    from everturn.mcp.config import ServerSpec
    from everturn.mcp.connection import ServerStatus
    from everturn.mcp.servers import McpServers


def server_view(source: McpServers, spec: ServerSpec, status: ServerStatus) -> api.McpView:
    """A server with everything that those see who may trust it."""
    address = urlsplit(spec.url)
    return api.McpView(
        name=spec.name,
        transport="http" if spec.url else "stdio",
        state=status.state,
        since=status.since,
        title=status.title,
        tools=[
            api.McpToolView(name=tool.name, description=tool.description, is_changed=tool.name in status.changed)
            for tool in source.tool_specs(spec.name)
        ],
        reason=status.reason,
        problems=list(status.problems),
        runs=f"{address.scheme}://{address.netloc}{address.path}" if spec.url else spec.command,
        variables=sorted(spec.headers if spec.url else spec.env),
        changes=source.changes(spec.name) if status.changed else [],
        hash=server_hash(source, spec),
        can_log_in=spec.auth == "oauth",
        is_logging_in=source.logins.is_waiting(spec.name),
        login_problem=source.logins.problem(spec.name),
        is_stored=source.is_stored,
    )


def server_hash(source: McpServers, spec: ServerSpec) -> str:
    """The hash of everything that is trusted with a server: how it is started or reached, and each of its tools."""
    try:
        tools = sorted(fact.hash for fact in source.facts(spec.name))
    except ConfigError:  # not connected yet
        tools = []
    return hash_values("server", spec.launch_hash, tools)
