"""MCP settings access: MCP servers that an administrator adds at run time, and the trust in their tools.

A server is an address, or a program that the configuration file offers by name: nobody names a command in a browser. Its
tools cannot be called before an administrator has seen and trusted them, and a tool that changes waits for that again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess
from everturn.access.context.setting_writer import SettingWriter
from everturn.access.context.settings_backend import SettingsBackend
from everturn.access.mcp.views import caller_of, login_state, server_hash, server_view
from everturn.core.tenants.settings import McpSettings, McpTrust, Setting, decode_body
from everturn.errors import ConfigError, HashMismatch, UnknownServer

if TYPE_CHECKING:
    from everturn.mcp.config import ServerSpec
    from everturn.mcp.servers import McpServers

NO_MCP: Final = "MCP is not installed; `pip install 'everturn[mcp]'`, and restart the server"
_VALUE: Final = re.compile(r"[ -~]+")  # printable ASCII
_NOT_CHANGED: Final = "this server has changed since it was shown; review it again"


class McpSettingsAccess:
    """Access to the MCP servers of administrators."""

    __slots__ = ("_writer", "scope")

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope, self._writer = scope, SettingWriter(scope)

    @needs("owner")
    async def put(self, server: str, request: api.NewMcpSettings) -> api.McpSettingsView:
        """Add a server, or change one, and connect to it. Its tools wait until they are trusted.

        Raises:
            ConfigError: it is invalid, its address is refused, or a file has a server of this name.
            HashMismatch: another person has changed it meanwhile.
        """
        backend = await self._writer.backend()
        if backend.servers is None:
            raise ConfigError(NO_MCP)
        self._writer.require_free(backend, "mcp", server)
        before = await self._writer.find("mcp", server)
        known: McpSettings | None = decode_body(before) if before is not None else None
        names = tuple(sorted(request.values))
        is_same = known is not None and (known.url, known.program) == (request.url, request.program)
        entered = {name: value.strip() for name, value in request.values.items() if value.strip()}
        keeps = bool(names) and not entered
        if keeps and (known is None or not is_same or not set(names) <= set(known.values)):
            raise ConfigError("enter the values of the headers or variables; those of another address are not kept")
        if keeps and known is not None and names != known.values:
            raise ConfigError("to remove a header or variable, enter the values of the others again")
        if entered and len(entered) < len(names):
            raise ConfigError("enter all values, or none of them to keep those that are stored")
        if wrong := next((name for name, value in entered.items() if _VALUE.fullmatch(value) is None), None):
            raise ConfigError(f"the value of {wrong!r} has line breaks or characters beyond ASCII")
        trust = known.trust if known is not None and is_same else McpTrust()
        body = McpSettings(request.url, request.program, request.auth, request.login, names, trust)
        saved = await self._writer.save(
            backend,
            "mcp",
            server,
            body,
            request.version,
            secret=msgspec.json.encode(entered).decode() if entered else "",
            sealed=before.secret if before is not None and keeps else b"",
            url=body.url,
            program=body.program,
        )
        return await mcp_view(saved, backend, self.scope)

    @needs("owner")
    async def delete(self, server: str) -> None:
        """Delete a server: it is disconnected, and its tools are gone."""
        await self._writer.delete("mcp", server)

    @needs("owner")
    async def trust(self, server: str, seen: api.TrustServer) -> api.McpSettingsView:
        """Trust the tools of a server as the caller has seen them; this makes a version of the setting.

        Raises:
            UnknownServer: there is no server of this name.
            HashMismatch: the server has changed since.
        """
        from everturn.mcp.trust import trusted_now

        backend, setting, source, spec = await self._server(server)
        facts = source.facts(server)
        if server_hash(source, spec) != seen.hash:
            raise HashMismatch(_NOT_CHANGED)
        body: McpSettings = decode_body(setting)
        body = replace(body, trust=trusted_now(spec, facts))
        saved = await self._writer.save(
            backend, "mcp", server, body, setting.version, sealed=setting.secret, trusted=len(facts), hash=seen.hash
        )
        return await mcp_view(saved, backend, self.scope)

    @needs("owner")
    async def retry(self, server: str) -> None:
        """Reconnect to a server now.

        Raises:
            UnknownServer: there is no server of this name.
        """
        _, _, source, _ = await self._server(server)
        source.reconnect(server)

    async def _server(self, name: str) -> tuple[SettingsBackend, Setting, McpServers, ServerSpec]:
        backend = await self._writer.backend()
        setting = await self._writer.find("mcp", name)
        source = backend.servers
        spec = next((spec for spec in source.specs if spec.name == name), None) if source is not None else None
        if setting is None or source is None or spec is None:
            raise UnknownServer("there is no such server")
        return backend, setting, source, spec


async def mcp_view(row: Setting, backend: SettingsBackend, scope: ScopedAccess) -> api.McpSettingsView:
    """A server as its administrator sees it: the setting, and the state of the connection of this node."""
    body: McpSettings = decode_body(row)
    source = backend.servers
    live = None
    if source is not None:
        rows = zip(source.specs, source.status(), strict=True)
        caller = caller_of(scope)
        for spec, status in rows:
            if spec.name == row.name:
                live = server_view(source, spec, status, caller, await login_state(source, spec, caller))
    return api.McpSettingsView(
        name=row.name,
        version=row.version,
        by=row.by,
        at=row.at,
        problem=backend.problems.get(("mcp", row.name), ""),
        url=body.url,
        program=body.program,
        auth=body.auth,
        login=body.login,
        values=list(body.values),
        trusted=len(body.trust.tools),
        server=live,
    )
