"""MCP login access: each person's logins to MCP servers, those of the installation, and what administrators see of them.

A login of a person is used for the turns of that person alone. Administrators see who has one, and can end it; nobody sees
a token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess, check_user_id
from everturn.access.context.setting_writer import SettingWriter
from everturn.access.gates import GateAccess
from everturn.access.mcp.views import caller_of
from everturn.core.memory.user_memory import LOGIN_OWNER_PREFIX
from everturn.errors import AnswerUnfit, ConfigError, EverturnError, Forbidden, UnknownGate, UnknownServer

if TYPE_CHECKING:
    from everturn.mcp.config import ServerSpec
    from everturn.mcp.servers import McpServers

MOST_GATES: Final = 200  # open gates that are looked at after a login
READS: Final = 16  # logins that are read at a time


class McpLoginAccess:
    """Access to logins to MCP servers."""

    __slots__ = ("_gates", "scope")

    def __init__(self, scope: ScopedAccess, gates: GateAccess) -> None:
        self.scope, self._gates = scope, gates

    @needs("member")
    async def log_in_server(self, server: str, return_to: str = "") -> api.LoginView:
        """Start a login to a server, of the caller, or of the installation where its login is shared: then by an operator.

        The browser comes back to `return_to`, a page of the caller; without one, to a port of this node's machine.

        Raises:
            UnknownServer: there is no server of this name.
            NeedsLogin: the login could not be started.
        """
        source, spec = named_server(self.scope, server)
        await self._require_right(source, spec)
        caller = caller_of(self.scope)
        await self.scope.audit_action("mcp.login", server, login="user" if spec.is_per_person else "shared")
        person = caller if spec.is_per_person else None
        address = await source.logins.begin(spec, person, by=caller, return_to=return_to)
        return api.LoginView(address=address, returns=bool(return_to))

    @needs("member")
    async def finish_login(self, request: api.FinishMcpLogin) -> api.McpLoginEnd:
        """Complete a login of the caller, with what the authorization server gave to their browser.

        Calls that wait for this login continue.

        Raises:
            NeedsLogin: the login failed.
        """
        from everturn.mcp.login_redirect import RedirectAnswer

        caller = caller_of(self.scope)
        answer = RedirectAnswer(request.state, request.code, request.error, request.iss)
        sources = mcp_sources(self.scope)
        for source in sources:
            server = await source.logins.finish(caller, answer)
            if server:
                await self._continue_calls(server)
                return api.McpLoginEnd(server=server)
        for source in sources[:1]:  # the process that began it looks there
            await source.logins.leave(caller, answer)
        return api.McpLoginEnd()

    @needs("member")
    async def log_out_server(self, server: str) -> None:
        """End the caller's login to a server, or that of the installation where it is shared: then by an operator.

        Raises:
            UnknownServer: there is no server of this name.
        """
        source, spec = named_server(self.scope, server)
        await self._require_right(source, spec)
        await self.scope.audit_action("mcp.logout", server, login="user" if spec.is_per_person else "shared")
        await source.logins.cancel(caller_of(self.scope))
        await source.log_out(server, caller_of(self.scope))

    @needs("owner")
    async def server_logins(self, server: str) -> api.McpLogins:
        """The users of the tenant who are logged in to a server.

        Raises:
            UnknownServer: there is no server of this name.
        """
        from everturn.mcp.login_store import Person

        source, spec = named_server(self.scope, server)
        tenant = self.scope.principal.tenant
        if not spec.is_per_person:
            return api.McpLogins(login="shared", users=[])
        users = [user.id for user in await self.scope.server_context.accounts.users(tenant)]
        limit = asyncio.Semaphore(READS)

        async def is_logged_in(user: str) -> bool:
            async with limit:
                return await source.login_of(server, Person(tenant, user)) is not None

        found = await asyncio.gather(*(is_logged_in(user) for user in users))
        return api.McpLogins(login="user", users=[user for user, is_in in zip(users, found, strict=True) if is_in])

    @needs("owner")
    async def revoke_login(self, server: str, user: str) -> None:
        """End the login of a user of the tenant to a server.

        Raises:
            UnknownServer: there is no server of this name.
        """
        from everturn.mcp.login_store import Person

        check_user_id(user, "the id of a user")
        source, spec = named_server(self.scope, server)
        if not spec.is_per_person:
            raise ConfigError("the login to this server is shared; log out of it instead")
        await self.scope.audit_action("mcp.revoke", server, user=user)
        await source.log_out(server, Person(self.scope.principal.tenant, user))

    async def _require_right(self, source: McpServers, spec: ServerSpec) -> None:
        """Whoever may add a server logs the installation in; everybody logs in for themselves."""
        if spec.auth != "oauth":
            raise ConfigError(f'server {spec.name} has no login; set auth = "oauth" in its configuration')
        if spec.is_per_person:
            return
        if source.is_stored:
            self.scope.require_role("owner", "a login that all share")
            await SettingWriter(self.scope).require_administrator()
        else:
            self.scope.require_role("operator", "a login that all share")

    async def _continue_calls(self, server: str) -> None:
        """Answer the gates of the caller's calls that wait for this login."""
        from everturn.mcp.tool import is_login_gate

        page = await self._gates.page(None, MOST_GATES)
        for view in page.gates:
            if not is_login_gate(view.gate, server, self.scope.principal.user):
                continue
            try:
                answer = api.AnswerGate(hash=view.gate.hash, allow="once")
                await self._gates.resolve(view.session, view.gate.id, answer)
            except (AnswerUnfit, Forbidden, UnknownGate):
                continue  # it was answered meanwhile, or is for others to answer


def mcp_sources(scope: ScopedAccess) -> Sequence[McpServers]:
    """The MCP servers of the runtime, by where they come from."""
    if not scope.server_context.app.sources:
        return ()
    from everturn.mcp.servers import McpServers  # loaded only where there are MCP servers

    return [source for source in scope.server_context.app.sources if isinstance(source, McpServers)]


def named_server(scope: ScopedAccess, name: str) -> tuple[McpServers, ServerSpec]:
    """A server by its name.

    Raises:
        UnknownServer: there is none.
    """
    for source in mcp_sources(scope):
        for spec in source.specs:
            if spec.name == name:
                return source, spec
    raise UnknownServer("there is no such server")


async def erase_logins(scope: ScopedAccess, user: str) -> None:
    """End all logins of a user of the tenant, and delete what is stored of them."""
    tenant = scope.principal.tenant
    sources = mcp_sources(scope)
    if sources:
        from everturn.mcp.login_store import Person

        for source in sources:
            try:
                await source.forget_person(Person(tenant, user))
            except EverturnError:
                continue  # what is stored goes in any case
    await scope.store.user_memory.erase(tenant, LOGIN_OWNER_PREFIX + user)
