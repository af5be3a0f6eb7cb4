"""Announcement subscriptions: pass announcements of other nodes on to those who hear their topic on this one."""

from __future__ import annotations

from collections.abc import Callable

from nats.aio.client import Client
from nats.aio.subscription import Subscription

from everturn.bus.memory import MemoryBus
from everturn.bus.nats.connection import BusTasks, NatsConnection, subscribe
from everturn.bus.remote.codec import announcement_subject


class _Topic:
    __slots__ = ("heard_by", "name", "nc", "subscription")

    def __init__(self, name: str) -> None:
        self.name, self.heard_by = name, 0
        self.nc: Client | None = None  # the connection of the subscription
        self.subscription: Subscription | None = None


class AnnouncementSubscriptions:
    """The topics that are heard on a node; one subscription for each."""

    def __init__(self, connection: NatsConnection, local: MemoryBus, tasks: BusTasks, prefix: str) -> None:
        self._connection, self._local, self._tasks, self._prefix = connection, local, tasks, prefix
        self._topics: dict[str, _Topic] = {}

    def hear(self, name: str, on_message: Callable[[bytes], None]) -> Callable[[], None]:
        """Call a function with every announcement of a topic, until the returned function is called."""
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = _Topic(name)
            if self._connection.nc is not None:
                self._tasks.start(self._subscribe(topic, self._connection.nc))
        topic.heard_by += 1
        stop_locally, is_over = self._local.hear(name, on_message), False

        def stop() -> None:
            nonlocal is_over
            stop_locally()
            if not is_over:
                is_over = True
                self._remove(topic)

        return stop

    def _remove(self, topic: _Topic) -> None:
        topic.heard_by -= 1
        if topic.heard_by:
            return
        del self._topics[topic.name]
        if topic.subscription is not None and topic.nc is self._connection.nc:
            self._tasks.start(topic.subscription.unsubscribe())
        topic.subscription = topic.nc = None

    @property
    def is_idle(self) -> bool:
        """Whether all topics are subscribed."""
        return all(topic.subscription is not None for topic in self._topics.values())

    async def resubscribe(self, nc: Client) -> None:
        """Subscribe again on a new connection."""
        for topic in list(self._topics.values()):
            await self._subscribe(topic, nc)

    async def _subscribe(self, topic: _Topic, nc: Client) -> None:
        if topic.nc is nc or self._topics.get(topic.name) is not topic:
            return
        topic.nc = nc
        subject = announcement_subject(self._prefix, topic.name)
        topic.subscription = await subscribe(nc, subject, lambda data: self._local.announce(topic.name, data))
        if topic.nc is not nc:  # nobody hears it any more
            await topic.subscription.unsubscribe()
