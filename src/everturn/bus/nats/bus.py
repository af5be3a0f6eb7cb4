"""NATS bus: joins the memory buses of all nodes.

Readers on this node get published frames at once, those on other nodes a moment later and merged. Nothing waits for the
network, and nothing fails because it is down.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence

from nats.aio.client import Client

from everturn.bus.memory import MemoryBus
from everturn.bus.nats.announcements import AnnouncementSubscriptions
from everturn.bus.nats.backlog import BacklogStream
from everturn.bus.nats.connection import BusTasks, NatsConnection, subscribe
from everturn.bus.nats.signals import SignalSubscriptions
from everturn.bus.nats.subscriptions import FrameSubscriptions
from everturn.bus.remote.codec import resend_subject, subject_token
from everturn.bus.remote.publisher import FramePublisher
from everturn.core.deltas import Frame
from everturn.core.ports import LiveTail, SignalListener
from everturn.errors import ConfigError

log = logging.getLogger(__name__)

IDLE_CHECK_INTERVAL = 2.0  # seconds between two sweeps for idle turns
CONNECT_WAIT = 5.0  # seconds for which `connect` waits; after that, a node starts without NATS
CLOSE_TIMEOUT = 1.0  # seconds in which a bus that closes may send what is queued


class NatsBus:
    """A bus for many processes. `await NatsBus.connect(url)` creates one, `aclose` ends it."""

    def __init__(
        self, servers: str | list[str], prefix: str, stream: BacklogStream, tls: ssl.SSLContext | None = None
    ) -> None:
        self._prefix = prefix
        self._local, self._tasks = MemoryBus(), BusTasks()
        self._connection = NatsConnection(servers, self._up, tls)
        self._subscriptions = FrameSubscriptions(
            self._connection, self._local, self._tasks, stream, lambda turn: turn in self._publisher.outlets
        )
        self._publisher = FramePublisher(
            self._connection, self._local, prefix, stream.max_age, self._subscriptions.inlets
        )
        self._announcements = AnnouncementSubscriptions(self._connection, self._local, self._tasks, prefix)
        self._signals = SignalSubscriptions(self._connection, self._local, self._tasks, prefix)

    @property
    def is_up(self) -> bool:
        """Whether there is a connection to a server now."""
        return self._connection.nc is not None

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
        """Join the nodes that use the same servers and prefix.

        A server that does not answer is retried in the background; until then the bus works for this process alone. `max_age`
        (seconds) and `max_bytes` bound what the server keeps for late readers. With `tls` (see `tls_context`) nothing is sent to a
        server that does not use TLS.

        Raises:
            ConfigError: the prefix is not one word of letters, digits, `-` and `_`.
        """
        if subject_token(prefix) != prefix:
            raise ConfigError(f"{prefix!r} cannot begin a subject; use letters, digits, - and _")
        bus = cls(servers, prefix, BacklogStream(prefix, f"{prefix}.d.*", max_age, max_bytes), tls)
        for job in (bus._connection.run(), bus._publisher.run(), bus._drop_idle_turns()):
            bus._tasks.start(job)
        try:
            async with asyncio.timeout(CONNECT_WAIT):
                await bus._connection.was_up.wait()
        except TimeoutError:
            log.warning("NATS is unavailable; this node starts without it, and connects when it is back")
        return bus

    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        """Publish frames of a turn to its readers on all nodes."""
        self._publisher.publish(turn, frames)

    def tail(self, turn: str) -> LiveTail:
        """Follow a turn: the frames of the current step so far, then new ones, until the turn is closed."""
        self._publisher.publish_locally(turn)
        return self._subscriptions.tail(turn)

    def close(self, turn: str) -> None:
        """Close a turn that is over, on all nodes."""
        self._publisher.publish_locally(turn)
        self._subscriptions.end(turn)
        self._local.close(turn)
        self._publisher.close(turn)

    def signal(self, session: str) -> None:
        """Signal the driver of a session, on any node, that its inbox has something."""
        self._local.signal(session)
        self._publisher.signal(session)

    def listen(self, session: str) -> SignalListener:
        """Listen to the signals of a session."""
        return self._signals.listen(session)

    def announce(self, topic: str, message: bytes) -> None:
        """Send a message to all nodes that hear a topic."""
        self._local.announce(topic, message)
        self._publisher.announce(topic, message)

    def hear(self, topic: str, on_message: Callable[[bytes], None]) -> Callable[[], None]:
        """Call a function with every announcement of a topic, until the returned function is called."""
        return self._announcements.hear(topic, on_message)

    async def flush(self) -> None:
        """Wait until the server has everything that was published, and all subscriptions of this node."""
        while self._connection.nc is not None:
            if not self._publisher.flush_now() and all(
                part.is_idle for part in (self._subscriptions, self._signals, self._announcements)
            ):
                await self._connection.nc.flush(timeout=2)
                return
            await asyncio.sleep(0.001)

    async def aclose(self) -> None:
        """Close the bus. Readers on this node end; what they have not seen is in the log."""
        if self._publisher.is_closed:
            return
        self._publisher.is_closed = True
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self.flush()
        except Exception as error:
            log.debug("NATS: the last messages were not sent: %r", error)
        await self._tasks.aclose()
        for turn in list(self._local.channels):
            self._local.close(turn)

    async def _up(self, nc: Client) -> None:
        await self._signals.resubscribe(nc)
        await self._announcements.resubscribe(nc)
        await subscribe(
            nc, resend_subject(self._prefix), lambda data: self._publisher.resend(data.decode("utf-8", "replace"))
        )
        await self._subscriptions.resubscribe(nc)
        self._publisher.resend_all()

    async def _drop_idle_turns(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(IDLE_CHECK_INTERVAL)
            self._publisher.drop_idle(loop.time())
            if self._connection.nc is not None and not self._subscriptions.has_backlog:
                await self._subscriptions.ensure_stream(self._connection.nc)
