"""Views of MCP servers: their state on this node, and the hash of what somebody trusts who has seen them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from everturn import api
from everturn.access.context.scope import ScopedAccess
from everturn.core.canonical_json import hash_values
from everturn.errors import ConfigError, EverturnError

if TYPE_CHECKING:
    from everturn.mcp.config import ServerSpec
    from everturn.mcp.connection import ServerStatus
    from everturn.mcp.login_store import Person
    from everturn.mcp.servers import McpServers


class LoginState(Struct, frozen=True):
    """The login to a server that the caller's turns use."""

    is_in: bool = False
    since: float = 0.0


def caller_of(scope: ScopedAccess) -> Person:
    """The caller, as the owner of logins."""
    from everturn.mcp.login_store import Person

    return Person(scope.principal.tenant, scope.principal.user)


async def login_state(source: McpServers, spec: ServerSpec, caller: Person) -> LoginState:
    """The login to a server that the caller's turns use: their own, or the shared one."""
    if spec.auth != "oauth":
        return LoginState()
    try:
        saved = await source.login_of(spec.name, caller)
    except EverturnError:  # no store of logins is open
        return LoginState()
    return LoginState() if saved is None else LoginState(True, saved.since)


def server_view(
    source: McpServers, spec: ServerSpec, status: ServerStatus, caller: Person, login: LoginState
) -> api.McpView:
    """A server with everything that those see who may trust it."""
    address = urlsplit(spec.url)
    own = caller if spec.is_per_person else None
    is_out = spec.is_per_person and status.state == "ready" and not login.is_in
    return api.McpView(
        name=spec.name,
        transport="http" if spec.url else "stdio",
        state="needs_login" if is_out else status.state,
        since=status.since,
        title=status.title,
        tools=[
            api.McpToolView(name=tool.name, description=tool.description, is_changed=tool.name in status.changed)
            for tool in source.tool_specs(spec.name)
        ],
        reason="you are not logged in" if is_out else status.reason,
        problems=list(status.problems),
        runs=f"{address.scheme}://{address.netloc}{address.path}" if spec.url else spec.command,
        variables=sorted(spec.headers if spec.url else spec.env),
        changes=source.changes(spec.name) if status.changed else [],
        hash=server_hash(source, spec),
        can_log_in=spec.auth == "oauth",
        is_logging_in=source.logins.is_waiting(spec.name, own),
        login_problem=source.logins.problem(spec.name, own),
        login=("user" if spec.is_per_person else "shared") if spec.auth == "oauth" else "",
        is_logged_in=login.is_in,
        logged_in_as=caller.user if login.is_in and spec.is_per_person else "",
        logged_in_since=login.since,
        is_stored=source.is_stored,
    )


def server_hash(source: McpServers, spec: ServerSpec) -> str:
    """The hash of everything that is trusted with a server: how it is started or reached, and each of its tools."""
    try:
        tools = sorted(fact.hash for fact in source.facts(spec.name))
    except ConfigError:  # not connected yet
        tools = []
    return hash_values("server", spec.launch_hash, tools)
