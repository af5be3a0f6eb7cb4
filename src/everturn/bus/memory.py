"""Memory bus: live deltas and signals inside one process.

A channel keeps the frames since the last log entry of its turn, so that a reader who joins in the middle of a step gets the
step so far. A slow reader misses nothing either: frames that were dropped are in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from everturn.core.deltas import Delta, DriverGone, Frame, LogAdvanced, merge_frames

log = logging.getLogger(__name__)

MERGE_AFTER = 512  # deltas kept one by one; older ones are merged, or a long answer would be kept in tiny pieces


class _Channel:
    __slots__ = ("frames", "is_closed", "merged", "readers", "start", "waiters", "wakeups")

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.start = 0  # the number of the first frame kept
        self.merged = 0  # how many of the kept frames are merged ones
        self.waiters: list[asyncio.Future[None]] = []
        self.is_closed = False
        self.readers = self.wakeups = 0

    def add(self, frames: Sequence[Frame]) -> None:
        if type(frames[0]) is DriverGone:
            self.wakeups += 1  # for current readers; a later one checks by itself whether the turn is driven again
        elif type(frames[0]) is LogAdvanced:
            # The log has everything up to here, so the live frames can be dropped.
            self.start += len(self.frames)
            self.frames, self.merged = list(frames), 0
        else:
            if len(self.frames) - self.merged > MERGE_AFTER:
                self.merge()  # before: a reader that has kept up gets only what is new
            self.frames.extend(frames)
        if self.waiters:
            self.wake()

    def merge(self) -> None:
        """Merge frames into a few long ones, whose numbers end where theirs did."""
        before = len(self.frames)
        self.frames[self.merged :] = merge_frames(self.frames[self.merged :])
        self.merged = len(self.frames)
        self.start += before - self.merged

    def wake(self) -> None:
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
        self.waiters = []


class _MemoryTail:
    """One reader of a channel. It holds its channel from its creation, read or not."""

    def __init__(self, bus: MemoryBus, turn: str, channel: _Channel) -> None:
        self._bus, self._turn, self._channel = bus, turn, channel
        self._at, self._kicks = channel.start, channel.wakeups
        channel.readers += 1
        self._has_left = False

    def __aiter__(self) -> _MemoryTail:
        return self

    async def __anext__(self) -> Sequence[Frame]:
        channel = self._channel
        while not self._has_left:
            if self._at < channel.start + channel.merged:
                # In the middle of what is merged now: start at its beginning, because a reader shows nothing twice.
                self._at = channel.start
            if fresh := channel.frames[self._at - channel.start :]:
                self._at += len(fresh)
                return fresh
            if channel.wakeups > self._kicks:
                self._kicks = channel.wakeups
                return ()
            if channel.is_closed:
                break
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            channel.waiters.append(waiter)
            await waiter
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Stop reading; the last reader removes a channel that is not streaming."""
        if self._has_left:
            return
        self._has_left = True
        channel = self._channel
        channel.readers -= 1
        is_streaming = bool(channel.frames) and isinstance(channel.frames[-1], Delta)
        if not channel.readers and not is_streaming and self._bus.channels.get(self._turn) is channel:
            del self._bus.channels[self._turn]


class _MemoryListener:
    def __init__(self, bus: MemoryBus, session: str) -> None:
        self._bus, self._session = bus, session
        self.signalled = asyncio.Event()
        self._callback: Callable[[], None] | None = None

    def signal(self) -> None:
        """Wake the driver."""
        if self._callback is not None:
            self._callback()
        else:
            self.signalled.set()

    def on_signal(self, callback: Callable[[], None]) -> None:
        """Call back for each signal, also for one that came before."""
        self._callback = callback
        if self.signalled.is_set():
            self.signalled.clear()
            callback()

    async def wait(self) -> None:
        """Wait until the session was signalled since the last call."""
        await self.signalled.wait()
        self.signalled.clear()

    def close(self) -> None:
        """Stop listening."""
        listeners = self._bus.listeners.get(self._session, [])
        if self in listeners:
            listeners.remove(self)
        if not listeners:
            self._bus.listeners.pop(self._session, None)


class MemoryBus:
    """A bus for one process."""

    def __init__(self) -> None:
        self.channels: dict[str, _Channel] = {}
        self.listeners: dict[str, list[_MemoryListener]] = {}
        self.topics: dict[str, list[Callable[[bytes], None]]] = {}

    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        """Publish frames of a turn to its readers."""
        channel = self.channels.get(turn)
        if channel is None:
            # No reader follows it, and what the log has need not be kept here.
            if not isinstance(frames[0], Delta):
                return
            channel = self.channels[turn] = _Channel()
        elif not channel.readers and isinstance(frames[0], LogAdvanced):
            del self.channels[turn]  # the same: the log has all of it, and there is no reader
            return
        channel.add(frames)

    def tail(self, turn: str) -> _MemoryTail:
        """Follow a turn: the frames of the current step so far, then new ones, until the turn is closed."""
        return _MemoryTail(self, turn, self.channels.setdefault(turn, _Channel()))

    def close(self, turn: str) -> None:
        """Drop the channel of a turn that is over; the log has all of it."""
        if (channel := self.channels.pop(turn, None)) is not None:
            channel.is_closed = True
            channel.wake()

    def signal(self, session: str) -> None:
        """Signal the driver of a session that its inbox has something."""
        for listener in self.listeners.get(session, ()):
            listener.signal()

    def listen(self, session: str) -> _MemoryListener:
        """Listen to the signals of a session."""
        listener = _MemoryListener(self, session)
        self.listeners.setdefault(session, []).append(listener)
        return listener

    def announce(self, topic: str, message: bytes) -> None:
        """Call the functions that hear a topic."""
        for on_message in tuple(self.topics.get(topic, ())):
            try:
                on_message(message)
            except Exception:  # the announcer has nothing to do with it
                log.exception("an announcement could not be processed")

    def hear(self, topic: str, on_message: Callable[[bytes], None]) -> Callable[[], None]:
        """Call a function with every announcement of a topic, until the returned function is called."""
        heard = self.topics.setdefault(topic, [])
        heard.append(on_message)

        def stop() -> None:
            if on_message in heard:
                heard.remove(on_message)
            if not heard and self.topics.get(topic) is heard:
                del self.topics[topic]

        return stop
