"""Signals of other nodes → the ears of this one's drivers: one subscription for a session while it is driven here."""

from __future__ import annotations

from collections import deque

from nats.aio.client import Client
from nats.aio.subscription import Subscription

from everturn.bus.memory import MemoryBus
from everturn.bus.nats.link import Link, Tasks, subscribe
from everturn.bus.nats.packing import token
from everturn.core.ports import Listening

REMEMBERED = 32  # signals of a session that are known when they come a second time


class Hearing:
    """A session that is listened to on this node."""

    __slots__ = ("ears", "known", "nc", "session", "subject", "subscription")

    def __init__(self, session: str, subject: str) -> None:
        self.session, self.subject = session, subject
        self.ears = 0
        self.nc: Client | None = None  # the connection it is heard on
        self.subscription: Subscription | None = None
        self.known: deque[bytes] = deque(maxlen=REMEMBERED)


class Hearings:
    """The way into a node, for signals."""

    def __init__(self, link: Link, local: MemoryBus, tasks: Tasks, prefix: str) -> None:
        self._link, self._local, self._tasks, self._prefix = link, local, tasks, prefix
        self.sessions: dict[str, Hearing] = {}

    def listen(self, session: str) -> Listening:
        """A driver comes; with the first one the session is heard on this node."""
        hearing = self.sessions.get(session)
        if hearing is None:
            hearing = self.sessions[session] = Hearing(session, f"{self._prefix}.s.{token(session)}")
            if self._link.nc is not None:
                self._tasks.start(self._hear(hearing, self._link.nc))
        hearing.ears += 1
        return _Ear(self, hearing, self._local.listen(session))

    def left(self, hearing: Hearing) -> None:
        """A driver goes; with the last one goes the subscription."""
        hearing.ears -= 1
        if hearing.ears:
            return
        del self.sessions[hearing.session]
        if hearing.subscription is not None and hearing.nc is self._link.nc:
            self._tasks.start(hearing.subscription.unsubscribe())
        hearing.subscription = hearing.nc = None

    @property
    def is_settled(self) -> bool:
        """Whether everything that is listened to is heard."""
        return all(hearing.subscription is not None for hearing in self.sessions.values())

    async def up(self, nc: Client) -> None:
        """Hear everything on a new connection. Whoever drives looks at its inbox: a signal may have been missed."""
        for hearing in list(self.sessions.values()):
            await self._hear(hearing, nc)
            self._local.signal(hearing.session)

    async def _hear(self, hearing: Hearing, nc: Client) -> None:
        if hearing.nc is nc or self.sessions.get(hearing.session) is not hearing:
            return
        hearing.nc = nc

        def heard(data: bytes) -> None:
            if data not in hearing.known:
                hearing.known.append(data)
                self._local.signal(hearing.session)

        hearing.subscription = await subscribe(nc, hearing.subject, heard)
        if hearing.nc is not nc:  # everybody left meanwhile
            await hearing.subscription.unsubscribe()


class _Ear:
    """A driver of this node."""

    def __init__(self, hearings: Hearings, hearing: Hearing, ear: Listening) -> None:
        self._hearings, self._hearing, self._ear = hearings, hearing, ear
        self._is_closed = False

    async def wait(self) -> None:
        """Return once the session was signalled since the last time."""
        await self._ear.wait()

    def close(self) -> None:
        """Stop listening."""
        self._ear.close()
        if not self._is_closed:
            self._is_closed = True
            self._hearings.left(self._hearing)
