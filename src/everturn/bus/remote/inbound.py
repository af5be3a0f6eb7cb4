"""Inbound frames: what other processes publish, passed on to the readers of a turn in this one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from everturn.bus.memory import MemoryBus
from everturn.bus.remote.codec import CLOSE_MESSAGE, READ_LOG, DuplicateFilter, plausible_frames, unpack
from everturn.core.deltas import CallProgress, Delta, Frame, LogAdvanced
from everturn.errors import UnreadableLog

log = logging.getLogger(__name__)

LIMIT = 8 * 2**20  # characters of a step that are held in memory; a longer one is read from the log when it ends
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
        self.nc: Any = None  # the connection of the subscription
        self.subscription: Any = None
        self.duplicates = DuplicateFilter()
        self.size = 0  # characters received since the log moved
        self.waiting: list[bytes] | None = None  # messages that arrive while the backlog is fetched
        self.deferred: list[Frame] = []  # frames to publish after readers have seen the ones before
        self.is_ending = self.has_complained = False


class InboundFrames:
    """The turns with readers in this process. `end` is called when a turn was closed by its driver."""

    def __init__(self, local: MemoryBus, end: Callable[[str], None]) -> None:
        self._local, self._end = local, end
        self.inlets: dict[str, InboundTurn] = {}
        self._loop = asyncio.get_running_loop()

    def take(self, inbound: InboundTurn, data: bytes) -> None:
        """Publish what is new of another node's message to the readers of a turn."""
        if data == CLOSE_MESSAGE:
            inbound.is_ending = True
        try:
            fresh = within_memory_limit(inbound, inbound.duplicates.fresh(plausible_frames(unpack(data), inbound.turn)))
        except UnreadableLog as error:
            if not inbound.has_complained:
                inbound.has_complained = True
                log.warning("a message on %s is not from Everturn: %s", inbound.subject, error)
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
            self.tell_to_read_log(inbound)
            frames = frames[1:]
        if frames:
            self._local.publish(inbound.turn, frames)
        if inbound.deferred:
            self._loop.call_soon(self._publish_later, inbound)  # after the readers that were just woken
        elif inbound.is_ending:
            self._end(inbound.turn)
            self._local.close(inbound.turn)

    def _publish_later(self, inbound: InboundTurn) -> None:
        later, inbound.deferred = inbound.deferred, []
        self._publish(inbound, later)

    def tell_to_read_log(self, inbound: InboundTurn) -> None:
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
