"""Frame publisher: sends what this node publishes, merged over a moment, with a bound on what waits.

Without a connection nothing is queued. When there is one again, the step so far is sent whole, with `LogAdvanced`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Container, Sequence
from itertools import count
from typing import Protocol

from everturn.bus.memory import MemoryBus
from everturn.bus.remote.codec import CLOSE_MESSAGE, READ_LOG, announcement_subject, merge_for_send, pack, subject_token
from everturn.core.deltas import Delta, DriverGone, Frame, LogAdvanced

FLUSH = 0.05  # seconds over which the frames of a turn are merged into one message
IDLE_SECONDS = 60.0  # seconds for which a turn that is not streaming is remembered after its last frame
RESEND = (
    1.0  # seconds within which a step is not resent: a second reader that asks finds the first resend in the stream
)
CLOSED_FOR = 30.0  # seconds for which a closing is repeated: longer than a dead connection goes unnoticed
BATCH_MESSAGES = 256  # messages written as one
UNMERGED_FRAMES = 4096  # unmerged frames that wait; with a slower sender they are merged
TEXT_LIMIT = 2**20  # characters of a turn that wait for a slow server; more are left to the log
ANNOUNCEMENTS = 1000  # that wait for a slow server; older ones are dropped
SIGNALS = 10_000  # sessions whose signals wait for a connection
OUTBOUND_TURNS = 20_000  # turns that are remembered while there is no connection


class FrameSender(Protocol):
    """Sends messages to the other processes."""

    @property
    def message_limit(self) -> int | None:
        """How many bytes a message may have; None while there is no connection."""
        ...

    async def send(self, messages: Sequence[tuple[str, bytes]]) -> None:
        """Send messages, each with its subject."""
        ...

    def log_problem(self, problem: str, error: object) -> None:
        """Log that something could not be sent."""
        ...


class OutboundTurn:
    """A turn this node publishes, and its unsent frames."""

    __slots__ = (
        "frames",
        "is_asked",
        "is_closing",
        "is_ready",
        "needs_resend",
        "published_locally",
        "resent",
        "sent",
        "since",
        "subject",
        "touched",
        "turn",
    )

    def __init__(self, turn: str, subject: str, now: float) -> None:
        self.turn, self.subject = turn, subject
        self.frames: list[Frame] = []
        self.published_locally = 0  # how many of these the local bus has
        self.sent: tuple[list[Frame], list[Frame]] | None = (
            None  # what was sent last and the local bus has not; the same, merged
        )
        self.since = self.touched = now  # when its step began, and when anything was sent
        self.resent = 0.0  # when the step so far was resent on request
        self.is_ready = False  # it is queued for sending
        self.needs_resend = False  # something was lost, so the step so far is sent again
        self.is_asked = False  # a reader without a backlog wants the step so far; it has checked the log
        self.is_closing = False

    @property
    def is_long(self) -> bool:
        """Whether more text waits than allowed."""
        return sum(len(frame.text) for frame in self.frames if isinstance(frame, Delta)) > TEXT_LIMIT

    def drop_unsent(self) -> None:
        """Drop what waits."""
        self.frames, self.published_locally = [], 0
        self.needs_resend = True


class FramePublisher:
    """Publishes the frames and signals of a node."""

    def __init__(
        self,
        sender: FrameSender,
        local: MemoryBus,
        prefix: str,
        keep: float,
        followed: Container[str],
        resend_interval: float = RESEND,
    ) -> None:
        self._followed, self._resend_interval = followed, resend_interval
        self._sender, self._local, self._prefix, self._keep = sender, local, prefix, keep
        self.outlets: dict[str, OutboundTurn] = {}
        self._closed: dict[str, float] = {}  # turn -> when it was closed
        self._ready: list[OutboundTurn] = []  # to be sent now
        self._next_tick: list[OutboundTurn] = []  # to be sent at the next tick
        self._announcements: deque[tuple[str, bytes]] = deque(maxlen=ANNOUNCEMENTS)
        self._signals: dict[str, bytes] = {}
        self._repeats: dict[str, bytes] = {}
        self._numbers, self._node = count(1), secrets.token_hex(6).encode()
        self._wake = asyncio.Event()
        self._ticking: asyncio.TimerHandle | None = None
        self.is_closed = self._is_sending = False
        self._loop = asyncio.get_running_loop()

    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        """Send frames within a moment; at once if the log moved. This is the hot path: it runs once per chunk."""
        first = type(frames[0])
        if first is DriverGone or self.is_closed:
            self._local.publish(turn, frames)  # for this process only: another one may continue to drive it
            return
        outbound = self.outlets.get(turn) or self._open(turn)
        waiting = outbound.frames
        waiting += frames
        if turn in self._followed:
            self._local.publish(turn, frames)
            outbound.published_locally = len(waiting)
        if first is LogAdvanced or type(frames[-1]) is LogAdvanced:
            self._send_now(outbound)
        elif not outbound.is_ready:
            outbound.is_ready = True
            self._next_tick.append(outbound)
            self._tick_soon()
        elif len(waiting) > UNMERGED_FRAMES:
            self._merge_waiting(outbound)

    def publish_locally(self, turn: str) -> None:
        """Give the local bus all frames. While a turn has no readers here, it gets merged frames instead of single ones."""
        outbound = self.outlets.get(turn)
        if outbound is None:
            return
        unseen = outbound.frames[outbound.published_locally :]
        if outbound.sent is not None:
            unseen, outbound.sent = [*outbound.sent[0], *unseen], None
        outbound.published_locally = len(outbound.frames)
        for at in range(len(unseen) - 1, -1, -1):
            if type(unseen[at]) is LogAdvanced:
                self._local.publish(turn, unseen[at : at + 1])  # alone: with it, the channel drops everything before
                unseen = unseen[at + 1 :]
                break
        if unseen:
            self._local.publish(turn, unseen)

    def _merge_waiting(self, outbound: OutboundTurn) -> None:
        self.publish_locally(outbound.turn)
        outbound.frames = merge_for_send(outbound.frames)
        outbound.published_locally = len(outbound.frames)
        if outbound.is_long:
            outbound.drop_unsent()

    def close(self, turn: str) -> None:
        """Send the rest of a turn, and that it is over."""
        if self.is_closed:
            return
        outbound = self.outlets.get(turn) or self._open(turn)
        outbound.is_closing = True
        self._send_now(outbound)

    def signal(self, session: str) -> None:
        """Send a signal, as soon as possible."""
        if len(self._signals) < SIGNALS and not self.is_closed:
            self._signals[session] = b"%b%d" % (self._node, next(self._numbers))
            self._wake.set()

    def announce(self, topic: str, message: bytes) -> None:
        """Send an announcement, as soon as possible; without a connection it is dropped."""
        if not self.is_closed:
            self._announcements.append((announcement_subject(self._prefix, topic), message))
            self._wake.set()

    def resend(self, turn: str) -> None:
        """Send the step so far again, for a late reader on another node whose backlog is incomplete.

        Without an interval the reader has no other backlog, and waits for an answer: it gets one also before any text.
        """
        outbound, channel, now = self.outlets.get(turn), self._local.channels.get(turn), self._loop.time()
        if outbound is None or now - outbound.resent < self._resend_interval:
            return
        frames = (*outbound.frames, *(channel.frames if channel else ()))
        if not self._resend_interval or any(isinstance(frame, Delta) for frame in frames):
            outbound.resent = now
            if self._resend_interval:
                outbound.needs_resend = True
            else:
                outbound.is_asked = True
            self._send_now(outbound)

    def resend_all(self) -> None:
        """After a reconnect the last messages may be lost: send every step so far, and every recent closing."""
        for turn in self._closed:
            (self.outlets.get(turn) or self._open(turn)).is_closing = True
        for outbound in self.outlets.values():
            outbound.needs_resend = True
            self._send_now(outbound)

    def flush_now(self) -> bool:
        """Send at once what would wait a moment. Returns whether anything is still unsent."""
        self._tick()
        return bool(self._ready or self._signals or self._announcements or self._is_sending)

    def drop_idle(self, now: float) -> None:
        """Forget idle turns, whose driver may have died."""
        for turn, outbound in list(self.outlets.items()):
            if now - outbound.touched > IDLE_SECONDS:
                self.publish_locally(turn)
            channel = self._local.channels.get(turn)
            is_streaming = channel is not None and any(isinstance(frame, Delta) for frame in channel.frames)
            if outbound.is_closing:
                self._send_now(outbound)  # it failed before
            elif now - outbound.touched > (self._keep if is_streaming else IDLE_SECONDS):
                del self.outlets[turn]
                if channel is not None and not channel.readers:
                    del self._local.channels[turn]
        for turn in list(self.outlets)[:-OUTBOUND_TURNS]:
            del self.outlets[turn]
        for turn in [turn for turn, at in self._closed.items() if now - at > CLOSED_FOR]:
            del self._closed[turn]

    async def run(self) -> None:
        """Send what is queued. Nothing else sends, so the frames of a turn stay in order."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            ready, self._ready = self._ready, []
            announcements = list(self._announcements)
            self._announcements.clear()
            limit, self._is_sending = self._sender.message_limit, True
            try:
                messages = [message for outbound in ready for message in self._messages(limit, outbound)]
                if limit is not None:
                    messages += self._take_signals()
                    messages += [(subject, data) for subject, data in announcements if len(data) <= limit]
                    for at in range(0, len(messages), BATCH_MESSAGES):
                        await self._sender.send(messages[at : at + BATCH_MESSAGES])
            except Exception as error:  # whatever the client may raise; the connection is re-established
                self._sender.log_problem("nothing can be sent", error)
                for outbound in ready:
                    outbound.drop_unsent()
                    outbound.is_ready = False
            self._is_sending = False

    def _open(self, turn: str) -> OutboundTurn:
        outbound = self.outlets[turn] = OutboundTurn(turn, f"{self._prefix}.d.{subject_token(turn)}", self._loop.time())
        return outbound

    def _send_now(self, outbound: OutboundTurn) -> None:
        outbound.is_ready = True
        self._ready.append(outbound)
        self._wake.set()

    def _tick_soon(self) -> None:
        if self._ticking is None:
            self._ticking = self._loop.call_later(FLUSH, self._tick)

    def _tick(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        self._ready += self._next_tick
        self._next_tick = []
        self._wake.set()

    def _messages(self, limit: int | None, outbound: OutboundTurn) -> Sequence[tuple[str, bytes]]:
        """The messages of a turn to be sent now."""
        if not outbound.is_ready:
            return ()  # it was queued twice
        outbound.is_ready = False
        now = outbound.touched = self._loop.time()
        frames = outbound.frames
        is_new = any(type(frame) is LogAdvanced for frame in frames)
        if must_show := bool(
            limit is None or outbound.needs_resend or outbound.is_asked or outbound.published_locally or is_new
        ):
            self.publish_locally(outbound.turn)
        outbound.frames, outbound.published_locally = [], 0
        if limit is None:
            outbound.needs_resend = True
            return ()
        if outbound.needs_resend or outbound.is_asked:
            channel = self._local.channels.get(outbound.turn)
            so_far = channel.frames if channel is not None else ()
            # What is kept may be text only. Where the log has just moved, a reader that is shown the text of a step without
            # its beginning would drop all of it until the step ends.
            is_complete = bool(so_far) and not (outbound.needs_resend or is_new)
            frames = [*so_far] if is_complete else [READ_LOG, *so_far]
            outbound.needs_resend, outbound.is_asked, is_new = False, False, True
        messages: list[tuple[str, bytes]] = []
        if frames and (merged := merge_for_send(frames)):  # a message without frames would close the turn
            if not must_show:
                if outbound.sent is not None:
                    self._local.publish(outbound.turn, outbound.sent[1])
                outbound.sent = frames, merged
            if is_new:
                outbound.since = now
            age = 0 if is_new else int((now - outbound.since) * 1000) + 1
            messages = [(outbound.subject, data) for data in pack(merged, age, limit) or pack([READ_LOG], age, limit)]
        if outbound.is_closing:
            self.outlets.pop(outbound.turn, None)
            self._closed[outbound.turn] = now
            messages.append((outbound.subject, CLOSE_MESSAGE))
        return messages

    def _take_signals(self) -> list[tuple[str, bytes]]:
        if not (self._signals or self._repeats):
            return []
        # Each twice, a moment apart: the subscription of a new driver may still be in transit.
        signals, repeats = self._signals, self._repeats
        self._signals, self._repeats = {}, signals
        if signals:
            self._tick_soon()
        subject = f"{self._prefix}.s."
        return [(subject + subject_token(session), number) for session, number in (*signals.items(), *repeats.items())]
