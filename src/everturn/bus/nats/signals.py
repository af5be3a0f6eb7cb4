"""Signal subscriptions: pass signals of other nodes on to drivers on this one; one subscription per driven session."""

from __future__ import annotations

from collections import deque

from nats.aio.client import Client
from nats.aio.subscription import Subscription

from everturn.bus.memory import MemoryBus
from everturn.bus.nats.connection import BusTasks, NatsConnection, subscribe
from everturn.bus.remote.codec import subject_token
from everturn.core.ports import SignalListener

KNOWN_SIGNALS = 32  # signals of a session that are recognised when they come a second time


class SignalSubscription:
    """A session with listeners on this node."""

    __slots__ = ("known", "listeners", "nc", "session", "subject", "subscription")

    def __init__(self, session: str, subject: str) -> None:
        self.session, self.subject = session, subject
        self.listeners = 0
        self.nc: Client | None = None  # the connection of the subscription
        self.subscription: Subscription | None = None
        self.known: deque[bytes] = deque(maxlen=KNOWN_SIGNALS)


class SignalSubscriptions:
    """The signal subscriptions of a node."""

    def __init__(self, connection: NatsConnection, local: MemoryBus, tasks: BusTasks, prefix: str) -> None:
        self._connection, self._local, self._tasks, self._prefix = connection, local, tasks, prefix
        self.sessions: dict[str, SignalSubscription] = {}

    def listen(self, session: str) -> SignalListener:
        """Add a listener; the first one of a session subscribes."""
        entry = self.sessions.get(session)
        if entry is None:
            entry = self.sessions[session] = SignalSubscription(session, f"{self._prefix}.s.{subject_token(session)}")
            if self._connection.nc is not None:
                self._tasks.start(self._subscribe(entry, self._connection.nc))
        entry.listeners += 1
        return _NatsListener(self, entry, self._local.listen(session))

    def remove_listener(self, entry: SignalSubscription) -> None:
        """Remove a listener; the last one of a session unsubscribes."""
        entry.listeners -= 1
        if entry.listeners:
            return
        del self.sessions[entry.session]
        if entry.subscription is not None and entry.nc is self._connection.nc:
            self._tasks.start(entry.subscription.unsubscribe())
        entry.subscription = entry.nc = None

    @property
    def is_idle(self) -> bool:
        """Whether all sessions with listeners are subscribed."""
        return all(entry.subscription is not None for entry in self.sessions.values())

    async def resubscribe(self, nc: Client) -> None:
        """Subscribe again on a new connection, and signal all drivers: a signal may have been missed."""
        for entry in list(self.sessions.values()):
            await self._subscribe(entry, nc)
            self._local.signal(entry.session)

    async def _subscribe(self, entry: SignalSubscription, nc: Client) -> None:
        if entry.nc is nc or self.sessions.get(entry.session) is not entry:
            return
        entry.nc = nc

        def receive(data: bytes) -> None:
            if data not in entry.known:
                entry.known.append(data)
                self._local.signal(entry.session)

        entry.subscription = await subscribe(nc, entry.subject, receive)
        if entry.nc is not nc:  # all listeners left meanwhile
            await entry.subscription.unsubscribe()


class _NatsListener:
    """A listener on this node."""

    def __init__(self, subscriptions: SignalSubscriptions, entry: SignalSubscription, listener: SignalListener) -> None:
        self._subscriptions, self._entry, self._listener = subscriptions, entry, listener
        self._is_closed = False

    async def wait(self) -> None:
        """Wait until the session was signalled since the last call."""
        await self._listener.wait()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
        if not self._is_closed:
            self._is_closed = True
            self._subscriptions.remove_listener(self._entry)
