"""What this node publishes → messages: merged over a moment, a turn's in one, and never more waiting than may.

While there is no connection nothing is kept for it. When there is one again, the step so far is sent whole, with the
word to look at the log.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Container, Sequence
from itertools import count

from nats.aio.client import Client

from everturn.bus.memory import MemoryBus
from everturn.bus.nats.link import Link, publish
from everturn.bus.nats.packing import CLOSING, LOOK_AGAIN, pack, tidy, token
from everturn.core.deltas import Delta, DriverGone, Frame, LogMoved

FLUSH = 0.05  # seconds over which what a turn says is sent as one
QUIET = 60.0  # seconds for which a turn that is not streaming is remembered after it last said something
RESEND = 1.0  # seconds within which a step is not sent whole a second time: who asks then finds the first in the stream
CLOSED_FOR = 30.0  # seconds for which a closing is told again: longer than a dead connection goes unnoticed
TOGETHER = 256  # messages written as one
CRUMBS = 4096  # frames that wait one by one; a sender that is slower than this is sent whole pages
TEXT_LIMIT = 2**20  # characters of a turn that wait for a slow server; beyond that they are left to the log
SIGNALS = 10_000  # sessions whose signals wait for a connection
OUTLETS = 20_000  # turns that are remembered while there is no connection


class Outlet:
    """A turn this node publishes, and what of it has not been sent yet."""

    __slots__ = (
        "frames",
        "is_closing",
        "is_ready",
        "is_torn",
        "resent",
        "sent",
        "shown",
        "since",
        "subject",
        "touched",
        "turn",
    )

    def __init__(self, turn: str, subject: str, now: float) -> None:
        self.turn, self.subject = turn, subject
        self.frames: list[Frame] = []
        self.shown = 0  # how many of these the local bus has
        self.sent: tuple[list[Frame], list[Frame]] | None = None  # what was sent last and it has not; the same, merged
        self.since = self.touched = now  # when its step began, and when anything was sent
        self.resent = 0.0  # when the step so far was sent because somebody asked for it
        self.is_ready = False  # it stands in line to be sent
        self.is_torn = False  # something was lost, so the step so far is sent again
        self.is_closing = False

    @property
    def is_long(self) -> bool:
        """Whether more waits than may."""
        return sum(len(frame.text) for frame in self.frames if isinstance(frame, Delta)) > TEXT_LIMIT

    def tear(self) -> None:
        """Give up what waits."""
        self.frames, self.shown = [], 0
        self.is_torn = True


class Sending:
    """The way out of a node."""

    def __init__(self, link: Link, local: MemoryBus, prefix: str, keep: float, followed: Container[str]) -> None:
        self._followed = followed
        self._link, self._local, self._prefix, self._keep = link, local, prefix, keep
        self.outlets: dict[str, Outlet] = {}
        self._closed: dict[str, float] = {}  # turn -> when it was closed
        self._ready: list[Outlet] = []  # to be sent now
        self._soon: list[Outlet] = []  # to be sent at the next tick
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
            self._local.publish(turn, frames)  # for this process only: another one may drive it on
            return
        outlet = self.outlets.get(turn) or self._open(turn)
        waiting = outlet.frames
        waiting += frames
        if turn in self._followed:
            self._local.publish(turn, frames)
            outlet.shown = len(waiting)
        if first is LogMoved or type(frames[-1]) is LogMoved:
            self._send_now(outlet)
        elif not outlet.is_ready:
            outlet.is_ready = True
            self._soon.append(outlet)
            self._tick_soon()
        elif len(waiting) > CRUMBS:
            self._shorten(outlet)

    def show(self, turn: str) -> None:
        """Let the local bus have everything. While nobody follows a turn here, it is given pages instead of crumbs."""
        outlet = self.outlets.get(turn)
        if outlet is None:
            return
        unseen = outlet.frames[outlet.shown :]
        if outlet.sent is not None:
            unseen, outlet.sent = [*outlet.sent[0], *unseen], None
        outlet.shown = len(outlet.frames)
        for at in range(len(unseen) - 1, -1, -1):
            if type(unseen[at]) is LogMoved:
                self._local.publish(turn, unseen[at : at + 1])  # alone: with it, the channel forgets what was before
                unseen = unseen[at + 1 :]
                break
        if unseen:
            self._local.publish(turn, unseen)

    def _shorten(self, outlet: Outlet) -> None:
        self.show(outlet.turn)
        outlet.frames = tidy(outlet.frames)
        outlet.shown = len(outlet.frames)
        if outlet.is_long:
            outlet.tear()

    def close(self, turn: str) -> None:
        """Send what is left of a turn, and that it is over."""
        if self.is_closed:
            return
        outlet = self.outlets.get(turn) or self._open(turn)
        outlet.is_closing = True
        self._send_now(outlet)

    def signal(self, session: str) -> None:
        """Send a signal, as soon as it can be."""
        if len(self._signals) < SIGNALS and not self.is_closed:
            self._signals[session] = b"%b%d" % (self._node, next(self._numbers))
            self._wake.set()

    def resend(self, turn: str) -> None:
        """Send the step so far once more, for a reader on another node that comes late and finds it nowhere."""
        outlet, channel, now = self.outlets.get(turn), self._local.channels.get(turn), self._loop.time()
        if outlet is None or now - outlet.resent < RESEND:
            return
        if any(isinstance(frame, Delta) for frame in (*outlet.frames, *(channel.frames if channel else ()))):
            outlet.resent, outlet.is_torn = now, True
            self._send_now(outlet)

    def tell_again(self) -> None:
        """Nobody knows what became of what was sent last: send every step so far, and every late closing."""
        for turn in self._closed:
            (self.outlets.get(turn) or self._open(turn)).is_closing = True
        for outlet in self.outlets.values():
            outlet.is_torn = True
            self._send_now(outlet)

    def hurry(self) -> bool:
        """Send at once what would wait a moment; whether anything is still to be sent."""
        self._tick()
        return bool(self._ready or self._signals or self._is_sending)

    def forget(self, now: float) -> None:
        """Forget turns that fell silent, whose driver may have gone without a word."""
        for turn, outlet in list(self.outlets.items()):
            if now - outlet.touched > QUIET:
                self.show(turn)
            channel = self._local.channels.get(turn)
            is_streaming = channel is not None and any(isinstance(frame, Delta) for frame in channel.frames)
            if outlet.is_closing:
                self._send_now(outlet)  # it failed before
            elif now - outlet.touched > (self._keep if is_streaming else QUIET):
                del self.outlets[turn]
                if channel is not None and not channel.readers:
                    del self._local.channels[turn]
        for turn in list(self.outlets)[:-OUTLETS]:
            del self.outlets[turn]
        for turn in [turn for turn, at in self._closed.items() if now - at > CLOSED_FOR]:
            del self._closed[turn]

    async def run(self) -> None:
        """Send what is ready. This is the only one who sends, so what a turn says stays in order."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            ready, self._ready = self._ready, []
            nc, self._is_sending = self._link.nc, True
            try:
                messages = [message for outlet in ready for message in self._messages(nc, outlet)]
                if nc is not None:
                    messages += self._signals_of_now()
                    for at in range(0, len(messages), TOGETHER):
                        await publish(nc, messages[at : at + TOGETHER])
            except Exception as error:  # whatever the client may raise; after a lost connection comes another
                self._link.complain("nothing can be sent", error)
                for outlet in ready:
                    outlet.tear()
                    outlet.is_ready = False
            self._is_sending = False

    def _open(self, turn: str) -> Outlet:
        outlet = self.outlets[turn] = Outlet(turn, f"{self._prefix}.d.{token(turn)}", self._loop.time())
        return outlet

    def _send_now(self, outlet: Outlet) -> None:
        outlet.is_ready = True
        self._ready.append(outlet)
        self._wake.set()

    def _tick_soon(self) -> None:
        if self._ticking is None:
            self._ticking = self._loop.call_later(FLUSH, self._tick)

    def _tick(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        self._ready += self._soon
        self._soon = []
        self._wake.set()

    def _messages(self, nc: Client | None, outlet: Outlet) -> Sequence[tuple[str, bytes]]:
        """What is to be sent of a turn now."""
        if not outlet.is_ready:
            return ()  # it stood in line twice
        outlet.is_ready = False
        now = outlet.touched = self._loop.time()
        frames = outlet.frames
        is_new = any(type(frame) is LogMoved for frame in frames)
        if must_show := bool(nc is None or outlet.is_torn or outlet.shown or is_new):
            self.show(outlet.turn)
        outlet.frames, outlet.shown = [], 0
        if nc is None:
            outlet.is_torn = True
            return ()
        if outlet.is_torn:
            outlet.is_torn, is_new = False, True
            channel = self._local.channels.get(outlet.turn)
            frames = [LOOK_AGAIN, *(channel.frames if channel is not None else ())]
        messages: list[tuple[str, bytes]] = []
        if frames and (merged := tidy(frames)):  # a message without any would close the turn
            if not must_show:
                if outlet.sent is not None:
                    self._local.publish(outlet.turn, outlet.sent[1])
                outlet.sent = frames, merged
            if is_new:
                outlet.since = now
            age = 0 if is_new else int((now - outlet.since) * 1000) + 1
            messages = [(outlet.subject, data) for data in pack(merged, age, nc.max_payload)]
        if outlet.is_closing:
            self.outlets.pop(outlet.turn, None)
            self._closed[outlet.turn] = now
            messages.append((outlet.subject, CLOSING))
        return messages

    def _signals_of_now(self) -> list[tuple[str, bytes]]:
        if not (self._signals or self._repeats):
            return []
        # Each twice, a moment apart: the subscription of a driver that has just begun may still be on its way.
        signals, repeats = self._signals, self._repeats
        self._signals, self._repeats = {}, signals
        if signals:
            self._tick_soon()
        subject = f"{self._prefix}.s."
        return [(subject + token(session), number) for session, number in (*signals.items(), *repeats.items())]
