"""Presence board: who looks at the conversations of a tenant, on all nodes, by announcements on the bus.

`core.presence` decides what is announced. A node collects that for up to a second, and hears the other nodes only while it
has callers who report something. Nothing is written to the store, and without a bus each node tells of its own callers.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.core.ports import ANNOUNCEMENT_LIMIT, Bus, Clock
from everturn.core.presence import HEARD_SECONDS, Announced, PresenceTable, Viewing, is_plausible, presence_topic

log = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 1.0  # within which the looks of a tenant are announced together
IDLE_SECONDS: Final = 60.0  # without a report after which the other nodes are not heard any more


class _Message(Struct, frozen=True):
    node: str  # that sends it: it hears itself as well
    looks: list[Announced]


_encode, _decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(_Message).decode


class PresenceBoard:
    """Who looks at what. There is one per process; it starts with the first report."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus, self._clock = bus, clock
        self._node = secrets.token_hex(6)
        self.table = PresenceTable()
        self._unsent: dict[str, dict[tuple[str, str, str, str], Announced]] = {}  # tenant -> looks to announce
        self._stops: dict[str, Callable[[], None]] = {}  # tenant -> stops hearing of it
        self._tidied = clock.now()
        self._reported: dict[str, float] = {}  # tenant -> when a caller here last reported something

    def report(self, tenant: str, viewings: Iterable[Viewing]) -> None:
        """Take the looks of a tab on this node, and announce what the others do not know."""
        now = self._clock.now()
        self._listen(tenant, now)
        self._announce(tenant, [said for viewing in viewings if (said := self.table.report(viewing, now)) is not None])

    def viewers(self, tenant: str, session: str) -> list[Viewing]:
        """Who looks at a session and its gates now."""
        return self.table.at(tenant, session, self._clock.now())

    def _announce(self, tenant: str, looks: Iterable[Announced]) -> None:
        for look in looks:
            if tenant not in self._unsent:
                self._unsent[tenant] = {}
                asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._flush, tenant)
            viewing, unsent = look.viewing, self._unsent[tenant]
            key = viewing.session, viewing.user, viewing.tab, viewing.gate
            asks = look.asks or (key in unsent and unsent[key].asks and not viewing.has_left)
            unsent[key] = replace(look, asks=asks)

    def _flush(self, tenant: str) -> None:
        looks: list[Announced] = []
        for look in self._unsent.pop(tenant, {}).values():
            if looks and len(_encode(_Message(self._node, [*looks, look]))) > ANNOUNCEMENT_LIMIT:
                self._send(tenant, looks)
                looks = []
            looks.append(look)
        if looks:
            self._send(tenant, looks)

    def _send(self, tenant: str, looks: list[Announced]) -> None:
        message = _encode(_Message(self._node, looks))
        if len(message) <= ANNOUNCEMENT_LIMIT:  # else it is one look with texts of an absurd length
            self._bus.announce(presence_topic(tenant), message)

    def _hear(self, tenant: str, data: bytes) -> None:
        try:
            message = _decode(data)
        except msgspec.MsgspecError as error:
            log.warning("an announcement of who looks at conversations cannot be read: %s", error)
            return
        if message.node == self._node:
            return
        now = self._clock.now()
        for look in message.looks:
            if is_plausible(look, tenant):
                self._announce(tenant, self.table.hear(look, now))

    def _listen(self, tenant: str, now: float) -> None:
        for other, at in list(self._reported.items()):
            if now - at > IDLE_SECONDS:
                del self._reported[other]
                self._stops.pop(other)()
        if now - self._tidied >= HEARD_SECONDS:
            self._tidied = now
            self.table.expire(now)
        self._reported[tenant] = now
        if tenant not in self._stops:
            self._stops[tenant] = self._bus.hear(presence_topic(tenant), lambda data: self._hear(tenant, data))

    async def aclose(self) -> None:
        """Announce what waits, and stop hearing."""
        for tenant in list(self._unsent):
            self._flush(tenant)
        for stop in self._stops.values():
            stop()
        self._stops.clear()
        self._reported.clear()
