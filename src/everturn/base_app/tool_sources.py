"""Tool sources of an app: opens them, and offers the tools that they publish."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from everturn.agents.bound_agent import BoundAgent
from everturn.core.ports import Tool, ToolSource
from everturn.errors import ConfigError
from everturn.tools.registry import ToolRegistry

log = logging.getLogger(__name__)

TOOL_WAIT_TIMEOUT = 30.0  # seconds a resumed turn waits after a start for its tool


class AppToolSources:
    """The tool sources of an app and its agents. Those of an agent publish to its registry, the others to the app's."""

    def __init__(self, sources: Iterable[ToolSource], registry: ToolRegistry) -> None:
        self.sources = list(sources)
        self._registry = registry
        self._published = asyncio.Event()  # a source has published tools; another event follows

    def add(self, sources: Iterable[ToolSource]) -> None:
        """Add sources, without opening them."""
        self.sources += sources

    async def open(self, agents: Iterable[BoundAgent]) -> None:
        """Open all sources. A tool whose name is taken is not offered, and a warning is logged."""
        own = {id(source): agent.registry for agent in agents for source in agent.sources}
        await asyncio.gather(
            *(source.open(self._publish_to(own.get(id(source), self._registry))) for source in self.sources)
        )

    async def open_agent(self, agent: BoundAgent) -> None:
        """Open the sources of one agent."""
        await asyncio.gather(*(source.open(self._publish_to(agent.registry)) for source in agent.sources))

    async def close_agent(self, agent: BoundAgent) -> None:
        """Close the sources of an agent, and forget them."""
        self.sources = [source for source in self.sources if source not in agent.sources]
        for source in agent.sources:
            await source.aclose()

    def _publish_to(self, registry: ToolRegistry) -> Callable[[str, Sequence[Tool]], None]:
        def publish(origin: str, tools: Sequence[Tool]) -> None:
            put(origin, tools)
            self._published.set()
            self._published = asyncio.Event()

        def put(origin: str, tools: Sequence[Tool]) -> None:
            accepted: list[Tool] = []
            with suppress(ConfigError):
                registry.replace(origin, tools)
                return
            for tool in tools:  # a tool with a conflicting name must not exclude the others
                try:
                    registry.replace(origin, [*accepted, tool])
                    accepted.append(tool)
                except ConfigError as error:
                    log.warning("a tool of %s is not offered: %s", origin, error)
            registry.replace(origin, accepted)

        return publish

    @property
    def awaits_tools(self) -> bool:
        """Whether there are tools that are only known when their source has published them."""
        return any(source.origins for source in self.sources)

    async def wait_for_tool(self, name: str, registry: ToolRegistry) -> Tool | None:
        """A tool of a resumed turn, which its source may publish only some time after a start."""
        opening = asyncio.gather(*(source.wait_until_open() for source in self.sources))
        try:
            async with asyncio.timeout(TOOL_WAIT_TIMEOUT):
                while name not in registry.tools and not opening.done():
                    published = asyncio.ensure_future(self._published.wait())
                    await asyncio.wait((opening, published), return_when=asyncio.FIRST_COMPLETED)
                    published.cancel()
        except TimeoutError:
            pass
        finally:
            opening.cancel()
        return registry.tools.get(name)

    async def aclose(self) -> None:
        """Close all sources; one that fails does not keep the others open."""
        await asyncio.gather(*(source.aclose() for source in self.sources), return_exceptions=True)
