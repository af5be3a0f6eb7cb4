"""MCP servers as a source of tools: each server is kept connected by its own task."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.ports import Tool
from everturn.core.requests import ToolSpec
from everturn.core.tenants.settings import McpTrust
from everturn.errors import ConfigError, ToolError
from everturn.mcp.config import ServerSpec
from everturn.mcp.connection import ServerConnection, ServerStatus
from everturn.mcp.login import PendingLogins
from everturn.mcp.login_store import FileLogins, LoginStore, Person
from everturn.mcp.offer_requests import OfferRequests
from everturn.mcp.offers import OfferedContent, ServerOffers
from everturn.mcp.personal_connections import PersonalConnections
from everturn.mcp.published_tools import PublishedTools
from everturn.mcp.token_storage import PersonTokens, SavedTokens, TokenFile, TokenStorage
from everturn.mcp.tool import ChangedTool, ServerTool
from everturn.mcp.tool_list import ListedTool
from everturn.mcp.trust import StoredTrust, ToolFacts, Trust, TrustAll, escape_invisible

log = logging.getLogger(__name__)

CLOSING = 5.0  # seconds for all servers to stop
START_TIMEOUT = 10.0  # seconds for servers to start, so that the first turn of a program has their tools
QUICK_START_TIMEOUT = 0.7  # the same where a person looks at an empty screen meanwhile


class _Server(Struct):
    """A server that is open: its connection, or those of people, and its published tools."""

    connection: ServerConnection | PersonalConnections
    published: PublishedTools
    people: PersonalConnections | None = None

    @property
    def status(self) -> ServerStatus:
        """The status, with the published tools."""
        tools = self.published.tools
        changed = tuple(tool.spec.name for tool in tools if isinstance(tool, ChangedTool))
        return replace(self.connection.status, tools=tuple(tool.spec.name for tool in tools), changed=changed)


class McpServers:
    """The tools of MCP servers: connects to the servers and gives their tools to a chat, an agent or an app.

    `timeout` is how many seconds `open` waits for servers that are still starting; a server that fails is not waited
    for, and a slower one publishes its tools when it is connected.
    `trust` decides which servers may be started, and which tools are unchanged; by default servers are trusted because
    code names them, and a tool that changes is not. `tokens` is the folder for the tokens of servers that need a login.
    `logins` stores those of people, for servers with `login = "user"`; by default they are in that folder, too.
    """

    def __init__(
        self,
        specs: Iterable[ServerSpec],
        *,
        trust: Trust | None = None,
        timeout: float = START_TIMEOUT,
        tokens: str | Path | None = None,
        logins: LoginStore | None = None,
    ) -> None:
        self.specs = tuple(specs)
        names = [spec.name for spec in self.specs]
        if len(set(names)) < len(names):
            duplicates = sorted({name for name in names if names.count(name) > 1})
            raise ConfigError(f"two servers have the name {', '.join(duplicates)}; names must be unique")
        self._trust: Trust = trust if trust is not None else TrustAll()
        self._timeout, self._tokens = timeout, tokens
        self._logins = logins if logins is not None or tokens is None else FileLogins(Path(tokens) / "people")
        self._connections: dict[str, _Server] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()  # of servers that were removed
        self._publish: Callable[[str, Sequence[Tool]], None] | None = None
        self.logins = PendingLogins(self._storage, self._login_store, self._logged_in)

    @property
    def origins(self) -> Sequence[str]:
        """The origins whose tools this source publishes."""
        return [f"mcp:{spec.name}" for spec in self.specs]

    async def wait_until_open(self) -> None:
        """Wait until each server is connected, or cannot be used before a person has done something.

        A server that is down is tried again, and waited for: its tools may be those of calls that are open.
        """
        for link in list(self._connections.values()):
            await link.connection.wait_until_decided()

    async def open(self, publish: Callable[[str, Sequence[Tool]], None]) -> None:
        """Start connecting, and wait until every server is connected or has failed, or for `timeout` seconds."""
        if self._publish is not None:
            raise ConfigError("these servers are already used by an app; create another McpServers for another app")

        self._publish = publish
        for spec in self.specs:
            self._connect(spec, publish)
        if self._tasks:
            # What people use is known from earlier connections; nobody is connected yet.
            links = [link.connection for link in self._connections.values() if link.people is None]
            waits = [asyncio.create_task(link.first_attempt_done.wait()) for link in links]
        else:
            waits = []
        if waits:
            await asyncio.wait(waits, timeout=self._timeout)
            for wait in waits:
                wait.cancel()
            if self._timeout >= START_TIMEOUT:  # a UI, which waits for less, shows the states itself
                self._warn_of_missing_tools()

    def _warn_of_missing_tools(self) -> None:
        """Log which servers have no tools yet: without it a program sees only that a tool does not exist."""
        for status in self.status():
            if status.state in ("connecting", "down", "failed"):
                log.warning(
                    "MCP server %s has no tools yet: it is %s%s. The first turn starts without them; "
                    "McpServers(…, timeout=…) sets how long an app waits, and servers.status() has more",
                    status.name,
                    status.state,
                    f" ({escape_invisible(status.reason)})" if status.reason else "",
                )

    async def aclose(self) -> None:
        """Stop all servers, and their processes."""
        await self.logins.aclose()
        tasks = {*self._tasks.values(), *self._closing}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSING)
        self._tasks, self._publish = {}, None

    @property
    def login_store(self) -> LoginStore | None:
        """Where the logins of people are."""
        return self._logins

    @property
    def is_stored(self) -> bool:
        """Whether the servers are settings of administrators."""
        return isinstance(self._trust, StoredTrust)

    def replace_servers(self, specs: Iterable[ServerSpec], trusted: Mapping[str, McpTrust]) -> None:
        """Replace the servers of administrators, and what is trusted of them, while they are open.

        A server that is the same stays connected; one that was removed is disconnected, and its tools are gone.
        """
        assert isinstance(self._trust, StoredTrust)
        before = {spec.name: spec for spec in self.specs}
        self.specs = tuple(specs)
        changed = self._trust.replace(trusted)
        if self._publish is None:
            return
        now = {spec.name: spec for spec in self.specs}
        for name in [name for name, spec in before.items() if now.get(name) != spec]:
            self._disconnect(name, self._publish)
        for name, spec in now.items():
            if name not in self._connections:
                self._connect(spec, self._publish)
            elif name in changed:
                self._connections[name].connection.reconnect()
        # The status has the order of the specs.
        self._connections = {name: self._connections[name] for name in now}

    def _connect(self, spec: ServerSpec, publish: Callable[[str, Sequence[Tool]], None]) -> None:
        def publish_tools(origin: str, tools: Sequence[ServerTool]) -> None:
            publish(origin, tools)

        names = [spec.name for spec in self.specs]
        if spec.is_per_person:
            people = PersonalConnections(spec, names, self._trust, publish_tools, self._login_store())
            server = _Server(people, people.published, people)
        else:
            published = PublishedTools(spec, names, self._trust, publish_tools)

            async def update(listed: list[ListedTool], resumable: bool) -> str:
                return await published.update(link, listed, resumable)

            tokens = TokenFile(spec, self._tokens) if self._tokens is not None and spec.auth == "oauth" else None
            link = ServerConnection(spec, self._trust, update, tokens)
            server = _Server(link, published)
        self._connections[spec.name] = server
        self._tasks[spec.name] = asyncio.create_task(server.connection.run(), name=f"mcp-{spec.name}")

    def _disconnect(self, name: str, publish: Callable[[str, Sequence[Tool]], None]) -> None:
        task = self._tasks.pop(name)
        del self._connections[name]
        task.cancel()
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        publish(f"mcp:{name}", ())

    def status(self) -> list[ServerStatus]:
        """Return the status of every server."""
        if not self._connections:
            return [ServerStatus(spec.name, "connecting", "it is not open yet", time.time()) for spec in self.specs]
        return [link.status for link in self._connections.values()]

    def tool_specs(self, name: str) -> list[ToolSpec]:
        """Return the tools of a server as a model sees them."""
        link = self._connections.get(name)
        return [] if link is None else [tool.spec for tool in link.published.tools]

    def facts(self, name: str) -> list[ToolFacts]:
        """Return what a server currently says about its tools, for the decision to trust it."""
        return [
            ToolFacts(listed_tool.name, listed_tool.description, listed_tool.schema, listed_tool.annotations)
            for listed_tool in self._connection(name).published.listed
        ]

    def changes(self, name: str) -> list[str]:
        """Describe what of a server's tools differs from what was trusted, in lines for a person, if the trust keeps
        that."""
        link = self._connection(name)
        describe_changes = getattr(self._trust, "changes", None)
        return (
            describe_changes(link.connection.spec, self.facts(name))
            if describe_changes is not None and link.status.changed
            else []
        )

    async def offers(self, person: Person | None = None) -> dict[str, ServerOffers]:
        """Return the prompts and resources of each connected server that answers; with the login of a person where that
        is needed."""
        names = list(self._connections)
        listed = await asyncio.gather(*(self._offers_of(name, person) for name in names), return_exceptions=True)
        return {name: offers for name, offers in zip(names, listed, strict=True) if isinstance(offers, ServerOffers)}

    async def _offers_of(self, name: str, person: Person | None) -> ServerOffers:
        async with self._offering(name, person) as offers:
            return await offers.list()

    async def get_prompt(
        self, name: str, prompt: str, values: Mapping[str, str], person: Person | None = None
    ) -> OfferedContent:
        """Return the text of a prompt of a server, with its arguments filled in."""
        async with self._offering(name, person) as offers:
            return await offers.prompt(prompt, values)

    async def read_resource(self, name: str, uri: str, person: Person | None = None) -> OfferedContent:
        """Return the content of a resource of a server."""
        async with self._offering(name, person) as offers:
            return await offers.resource(uri)

    @asynccontextmanager
    async def _offering(self, name: str, person: Person | None) -> AsyncGenerator[OfferRequests]:
        server = self._connection(name)
        if server.people is None:
            yield server.connection.offers
            return
        if person is None:
            raise ToolError(f"server {name} needs the login of a person")
        async with server.people.connected(person) as connected:
            yield connected.offers

    # Logins ----------------------------------------------------------------------------------------------------------

    async def login_of(self, name: str, person: Person | None) -> SavedTokens | None:
        """Return what is saved of a login; None: there is none. A login may have been revoked at the server."""
        spec = self._spec(name)
        saved = await self._storage(spec, person if spec.is_per_person else None).load()
        return saved if saved.tokens is not None else None

    async def log_out(self, name: str, person: Person | None) -> bool:
        """End a login: its tokens are revoked at the server, if it offers that, and deleted; False if there was none."""
        spec = self._spec(name)
        owner = person if spec.is_per_person else None
        saved = await self.login_of(name, owner)
        if saved is None:
            return False
        await self._storage(spec, owner).delete()
        self._end_connections(name, owner)
        from everturn.mcp.revocation import revoke_tokens

        await revoke_tokens(spec, saved)
        return True

    async def forget_person(self, person: Person) -> None:
        """Delete all logins of a person."""
        await self.logins.cancel(person)
        for spec in self.specs:
            if spec.is_per_person:
                await self.log_out(spec.name, person)
        if self._logins is not None:
            await self._logins.erase(person)

    def _end_connections(self, name: str, owner: Person | None) -> None:
        server = self._connections.get(name)
        if server is None:
            return
        if server.people is not None and owner is not None:
            server.people.close(owner)
        elif server.people is None and isinstance(server.connection, ServerConnection):
            server.connection.login_required("the login has ended")

    async def _logged_in(self, spec: ServerSpec, person: Person | None) -> None:
        server = self._connections.get(spec.name)
        if server is None or server.people is None or person is None:
            self.reconnect(spec.name)
            return
        server.people.close(person)  # of an earlier login
        with suppress(ToolError):
            async with server.people.connected(person):  # lists the tools of the first one who logs in
                pass

    def _storage(self, spec: ServerSpec, person: Person | None) -> TokenStorage:
        if spec.is_per_person:
            if person is None:
                raise ConfigError(f'server {spec.name} has login = "user": a person logs in, on the page MCP servers')
            return PersonTokens(spec, self._login_store(), person, begin=True)
        if self._tokens is None:
            raise ConfigError("there is no folder for tokens: McpServers(…, tokens='folder')")
        return TokenFile(spec, self._tokens)

    def _login_store(self) -> LoginStore:
        if self._logins is None:
            raise ConfigError("there is no folder for tokens: McpServers(…, tokens='folder')")
        return self._logins

    def _spec(self, name: str) -> ServerSpec:
        for spec in self.specs:
            if spec.name == name:
                return spec
        raise ConfigError(
            f"there is no server {name!r}; there are: {', '.join(spec.name for spec in self.specs) or 'none'}"
        )

    async def trust(self, name: str) -> None:
        """Trust a server as it is now."""
        link, facts = self._connection(name), self.facts(name)
        hashes = {fact.name: fact.hash for fact in facts}
        await asyncio.to_thread(self._trust.trust, link.connection.spec, hashes, facts)
        link.connection.reconnect()

    def reconnect(self, name: str) -> None:
        """Connect to a server now: it was fixed, or a person logged in."""
        server = self._connection(name)
        if server.people is not None:
            server.people.forget_tools()
        server.connection.reconnect()

    def _connection(self, name: str) -> _Server:
        if name not in self._connections:
            raise ConfigError(f"there is no server {name!r} open; there are: {', '.join(self._connections) or 'none'}")
        return self._connections[name]
