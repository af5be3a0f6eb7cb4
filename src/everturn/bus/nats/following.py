"""Messages of other nodes → frames for the readers of this one: one subscription for a turn, however many they are."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from types import CoroutineType
from typing import Any

from nats.aio.client import Client
from nats.aio.subscription import Subscription

from everturn.bus.memory import MemoryBus
from everturn.bus.nats.backlog import Stream, fetch, make_stream
from everturn.bus.nats.link import Link, Tasks, subscribe
from everturn.bus.nats.packing import CLOSING, LOOK_AGAIN, Sieve, token, unpack
from everturn.core.deltas import Delta, Frame, LogMoved
from everturn.core.ports import Tail
from everturn.errors import UnreadableLog

log = logging.getLogger(__name__)

AT_ONCE = 32  # backlogs fetched at a time
AWAY = 2.0  # seconds of silence after which those look at the log who have no connection to hear of it
HELD = 4096  # messages of a turn that wait for its backlog


class Inlet:
    """A turn that is followed on this node."""

    __slots__ = (
        "has_complained",
        "heard",
        "held",
        "is_ending",
        "later",
        "nc",
        "patience",
        "readers",
        "sieve",
        "subject",
        "subscription",
        "turn",
    )

    def __init__(self, turn: str, subject: str, now: float, patience: float) -> None:
        self.turn, self.subject = turn, subject
        self.readers = 0
        self.nc: Client | None = None  # the connection it is heard on
        self.subscription: Subscription | None = None
        self.sieve = Sieve()
        self.held: list[bytes] | None = None  # what comes while the backlog is fetched
        self.heard, self.patience = now, patience
        self.later: list[Frame] = []  # what is shown when readers have seen what came before
        self.is_ending = self.has_complained = False


class Following:
    """The way into a node, for frames. `is_driven` says whether a turn is published here, too."""

    def __init__(
        self,
        link: Link,
        local: MemoryBus,
        tasks: Tasks,
        stream: Stream,
        look_after: float,
        is_driven: Callable[[str], bool],
    ) -> None:
        self._link, self._local, self._tasks, self._stream = link, local, tasks, stream
        self._look_after, self._is_driven = look_after, is_driven
        self.inlets: dict[str, Inlet] = {}
        self._fetching = asyncio.Semaphore(AT_ONCE)
        self._has_stream = False
        self._loop = asyncio.get_running_loop()

    def tail(self, turn: str) -> Tail:
        """A reader comes; with the first one the turn is heard on this node."""
        inlet = self.inlets.get(turn)
        if inlet is None:
            patience = self._look_after * random.uniform(0.75, 1.25)  # or all that are idle would look at once
            subject = self._stream.subjects.replace("*", token(turn))
            inlet = self.inlets[turn] = Inlet(turn, subject, self._loop.time(), patience)
            if self._link.nc is not None:
                self._tasks.start(self._open(inlet, self._link.nc, False))
        inlet.readers += 1
        return _Tail(self, inlet, self._local.tail(turn))

    def left(self, inlet: Inlet) -> None:
        """A reader goes; with the last one goes the subscription."""
        inlet.readers -= 1
        if not inlet.readers and self.inlets.get(inlet.turn) is inlet:
            self.end(inlet.turn)
            if not self._is_driven(inlet.turn):
                self._local.channels.pop(inlet.turn, None)  # nobody fills it any more

    def end(self, turn: str) -> None:
        """Hear a turn no longer."""
        inlet = self.inlets.pop(turn, None)
        if inlet is not None:
            self._unsubscribe(inlet)

    def _unsubscribe(self, inlet: Inlet) -> None:
        if inlet.subscription is not None and inlet.nc is self._link.nc:
            self._tasks.start(inlet.subscription.unsubscribe())
        inlet.subscription = inlet.nc = None

    @property
    def is_whole(self) -> bool:
        """Whether those who come late are shown the step so far."""
        return self._has_stream

    @property
    def is_settled(self) -> bool:
        """Whether everything that is followed is heard."""
        return all(inlet.nc is not None and inlet.held is None for inlet in self.inlets.values())

    async def up(self, nc: Client) -> None:
        """Hear everything on a new connection, and have everybody look at what was missed without one."""
        self._has_stream = True  # until it is not
        await self.heal(nc)
        for inlet in list(self.inlets.values()):
            self._tasks.start(self._open(inlet, nc, True))

    async def heal(self, nc: Client) -> None:
        """Make the stream if it is not there; say it once if that cannot be done."""
        problem = await make_stream(nc, self._stream)
        if problem and self._has_stream:
            log.warning("NATS: readers that come late are not shown the step so far: %s", problem)
        self._has_stream = not problem

    def look_after(self, now: float) -> None:
        """Have those look at the log who have heard nothing for long."""
        for inlet in self.inlets.values():
            if now - inlet.heard > (inlet.patience if inlet.nc is not None else min(inlet.patience, AWAY)):
                inlet.heard = now
                self._look(inlet)

    async def _open(self, inlet: Inlet, nc: Client, look: bool) -> None:
        """Hear a turn: first what is said from now on, which waits until what was said before has been shown."""
        if inlet.nc is nc or self.inlets.get(inlet.turn) is not inlet:
            return
        inlet.nc, inlet.held = nc, []

        def heard(data: bytes) -> None:
            if inlet.held is None:
                self._take(inlet, data)
            elif len(inlet.held) < HELD and inlet.nc is nc:
                inlet.held.append(data)

        inlet.subscription = await subscribe(nc, inlet.subject, heard)
        if inlet.nc is not nc:  # everybody left meanwhile
            await inlet.subscription.unsubscribe()
            return
        async with self._fetching:
            backlog = await fetch(nc, self._stream.name, inlet.subject) if self._has_stream else None
            if backlog is None and self._has_stream:
                # A server that has lost its memory without our noticing has lost the stream, too.
                await self.heal(nc)
        if inlet.nc is nc:
            self._catch_up(inlet, backlog, look)

    def _catch_up(self, inlet: Inlet, backlog: list[bytes] | None, look: bool) -> None:
        channel = self._local.channels.get(inlet.turn)
        if channel is not None:
            inlet.sieve.fresh(channel.frames)  # if it is driven here, too, that was shown already
        look = look or backlog is None or len(inlet.held or ()) >= HELD
        if CLOSING in (backlog or ()):
            self._look(inlet)  # what came before it was not heard, and those who are told to go read no more
        held, inlet.held = inlet.held, None
        for data in (*(backlog or ()), *(held or ())):
            self._take(inlet, data)
        if look:
            self._look(inlet)

    def _take(self, inlet: Inlet, data: bytes) -> None:
        """Show the readers of a turn what another node said, as far as it is new."""
        inlet.heard = self._loop.time()
        if data == CLOSING:
            inlet.is_ending = True
        try:
            fresh = inlet.sieve.fresh(unpack(data))
        except UnreadableLog as error:
            if not inlet.has_complained:
                inlet.has_complained = True
                log.warning("NATS: something on %s is not ours: %s", inlet.subject, error)
            return
        if inlet.later:
            inlet.later += fresh
        else:
            self._show(inlet, fresh)

    def _show(self, inlet: Inlet, frames: list[Frame]) -> None:
        """Show frames up to where the log moved, and what follows a moment later.

        For a channel forgets when the log has moved, and those who have kept up should see first what came before.
        """
        if self.inlets.get(inlet.turn) is not inlet:
            return  # they have left
        for at in range(1, len(frames)):
            if type(frames[at]) is LogMoved:
                frames, inlet.later = frames[:at], frames[at:]
                break
        if frames and frames[0] == LOOK_AGAIN:
            self._look(inlet)
            frames = frames[1:]
        if frames:
            self._local.publish(inlet.turn, frames)
        if inlet.later:
            self._loop.call_soon(self._show_later, inlet)  # behind the readers that were just woken
        elif inlet.is_ending:
            self.end(inlet.turn)
            self._local.close(inlet.turn)

    def _show_later(self, inlet: Inlet) -> None:
        later, inlet.later = inlet.later, []
        self._show(inlet, later)

    def _look(self, inlet: Inlet) -> None:
        """Have the readers of a turn look at the log. Unlike a log that moved, this lets nothing be forgotten."""
        channel = self._local.channels.get(inlet.turn)
        if channel is None or not channel.readers:
            return
        if any(isinstance(frame, Delta) for frame in channel.frames):
            channel.frames.append(LOOK_AGAIN)
            channel.wake()
        else:
            channel.add((LOOK_AGAIN,))


class _Tail:
    """A reader of this node."""

    def __init__(self, following: Following, inlet: Inlet, tail: Tail) -> None:
        self._following, self._inlet, self._tail = following, inlet, tail
        self._has_left = False

    def __aiter__(self) -> _Tail:
        return self

    def __anext__(self) -> CoroutineType[Any, Any, Sequence[Frame]]:
        return self._tail.__anext__()  # not awaited here: a layer less for every batch

    async def aclose(self) -> None:
        """Stop reading."""
        await self._tail.aclose()
        if not self._has_left:
            self._has_left = True
            self._following.left(self._inlet)
