"""PostgreSQL bus: joins the memory buses of all processes on one database, by LISTEN and NOTIFY.

Readers in this process get published frames at once, those in others a moment later and merged. Nothing waits for the
database, and nothing fails because it is down. Good for some hundred streams at once and a few processes: every process
that listens looks at every notification of the database. Beyond that, use NATS.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from everturn.bus.postgres.node import PostgresNode
from everturn.bus.remote.tail import RemoteTail
from everturn.core.deltas import Frame
from everturn.core.ports import LiveTail, SignalListener
from everturn.postgres.link import PostgresLink

log = logging.getLogger(__name__)

CLOSE_TIMEOUT = 1.0  # seconds in which a bus that closes may send what is queued


class PostgresBus:
    """A bus for several processes. It may be made without an event loop, and connects when it is first used in one."""

    service = "listen"  # the name of its gauge: whether this process hears notifications

    def __init__(self, link: PostgresLink | str) -> None:
        self._link = PostgresLink(link) if isinstance(link, str) else link
        self._started: PostgresNode | None = None

    @property
    def _node(self) -> PostgresNode:
        if self._started is None:
            self._started = PostgresNode(self._link)
        return self._started

    @property
    def is_up(self) -> bool:
        """Whether this process hears the others now."""
        return self._link.is_up

    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        """Publish frames of a turn to its readers in all processes."""
        self._node.publisher.publish(turn, frames)

    def tail(self, turn: str) -> LiveTail:
        """Follow a turn: the frames of the current step so far, then new ones, until the turn is closed."""
        self._node.publisher.publish_locally(turn)
        return RemoteTail(self._node.follow(turn), self._node.local.tail(turn), self._node.remove_reader)

    def close(self, turn: str) -> None:
        """Close a turn that is over, in all processes."""
        node = self._node
        node.publisher.publish_locally(turn)
        node.end(turn)
        node.local.close(turn)
        node.publisher.close(turn)

    def signal(self, session: str) -> None:
        """Signal the driver of a session, in any process, that its inbox has something."""
        self._node.local.signal(session)
        self._node.publisher.signal(session)

    def listen(self, session: str) -> SignalListener:
        """Listen to the signals of a session."""
        return self._node.local.listen(session)

    def announce(self, topic: str, message: bytes) -> None:
        """Send a message to all processes that hear a topic."""
        self._node.local.announce(topic, message)
        self._node.publisher.announce(topic, message)

    def hear(self, topic: str, on_message: Callable[[bytes], None]) -> Callable[[], None]:
        """Call a function with every announcement of a topic, until the returned function is called."""
        return self._node.hear(topic, on_message)

    async def flush(self) -> None:
        """Wait until the server has everything that was published, and knows what this process hears."""
        await self._node.flush()

    async def aclose(self) -> None:
        """Close the bus. Readers in this process end; what they have not seen is in the log."""
        node = self._started
        if node is None or node.publisher.is_closed:
            return
        node.publisher.is_closed = True
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                while self._link.is_up and node.publisher.flush_now():  # noqa: ASYNC110
                    await asyncio.sleep(0.002)
        except TimeoutError:
            log.debug("PostgreSQL: the last frames were not sent")
        await node.aclose()
