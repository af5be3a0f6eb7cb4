"""Frame subscriptions: pass frames of other nodes on to readers on this one; one subscription per followed turn."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from types import CoroutineType
from typing import Any

from nats.aio.client import Client
from nats.aio.subscription import Subscription

from everturn.bus.memory import MemoryBus
from everturn.bus.nats.backlog import LIMIT, BacklogStream, create_stream, fetch_backlog, is_whole
from everturn.bus.nats.codec import (
    CLOSE_MESSAGE,
    READ_LOG,
    DuplicateFilter,
    plausible_frames,
    resend_subject,
    subject_token,
    unpack,
)
from everturn.bus.nats.connection import BusTasks, NatsConnection, publish, subscribe
from everturn.core.deltas import CallProgress, Delta, Frame, LogAdvanced
from everturn.core.ports import LiveTail
from everturn.errors import UnreadableLog

log = logging.getLogger(__name__)

AT_ONCE = 32  # backlogs fetched at a time
WAITING_MESSAGES = 4096  # messages of a turn that wait for its backlog
FRAME = 256  # what a frame without a text counts, in characters


class InboundTurn:
    """A turn with readers on this node."""

    __slots__ = (
        "deferred",
        "duplicates",
        "has_complained",
        "is_ending",
        "nc",
        "readers",
        "size",
        "subject",
        "subscription",
        "turn",
        "waiting",
    )

    def __init__(self, turn: str, subject: str) -> None:
        self.turn, self.subject = turn, subject
        self.readers = 0
        self.nc: Client | None = None  # the connection of the subscription
        self.subscription: Subscription | None = None
        self.duplicates = DuplicateFilter()
        self.size = 0  # characters received since the log moved
        self.waiting: list[bytes] | None = None  # messages that arrive while the backlog is fetched
        self.deferred: list[Frame] = []  # frames to publish after readers have seen the ones before
        self.is_ending = self.has_complained = False


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
        self.inlets: dict[str, InboundTurn] = {}
        self._fetching = asyncio.Semaphore(AT_ONCE)
        self._has_stream = False
        self._loop = asyncio.get_running_loop()

    def tail(self, turn: str) -> LiveTail:
        """Add a reader; the first one of a turn subscribes."""
        inbound = self.inlets.get(turn)
        if inbound is None:
            subject = self._stream.subjects.replace("*", subject_token(turn))
            inbound = self.inlets[turn] = InboundTurn(turn, subject)
            if self._connection.nc is not None:
                self._tasks.start(self._subscribe(inbound, self._connection.nc, False))
        inbound.readers += 1
        return _NatsTail(self, inbound, self._local.tail(turn))

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
            log.warning("NATS: readers that come late are not shown the step so far: %s", problem)
        self._has_stream = not problem

    async def _subscribe(self, inbound: InboundTurn, nc: Client, look: bool) -> None:
        """Subscribe to a turn. New messages wait until the backlog was published."""
        if inbound.nc is nc or self.inlets.get(inbound.turn) is not inbound:
            return
        inbound.nc, inbound.waiting = nc, []

        def receive(data: bytes) -> None:
            if inbound.waiting is None:
                self._take(inbound, data)
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
            self._tell_to_read_log(
                inbound
            )  # frames before it were not received, and readers whose turn is closed read no more
        held, inbound.waiting = inbound.waiting, None
        for data in (*(backlog or ()), *(held or ())):
            self._take(inbound, data)
        if look:
            self._tell_to_read_log(inbound)

    def _take(self, inbound: InboundTurn, data: bytes) -> None:
        """Publish what is new of another node's message to the readers of a turn."""
        if data == CLOSE_MESSAGE:
            inbound.is_ending = True
        try:
            fresh = within_memory_limit(inbound, inbound.duplicates.fresh(plausible_frames(unpack(data), inbound.turn)))
        except UnreadableLog as error:
            if not inbound.has_complained:
                inbound.has_complained = True
                log.warning("NATS: something on %s is not ours: %s", inbound.subject, error)
            return
        if inbound.deferred:
            inbound.deferred += fresh
        else:
            self._publish(inbound, fresh)

    def _publish(self, inbound: InboundTurn, frames: list[Frame]) -> None:
        """Publish frames up to the next `LogAdvanced`, and the rest a moment later.

        A channel drops its frames when the log has moved, and readers that have kept up should see the earlier ones first.
        """
        if self.inlets.get(inbound.turn) is not inbound:
            return  # all readers have left
        for at in range(1, len(frames)):
            if type(frames[at]) is LogAdvanced:
                frames, inbound.deferred = frames[:at], frames[at:]
                break
        if frames and frames[0] == READ_LOG:
            self._tell_to_read_log(inbound)
            frames = frames[1:]
        if frames:
            self._local.publish(inbound.turn, frames)
        if inbound.deferred:
            self._loop.call_soon(self._publish_later, inbound)  # after the readers that were just woken
        elif inbound.is_ending:
            self.end(inbound.turn)
            self._local.close(inbound.turn)

    def _publish_later(self, inbound: InboundTurn) -> None:
        later, inbound.deferred = inbound.deferred, []
        self._publish(inbound, later)

    def _tell_to_read_log(self, inbound: InboundTurn) -> None:
        """Have the readers of a turn read the log. Unlike a `LogAdvanced`, this drops no frames."""
        channel = self._local.channels.get(inbound.turn)
        if channel is None or not channel.readers:
            return
        if any(isinstance(frame, Delta) for frame in channel.frames):
            channel.frames.append(READ_LOG)
            channel.wake()
        else:
            channel.add((READ_LOG,))


def within_memory_limit(inbound: InboundTurn, frames: list[Frame]) -> list[Frame]:
    """As much of a step as may be held in memory; the rest is read from the log when it ends."""
    within_limit: list[Frame] = []
    for frame in frames:
        if isinstance(frame, Delta | CallProgress):
            inbound.size += len(frame.text) + FRAME
            if inbound.size > LIMIT:
                continue
        elif frame != READ_LOG:  # for that one a channel drops nothing
            inbound.size = 0
        within_limit.append(frame)
    return within_limit


class _NatsTail:
    """A reader on this node."""

    def __init__(self, subscriptions: FrameSubscriptions, inbound: InboundTurn, tail: LiveTail) -> None:
        self._subscriptions, self._inbound, self._tail = subscriptions, inbound, tail
        self._has_left = False

    def __aiter__(self) -> _NatsTail:
        return self

    def __anext__(self) -> CoroutineType[Any, Any, Sequence[Frame]]:
        return self._tail.__anext__()  # not awaited here: a layer less for every batch

    async def aclose(self) -> None:
        """Stop reading."""
        await self._tail.aclose()
        if not self._has_left:
            self._has_left = True
            self._subscriptions.remove_reader(self._inbound)
