"""Servers → a source of tools: each is kept within reach by a task of its own, and none of them keeps a turn waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from everturn.core.ports import Tool
from everturn.errors import ConfigError
from everturn.mcp.config import ServerSpec
from everturn.mcp.link import Link, ServerStatus
from everturn.mcp.logins import Logins
from everturn.mcp.tool import ServerTool
from everturn.mcp.trust import ToolFacts, Trust, TrustAll

CLOSING = 5.0  # seconds for all servers to end


class McpServers:
    """The tools of MCP servers.

    `patience` is how long `open` waits for them: those that are slower bring their tools when they have them. `trust`
    says which of them may be started, and which tools are what they were; by default servers are trusted because code
    names them, and a tool that changes is not. `tokens` is the folder for those that want a login.
    """

    def __init__(
        self,
        specs: Iterable[ServerSpec],
        *,
        trust: Trust | None = None,
        patience: float = 0.7,
        tokens: str | Path | None = None,
    ) -> None:
        self.specs = tuple(specs)
        names = [spec.name for spec in self.specs]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise ConfigError(f"there are two servers called {', '.join(twice)}; names must be unique")
        self._trust: Trust = trust if trust is not None else TrustAll()
        self._patience, self._tokens = patience, tokens
        self._links: dict[str, Link] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self.logins = Logins(tokens, self.again)

    @property
    def origins(self) -> Sequence[str]:
        """The origins whose tools it publishes."""
        return [f"mcp:{spec.name}" for spec in self.specs]

    @property
    def is_opening(self) -> bool:
        """Whether some server was not reached yet, and nobody knows why not."""
        return not self._links or not all(link.settled.is_set() for link in self._links.values())

    async def open(self, publish: Callable[[str, Sequence[Tool]], None]) -> None:
        """Begin, and wait a little for those that are quick."""
        if self._tasks:
            raise ConfigError("these servers are open already; make another McpServers for another runtime")

        def told(origin: str, tools: Sequence[ServerTool]) -> None:
            publish(origin, tools)

        names = [spec.name for spec in self.specs]
        self._links = {spec.name: Link(spec, names, self._trust, told, self._tokens) for spec in self.specs}
        self._tasks = [asyncio.create_task(link.run(), name=f"mcp-{name}") for name, link in self._links.items()]
        if self._tasks:
            waits = [asyncio.create_task(link.settled.wait()) for link in self._links.values()]
            await asyncio.wait(waits, timeout=self._patience)
            for wait in waits:
                wait.cancel()

    async def aclose(self) -> None:
        """End all of them, and their processes."""
        await self.logins.aclose()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSING)
        self._tasks = []

    def status(self) -> list[ServerStatus]:
        """How they are."""
        if not self._links:
            return [ServerStatus(spec.name, "connecting", "it is not open yet", time.time()) for spec in self.specs]
        return [link.status for link in self._links.values()]

    def facts(self, name: str) -> list[ToolFacts]:
        """What a server says of its tools now: for whoever decides whether to trust it."""
        return [ToolFacts(one.name, one.description, one.schema, one.annotations) for one in self._link(name).listed]

    def changes(self, name: str) -> list[str]:
        """What of its tools is not as it was trusted, in lines for a person, where somebody has kept that."""
        link = self._link(name)
        told = getattr(self._trust, "changes", None)
        return told(link.spec, self.facts(name)) if told is not None and link.status.changed else []

    async def trust(self, name: str) -> None:
        """Trust a server as it is now: somebody has looked at it."""
        link, facts = self._link(name), self.facts(name)
        hashes = {fact.name: fact.hash for fact in facts}
        await asyncio.to_thread(self._trust.trust, link.spec, hashes, facts)
        link.again()

    def again(self, name: str) -> None:
        """Try a server now: somebody has mended it, or logged in."""
        self._link(name).again()

    def _link(self, name: str) -> Link:
        if name not in self._links:
            raise ConfigError(f"there is no server {name!r} open; there are: {', '.join(self._links) or 'none'}")
        return self._links[name]
