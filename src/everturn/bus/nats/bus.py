"""A bus between nodes: the memory bus of every node, joined by NATS.

What is published here is shown to the readers of this node at once, and to the others a moment later, merged. Nothing
waits for the network, and nothing fails because it is down.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence

from nats.aio.client import Client

from everturn.bus.memory import MemoryBus
from everturn.bus.nats.backlog import Stream
from everturn.bus.nats.following import Following
from everturn.bus.nats.link import Link, Tasks, subscribe
from everturn.bus.nats.listening import Hearings
from everturn.bus.nats.packing import resend_subject, token
from everturn.bus.nats.sending import Sending
from everturn.core.deltas import Frame
from everturn.core.ports import Listening, Tail
from everturn.errors import ConfigError

log = logging.getLogger(__name__)

SWEEP = 2.0  # seconds between two looks for what has fallen silent
PATIENCE = 5.0  # seconds for which `connect` waits; after that, a node starts without
LAST_WORDS = 1.0  # seconds in which a bus that closes may send what waits


class NatsBus:
    """A bus for many processes. `await NatsBus.connect(url)` makes one, `aclose` ends it."""

    def __init__(
        self, servers: str | list[str], prefix: str, stream: Stream, tls: ssl.SSLContext | None = None
    ) -> None:
        self._prefix = prefix
        self._local, self._tasks = MemoryBus(), Tasks()
        self._link = Link(servers, self._up, tls)
        self._following = Following(
            self._link, self._local, self._tasks, stream, lambda turn: turn in self._sending.outlets
        )
        self._sending = Sending(self._link, self._local, prefix, stream.max_age, self._following.inlets)
        self._hearings = Hearings(self._link, self._local, self._tasks, prefix)

    @property
    def is_up(self) -> bool:
        """Whether there is a connection to a server now."""
        return self._link.nc is not None

    @classmethod
    async def connect(
        cls,
        servers: str | list[str],
        *,
        prefix: str = "everturn",
        max_age: float = 900.0,
        max_bytes: int = 64 * 2**20,
        tls: ssl.SSLContext | None = None,
    ) -> NatsBus:
        """Join the others who use the same servers and prefix.

        A server that is not there is waited for in the background; until then the bus is one for this process.
        `max_age` (seconds) and `max_bytes` bound what the server keeps for readers that come late. With `tls` (see
        `encrypted`) nothing is said to a server that does not speak TLS.

        Raises:
            ConfigError: the prefix is not one word of letters, digits, `-` and `_`.
        """
        if token(prefix) != prefix:
            raise ConfigError(f"{prefix!r} cannot begin a subject; use letters, digits, - and _")
        bus = cls(servers, prefix, Stream(prefix, f"{prefix}.d.*", max_age, max_bytes), tls)
        for work in (bus._link.run(), bus._sending.run(), bus._sweep()):
            bus._tasks.start(work)
        try:
            async with asyncio.timeout(PATIENCE):
                await bus._link.was_up.wait()
        except TimeoutError:
            log.warning("NATS is not there; this node starts without it, and joins when it is")
        return bus

    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        """Show frames of a turn to whoever follows it, on any node."""
        self._sending.publish(turn, frames)

    def tail(self, turn: str) -> Tail:
        """Follow a turn: what of the present step is still known, then what comes, until it is closed."""
        self._sending.show(turn)
        return self._following.tail(turn)

    def close(self, turn: str) -> None:
        """The turn is over, on every node."""
        self._sending.show(turn)
        self._following.end(turn)
        self._local.close(turn)
        self._sending.close(turn)

    def signal(self, session: str) -> None:
        """Tell whoever drives a session, on any node, that its inbox has something."""
        self._local.signal(session)
        self._sending.signal(session)

    def listen(self, session: str) -> Listening:
        """Hear the signals of a session."""
        return self._hearings.listen(session)

    async def flush(self) -> None:
        """Wait until what was published is with the server, and whoever follows or listens here is heard there."""
        while self._link.nc is not None:
            if not self._sending.hurry() and self._following.is_settled and self._hearings.is_settled:
                await self._link.nc.flush(timeout=2)
                return
            await asyncio.sleep(0.001)

    async def aclose(self) -> None:
        """Leave. Readers of this node end; what they have not seen stands in the log."""
        if self._sending.is_closed:
            return
        self._sending.is_closed = True
        try:
            async with asyncio.timeout(LAST_WORDS):
                await self.flush()
        except Exception as error:
            log.debug("NATS: the last words were not sent: %r", error)
        await self._tasks.aclose()
        for turn in list(self._local.channels):
            self._local.close(turn)

    async def _up(self, nc: Client) -> None:
        await self._hearings.up(nc)
        await subscribe(
            nc, resend_subject(self._prefix), lambda data: self._sending.resend(data.decode("utf-8", "replace"))
        )
        await self._following.up(nc)
        self._sending.tell_again()

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP)
            self._sending.forget(loop.time())
            if self._link.nc is not None and not self._following.is_whole:
                await self._following.heal(self._link.nc)
