"""Messages of other nodes → frames for the readers of this one: one subscription for a turn, however many they are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from types import CoroutineType
from typing import Any

from nats.aio.client import Client
from nats.aio.subscription import Subscription

from everturn.bus.memory import MemoryBus
from everturn.bus.nats.backlog import LIMIT, Stream, fetch, is_whole, make_stream
from everturn.bus.nats.link import Link, Tasks, publish, subscribe
from everturn.bus.nats.packing import CLOSING, LOOK_AGAIN, Sieve, resend_subject, sound, token, unpack
from everturn.core.deltas import CallProgress, Delta, Frame, LogMoved
from everturn.core.ports import Tail
from everturn.errors import UnreadableLog

log = logging.getLogger(__name__)

AT_ONCE = 32  # backlogs fetched at a time
HELD = 4096  # messages of a turn that wait for its backlog
FRAME = 256  # what a frame without a text counts for, in characters


class Inlet:
    """A turn that is followed on this node."""

    __slots__ = (
        "has_complained",
        "held",
        "is_ending",
        "later",
        "nc",
        "readers",
        "sieve",
        "size",
        "subject",
        "subscription",
        "turn",
    )

    def __init__(self, turn: str, subject: str) -> None:
        self.turn, self.subject = turn, subject
        self.readers = 0
        self.nc: Client | None = None  # the connection it is heard on
        self.subscription: Subscription | None = None
        self.sieve = Sieve()
        self.size = 0  # characters that came since the log moved
        self.held: list[bytes] | None = None  # what comes while the backlog is fetched
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
        is_driven: Callable[[str], bool],
    ) -> None:
        self._link, self._local, self._tasks, self._stream = link, local, tasks, stream
        self._is_driven = is_driven
        self.inlets: dict[str, Inlet] = {}
        self._fetching = asyncio.Semaphore(AT_ONCE)
        self._has_stream = False
        self._loop = asyncio.get_running_loop()

    def tail(self, turn: str) -> Tail:
        """A reader comes; with the first one the turn is heard on this node."""
        inlet = self.inlets.get(turn)
        if inlet is None:
            subject = self._stream.subjects.replace("*", token(turn))
            inlet = self.inlets[turn] = Inlet(turn, subject)
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
            if not is_whole(backlog) and not self._is_driven(inlet.turn):
                # The stream has rolled, or is not there: whoever drives the turn still has the step so far.
                await publish(nc, [(resend_subject(self._stream.name), inlet.turn.encode())])

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
        if data == CLOSING:
            inlet.is_ending = True
        try:
            fresh = bounded(inlet, inlet.sieve.fresh(sound(unpack(data), inlet.turn)))
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


def bounded(inlet: Inlet, frames: list[Frame]) -> list[Frame]:
    """As much of a step as may be held in memory; what goes beyond is read out of the log when it ends."""
    kept: list[Frame] = []
    for frame in frames:
        if isinstance(frame, Delta | CallProgress):
            inlet.size += len(frame.text) + FRAME
            if inlet.size > LIMIT:
                continue
        elif frame != LOOK_AGAIN:  # for that one a channel forgets nothing
            inlet.size = 0
        kept.append(frame)
    return kept


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
