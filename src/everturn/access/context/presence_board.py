"""Presence board: who looks at the conversations of a tenant, on all nodes, by messages on the bus.

A node publishes the looks that its own callers report, at most once a second for each tenant, and reads those of the other
nodes only while it has callers who report some. Nothing is written to the store. A look ends when its tab says so, and
otherwise by itself a few seconds after its last report, also when a node dies or the bus is away.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from everturn.core.deltas import Frame, LogAdvanced, Viewing
from everturn.core.ports import Bus, Clock
from everturn.core.presence import PresenceTable, is_plausible, presence_channel

log = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 1.0  # within which the looks of a tenant are published together
IDLE_SECONDS: Final = 60.0  # without a report after which the looks of other nodes are not read any more
CHANNEL_FRAMES: Final = 256  # after which the channel of a tenant is emptied
RETRY_SECONDS: Final = 0.5  # before a subscription that ended is tried again


class PresenceBoard:
    """Who looks at what. There is one per process; it starts with the first report."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus, self._clock = bus, clock
        self.table = PresenceTable()
        self._unsent: dict[str, dict[tuple[str, str, str, str], Viewing]] = {}  # tenant -> looks to publish
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._published: dict[str, int] = {}  # tenant -> frames since the channel was emptied
        self._reported: dict[str, float] = {}  # tenant -> when a caller here last reported something

    def report(self, tenant: str, viewings: Iterable[Viewing]) -> None:
        """Take the looks of a tab on this node, and publish them."""
        now = self._clock.now()
        self._follow(tenant, now)
        unsent = self._unsent.get(tenant)
        if unsent is None:
            unsent = self._unsent[tenant] = {}
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._flush, tenant)
        for viewing in viewings:
            self.table.apply(viewing, now)
            unsent[viewing.session, viewing.user, viewing.tab, viewing.gate] = viewing

    def viewers(self, tenant: str, session: str) -> list[Viewing]:
        """Who looks at a session and its gates now."""
        return self.table.at(tenant, session, self._clock.now())

    def _flush(self, tenant: str) -> None:
        if viewings := self._unsent.pop(tenant, {}):
            frames: list[Frame] = list(viewings.values())
            self._published[tenant] = self._published.get(tenant, 0) + len(frames)
            if self._published[tenant] > CHANNEL_FRAMES:
                # A channel keeps its frames until the log moves, and this one has no log. A reader may miss what it drops;
                # it learns that with the next report.
                self._published[tenant] = 0
                frames.insert(0, LogAdvanced(int(self._clock.now() * 1000)))
            self._bus.publish(presence_channel(tenant), frames)

    def _follow(self, tenant: str, now: float) -> None:
        self._reported[tenant] = now
        for other, at in list(self._reported.items()):
            if now - at > IDLE_SECONDS:
                del self._reported[other]
                self._published.pop(other, None)
                self._readers.pop(other).cancel()
                self.table.expire(now)
        if tenant not in self._readers:
            self._readers[tenant] = asyncio.get_running_loop().create_task(self._read(tenant))

    async def _read(self, tenant: str) -> None:
        while True:
            tail = self._bus.tail(presence_channel(tenant))
            try:
                async for frames in tail:
                    now = self._clock.now()
                    for frame in frames:
                        if isinstance(frame, Viewing) and frame.tenant == tenant and is_plausible(frame):
                            self.table.apply(frame, now)
            except Exception as error:
                log.warning("who looks at conversations cannot be read from the bus; trying again: %r", error)
            finally:
                await tail.aclose()
            await asyncio.sleep(RETRY_SECONDS)

    async def aclose(self) -> None:
        """Stop reading."""
        readers = list(self._readers.values())
        self._readers.clear()
        self._reported.clear()
        for reader in readers:
            reader.cancel()
        for reader in readers:
            with suppress(asyncio.CancelledError):
                await reader
