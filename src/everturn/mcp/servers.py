"""MCP servers as a source of tools: each server is kept connected by its own task."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from everturn.core.ports import Tool
from everturn.core.requests import ToolSpec
from everturn.core.settings import McpTrust
from everturn.errors import ConfigError
from everturn.mcp.config import ServerSpec
from everturn.mcp.connection import ServerConnection, ServerStatus
from everturn.mcp.login import PendingLogins
from everturn.mcp.offers import OfferedContent, ServerOffers
from everturn.mcp.tool import ServerTool
from everturn.mcp.trust import StoredTrust, ToolFacts, Trust, TrustAll

CLOSING = 5.0  # seconds for all servers to stop
START_TIMEOUT = 10.0  # seconds for servers to start, so that the first turn of a program has their tools
QUICK_START_TIMEOUT = 0.7  # the same where a person looks at an empty screen meanwhile


class McpServers:
    """The tools of MCP servers: connects to the servers and gives their tools to a chat, an agent or an app.

    `timeout` is how many seconds `open` waits for servers that are still starting; a server that fails is not waited
    for, and a slower one publishes its tools when it is connected.
    `trust` decides which servers may be started, and which tools are unchanged; by default servers are trusted because
    code names them, and a tool that changes is not. `tokens` is the folder for the tokens of servers that need a login.
    """

    def __init__(
        self,
        specs: Iterable[ServerSpec],
        *,
        trust: Trust | None = None,
        timeout: float = START_TIMEOUT,
        tokens: str | Path | None = None,
    ) -> None:
        self.specs = tuple(specs)
        names = [spec.name for spec in self.specs]
        if len(set(names)) < len(names):
            duplicates = sorted({name for name in names if names.count(name) > 1})
            raise ConfigError(f"two servers have the name {', '.join(duplicates)}; names must be unique")
        self._trust: Trust = trust if trust is not None else TrustAll()
        self._timeout, self._tokens = timeout, tokens
        self._connections: dict[str, ServerConnection] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()  # of servers that were removed
        self._publish: Callable[[str, Sequence[Tool]], None] | None = None
        self.logins = PendingLogins(tokens, self.reconnect)

    @property
    def origins(self) -> Sequence[str]:
        """The origins whose tools this source publishes."""
        return [f"mcp:{spec.name}" for spec in self.specs]

    async def wait_until_open(self) -> None:
        """Wait until the first attempt to connect to each server has succeeded or failed."""
        for link in list(self._connections.values()):
            await link.first_attempt_done.wait()

    async def open(self, publish: Callable[[str, Sequence[Tool]], None]) -> None:
        """Start connecting, and wait until every server is connected or has failed, or for `timeout` seconds."""
        if self._publish is not None:
            raise ConfigError("these servers are already used by an app; create another McpServers for another app")

        self._publish = publish
        for spec in self.specs:
            self._connect(spec, publish)
        if self._tasks:
            waits = [asyncio.create_task(link.first_attempt_done.wait()) for link in self._connections.values()]
            await asyncio.wait(waits, timeout=self._timeout)
            for wait in waits:
                wait.cancel()

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
                self._connections[name].reconnect()
        # The status has the order of the specs.
        self._connections = {name: self._connections[name] for name in now}

    def _connect(self, spec: ServerSpec, publish: Callable[[str, Sequence[Tool]], None]) -> None:
        def publish_tools(origin: str, tools: Sequence[ServerTool]) -> None:
            publish(origin, tools)

        names = [spec.name for spec in self.specs]
        link = ServerConnection(spec, names, self._trust, publish_tools, self._tokens)
        self._connections[spec.name] = link
        self._tasks[spec.name] = asyncio.create_task(link.run(), name=f"mcp-{spec.name}")

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
        return [] if link is None else [tool.spec for tool in link.tools]

    def facts(self, name: str) -> list[ToolFacts]:
        """Return what a server currently says about its tools, for the decision to trust it."""
        return [
            ToolFacts(listed_tool.name, listed_tool.description, listed_tool.schema, listed_tool.annotations)
            for listed_tool in self._connection(name).listed
        ]

    def changes(self, name: str) -> list[str]:
        """Describe what of a server's tools differs from what was trusted, in lines for a person, if the trust keeps
        that."""
        link = self._connection(name)
        describe_changes = getattr(self._trust, "changes", None)
        return (
            describe_changes(link.spec, self.facts(name))
            if describe_changes is not None and link.status.changed
            else []
        )

    async def offers(self) -> dict[str, ServerOffers]:
        """Return the prompts and resources of each connected server that answers."""
        names = [name for name, link in self._connections.items() if link.session is not None]
        listed = await asyncio.gather(
            *(self._connections[name].offers.list() for name in names), return_exceptions=True
        )
        return {name: offers for name, offers in zip(names, listed, strict=True) if isinstance(offers, ServerOffers)}

    async def get_prompt(self, name: str, prompt: str, values: Mapping[str, str]) -> OfferedContent:
        """Return the text of a prompt of a server, with its arguments filled in."""
        return await self._connection(name).offers.prompt(prompt, values)

    async def read_resource(self, name: str, uri: str) -> OfferedContent:
        """Return the content of a resource of a server."""
        return await self._connection(name).offers.resource(uri)

    async def trust(self, name: str) -> None:
        """Trust a server as it is now."""
        link, facts = self._connection(name), self.facts(name)
        hashes = {fact.name: fact.hash for fact in facts}
        await asyncio.to_thread(self._trust.trust, link.spec, hashes, facts)
        link.reconnect()

    def reconnect(self, name: str) -> None:
        """Connect to a server now: it was fixed, or a person logged in."""
        self._connection(name).reconnect()

    def _connection(self, name: str) -> ServerConnection:
        if name not in self._connections:
            raise ConfigError(f"there is no server {name!r} open; there are: {', '.join(self._connections) or 'none'}")
        return self._connections[name]
