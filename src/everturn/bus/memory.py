"""The live edge inside one process.

A channel keeps the frames since the last entry of its turn's log, so that a reader who comes in the middle of a step
sees what has been said so far. A reader that is slow misses nothing either: frames that were dropped stand in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from everturn.core.deltas import Delta, Frame, LogMoved


class _Channel:
    __slots__ = ("frames", "is_closed", "readers", "start", "waiters")

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.start = 0  # the number of the first frame kept
        self.waiters: list[asyncio.Future[None]] = []
        self.is_closed = False
        self.readers = 0

    def add(self, frames: Sequence[Frame]) -> None:
        if type(frames[0]) is LogMoved:
            # The log holds everything up to here, so what was shown live may go.
            self.start += len(self.frames)
            self.frames = list(frames)
        else:
            self.frames.extend(frames)
        if self.waiters:
            self.wake()

    def wake(self) -> None:
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
        self.waiters = []


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
        self._channels: dict[str, _Channel] = {}
        self.ears: dict[str, list[_Ear]] = {}

    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        """Show frames of a turn to whoever follows it."""
        channel = self._channels.get(turn)
        if channel is None:
            # Nobody follows it, and what the log holds need not be kept here.
            if not isinstance(frames[0], Delta):
                return
            channel = self._channels[turn] = _Channel()
        channel.add(frames)

    def tail(self, turn: str) -> AsyncGenerator[Sequence[Frame], None]:
        """Follow a turn: what of the present step is still known, then what comes, until it is closed."""
        channel = self._channels.get(turn)
        if channel is None:
            channel = self._channels[turn] = _Channel()
        channel.readers += 1
        return self._tail(turn, channel)

    async def _tail(self, turn: str, channel: _Channel) -> AsyncGenerator[Sequence[Frame], None]:
        at = channel.start
        try:
            while True:
                at = max(at, channel.start)
                if fresh := channel.frames[at - channel.start :]:
                    at += len(fresh)
                    yield fresh
                elif channel.is_closed:
                    return
                else:
                    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    channel.waiters.append(waiter)
                    await waiter
        finally:
            channel.readers -= 1
            if not channel.readers and not channel.frames and self._channels.get(turn) is channel:
                del self._channels[turn]

    def close(self, turn: str) -> None:
        """The turn is over: drop what is kept of it; its log says it all."""
        if (channel := self._channels.pop(turn, None)) is not None:
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
