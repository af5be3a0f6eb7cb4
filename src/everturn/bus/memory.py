"""The live edge inside one process.

A channel keeps the frames since the last entry of its turn's log, so that a reader who comes in the middle of a step
sees what has been said so far. A reader that is slow misses nothing either: frames that were dropped stand in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from everturn.core.deltas import Delta, DriverGone, Frame, LogMoved, merge

MERGE = 512  # deltas kept one by one; older ones are merged, or a long answer would be kept in crumbs


class _Channel:
    __slots__ = ("frames", "is_closed", "kicks", "merged", "readers", "start", "waiters")

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.start = 0  # the number of the first frame kept
        self.merged = 0  # how many of those kept are merged ones
        self.waiters: list[asyncio.Future[None]] = []
        self.is_closed = False
        self.readers = self.kicks = 0

    def add(self, frames: Sequence[Frame]) -> None:
        if type(frames[0]) is DriverGone:
            self.kicks += 1  # for those who are here; whoever comes later asks whether somebody drives again
        elif type(frames[0]) is LogMoved:
            # The log holds everything up to here, so what was shown live may go.
            self.start += len(self.frames)
            self.frames, self.merged = list(frames), 0
        else:
            if len(self.frames) - self.merged > MERGE:
                self.merge()  # before: whoever has kept up is shown only what is new
            self.frames.extend(frames)
        if self.waiters:
            self.wake()

    def merge(self) -> None:
        """Keep frames as a few long ones, under numbers that end where theirs did."""
        before = len(self.frames)
        self.frames[self.merged :] = merge(self.frames[self.merged :])
        self.merged = len(self.frames)
        self.start += before - self.merged

    def wake(self) -> None:
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
        self.waiters = []


class _Tail:
    """One reader of a channel. It holds its channel from the moment it was asked for, read or not."""

    def __init__(self, bus: MemoryBus, turn: str, channel: _Channel) -> None:
        self._bus, self._turn, self._channel = bus, turn, channel
        self._at, self._kicks = channel.start, channel.kicks
        channel.readers += 1
        self._has_left = False

    def __aiter__(self) -> _Tail:
        return self

    async def __anext__(self) -> Sequence[Frame]:
        channel = self._channel
        while not self._has_left:
            if self._at < channel.start + channel.merged:
                # In the middle of what is merged now: from its beginning, for a reader shows nothing twice.
                self._at = channel.start
            if fresh := channel.frames[self._at - channel.start :]:
                self._at += len(fresh)
                return fresh
            if channel.kicks > self._kicks:
                self._kicks = channel.kicks
                return ()
            if channel.is_closed:
                break
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            channel.waiters.append(waiter)
            await waiter
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Stop reading; the last to leave a channel with nothing in it takes it away."""
        if self._has_left:
            return
        self._has_left = True
        channel = self._channel
        channel.readers -= 1
        is_streaming = bool(channel.frames) and isinstance(channel.frames[-1], Delta)
        if not channel.readers and not is_streaming and self._bus.channels.get(self._turn) is channel:
            del self._bus.channels[self._turn]


class _Ear:
    def __init__(self, bus: MemoryBus, session: str) -> None:
        self._bus, self._session = bus, session
        self.rung = asyncio.Event()

    async def wait(self) -> None:
        """Return once the session was signalled since the last time."""
        await self.rung.wait()
        self.rung.clear()

    def close(self) -> None:
        """Stop listening."""
        ears = self._bus.ears.get(self._session, [])
        if self in ears:
            ears.remove(self)
        if not ears:
            self._bus.ears.pop(self._session, None)


class MemoryBus:
    """A bus for one process."""

    def __init__(self) -> None:
        self.channels: dict[str, _Channel] = {}
        self.ears: dict[str, list[_Ear]] = {}

    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        """Show frames of a turn to whoever follows it."""
        channel = self.channels.get(turn)
        if channel is None:
            # Nobody follows it, and what the log holds need not be kept here.
            if not isinstance(frames[0], Delta):
                return
            channel = self.channels[turn] = _Channel()
        elif not channel.readers and isinstance(frames[0], LogMoved):
            del self.channels[turn]  # the same: the log has all of it, and nobody looks
            return
        channel.add(frames)

    def tail(self, turn: str) -> _Tail:
        """Follow a turn: what of the present step is still known, then what comes, until it is closed."""
        return _Tail(self, turn, self.channels.setdefault(turn, _Channel()))

    def close(self, turn: str) -> None:
        """The turn is over: drop what is kept of it; its log says it all."""
        if (channel := self.channels.pop(turn, None)) is not None:
            channel.is_closed = True
            channel.wake()

    def signal(self, session: str) -> None:
        """Tell whoever drives a session that its inbox has something."""
        for ear in self.ears.get(session, ()):
            ear.rung.set()

    def listen(self, session: str) -> _Ear:
        """Hear the signals of a session."""
        ear = _Ear(self, session)
        self.ears.setdefault(session, []).append(ear)
        return ear
