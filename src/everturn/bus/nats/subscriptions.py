"""Frame subscriptions: pass frames of other nodes on to readers on this one; one subscription per followed turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from nats.aio.client import Client

from everturn.bus.memory import MemoryBus
from everturn.bus.nats.backlog import BacklogStream, create_stream, fetch_backlog, is_whole
from everturn.bus.nats.connection import BusTasks, NatsConnection, publish, subscribe
from everturn.bus.remote.codec import CLOSE_MESSAGE, resend_subject, subject_token
from everturn.bus.remote.inbound import InboundFrames, InboundTurn
from everturn.bus.remote.tail import RemoteTail
from everturn.core.ports import LiveTail

log = logging.getLogger(__name__)

AT_ONCE = 32  # backlogs fetched at a time
WAITING_MESSAGES = 4096  # messages of a turn that wait for its backlog


class FrameSubscriptions:
    """The frame subscriptions of a node. `is_driven` tells whether a turn is published here, too."""

    def __init__(
        self,
        connection: NatsConnection,
        local: MemoryBus,
        tasks: BusTasks,
        stream: BacklogStream,
        is_driven: Callable[[str], bool],
    ) -> None:
        self._connection, self._local, self._tasks, self._stream = connection, local, tasks, stream
        self._is_driven = is_driven
        self._inbound = InboundFrames(local, self.end)
        self.inlets = self._inbound.inlets
        self._fetching = asyncio.Semaphore(AT_ONCE)
        self._has_stream = False

    def tail(self, turn: str) -> LiveTail:
        """Add a reader; the first one of a turn subscribes."""
        inbound = self.inlets.get(turn)
        if inbound is None:
            subject = self._stream.subjects.replace("*", subject_token(turn))
            inbound = self.inlets[turn] = InboundTurn(turn, subject)
            if self._connection.nc is not None:
                self._tasks.start(self._subscribe(inbound, self._connection.nc, False))
        inbound.readers += 1
        return RemoteTail(inbound, self._local.tail(turn), self.remove_reader)

    def remove_reader(self, inbound: InboundTurn) -> None:
        """Remove a reader; the last one of a turn unsubscribes."""
        inbound.readers -= 1
        if not inbound.readers and self.inlets.get(inbound.turn) is inbound:
            self.end(inbound.turn)
            if not self._is_driven(inbound.turn):
                self._local.channels.pop(inbound.turn, None)  # no more frames will come

    def end(self, turn: str) -> None:
        """Unsubscribe from a turn."""
        inbound = self.inlets.pop(turn, None)
        if inbound is not None:
            self._unsubscribe(inbound)

    def _unsubscribe(self, inbound: InboundTurn) -> None:
        if inbound.subscription is not None and inbound.nc is self._connection.nc:
            self._tasks.start(inbound.subscription.unsubscribe())
        inbound.subscription = inbound.nc = None

    @property
    def has_backlog(self) -> bool:
        """Whether late readers get the step so far."""
        return self._has_stream

    @property
    def is_idle(self) -> bool:
        """Whether all followed turns are subscribed, and their backlogs read."""
        return all(inbound.nc is not None and inbound.waiting is None for inbound in self.inlets.values())

    async def resubscribe(self, nc: Client) -> None:
        """Subscribe again on a new connection, and have all readers check the log for what was missed."""
        self._has_stream = True  # until it fails
        await self.ensure_stream(nc)
        for inbound in list(self.inlets.values()):
            self._tasks.start(self._subscribe(inbound, nc, True))

    async def ensure_stream(self, nc: Client) -> None:
        """Create the stream if it does not exist; log once if that fails."""
        problem = await create_stream(nc, self._stream)
        if problem and self._has_stream:
            log.warning("NATS: readers that connect during a step do not see its beginning: %s", problem)
        self._has_stream = not problem

    async def _subscribe(self, inbound: InboundTurn, nc: Client, look: bool) -> None:
        """Subscribe to a turn. New messages wait until the backlog was published."""
        if inbound.nc is nc or self.inlets.get(inbound.turn) is not inbound:
            return
        inbound.nc, inbound.waiting = nc, []

        def receive(data: bytes) -> None:
            if inbound.waiting is None:
                self._inbound.take(inbound, data)
            elif len(inbound.waiting) < WAITING_MESSAGES and inbound.nc is nc:
                inbound.waiting.append(data)

        inbound.subscription = await subscribe(nc, inbound.subject, receive)
        if inbound.nc is not nc:  # all readers left meanwhile
            await inbound.subscription.unsubscribe()
            return
        async with self._fetching:
            backlog = await fetch_backlog(nc, self._stream.name, inbound.subject) if self._has_stream else None
            if backlog is None and self._has_stream:
                # A server that lost its memory without our noticing has lost the stream, too.
                await self.ensure_stream(nc)
        if inbound.nc is nc:
            self._catch_up(inbound, backlog, look)
            if not is_whole(backlog) and not self._is_driven(inbound.turn):
                # The stream has dropped the beginning, or does not exist: the turn's driver still has the step so far.
                await publish(nc, [(resend_subject(self._stream.name), inbound.turn.encode())])

    def _catch_up(self, inbound: InboundTurn, backlog: list[bytes] | None, look: bool) -> None:
        channel = self._local.channels.get(inbound.turn)
        if channel is not None:
            inbound.duplicates.fresh(channel.frames)  # if it is driven here, too, readers have these already
        look = look or backlog is None or len(inbound.waiting or ()) >= WAITING_MESSAGES
        if CLOSE_MESSAGE in (backlog or ()):
            self._inbound.tell_to_read_log(
                inbound
            )  # frames before it were not received, and readers whose turn is closed read no more
        held, inbound.waiting = inbound.waiting, None
        for data in (*(backlog or ()), *(held or ())):
            self._inbound.take(inbound, data)
        if look:
            self._inbound.tell_to_read_log(inbound)
