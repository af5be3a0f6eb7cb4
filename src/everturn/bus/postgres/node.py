"""Node of the PostgreSQL bus: what a process publishes to the others, and hears of them.

PostgreSQL keeps no notifications, so a reader that comes in the middle of a step has missed its beginning. It asks, and
the process that drives the turn sends the step so far whole. Until that comes, what is heard of the turn would be text
after a gap, and is dropped. A listener that has just been added may have missed the log's last move as well: its readers
check the log once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any

from everturn.bus.memory import MemoryBus
from everturn.bus.postgres.sender import PREFIX, NotificationSender
from everturn.bus.remote.codec import age_of, announcement_subject, resend_subject, subject_token, unpack
from everturn.bus.remote.inbound import InboundFrames, InboundTurn
from everturn.bus.remote.publisher import FramePublisher
from everturn.core.deltas import Delta, DriverGone
from everturn.errors import UnreadableLog
from everturn.postgres.link import LINK_ERRORS, PostgresLink

log = logging.getLogger(__name__)

KEEP = 900.0  # seconds for which a streaming turn is remembered after its last frame
IDLE_CHECK_INTERVAL = 2.0  # seconds between two sweeps for idle turns
ANSWER_WITHIN = 1.0  # seconds for the step so far; after that, what is heard is shown
REQUEST_MERGE = 0.01  # seconds over which requests for steps are merged
KNOWN_SIGNALS = 1024  # signals that are recognised when they come a second time
PING = "ping"

_CHECK_LOG = (DriverGone(""),)  # wakes the readers in this process, and shows them nothing


def begins_step(message: bytes) -> bool:
    """Whether nothing of a step comes before this message."""
    try:
        if not age_of(message):
            return True
        first = next(iter(unpack(message)), None)
    except UnreadableLog:
        return False
    return isinstance(first, Delta) and first.part == 0 and first.offset == 0


class PostgresNode:
    """The bus of a process, in its event loop."""

    def __init__(self, link: PostgresLink) -> None:
        self._link, self.local = link, MemoryBus()
        self.sender = NotificationSender(link)
        self._inbound = InboundFrames(self.local, self.end)
        self.publisher = FramePublisher(
            self.sender, self.local, PREFIX, KEEP, self._inbound.inlets, resend_interval=0.0
        )
        self._by_subject: dict[str, InboundTurn] = {}
        self._channels: Counter[str] = Counter()  # channel -> turns of it that are followed here
        self._listening: dict[str, asyncio.Task[None]] = {}
        self._requests: dict[str, None] = {}  # turns whose step so far is wanted
        self._known: deque[str] = deque(maxlen=KNOWN_SIGNALS)
        self._pings: dict[str, asyncio.Event] = {}
        self._numbers = count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        link.open()
        self._start(self.publisher.run())
        self._start(self._drop_idle_turns())
        self._start(self._begin())

    async def _begin(self) -> None:
        await self._link.listen(self.sender.signals, self._hear_signal)
        self._link.on_up(self._reconnected)

    async def _reconnected(self) -> None:
        """After a new connection anything may have been missed."""
        for session in list(self.local.listeners):
            self.local.signal(session)
        for inbound in list(self._inbound.inlets.values()):
            self._ask(inbound)
            self.local.publish(inbound.turn, _CHECK_LOG)
        self.publisher.resend_all()

    # Readers ----------------------------------------------------------------------------------------------------------

    def follow(self, turn: str) -> InboundTurn:
        """Add a reader; the first one of a turn listens to its channel."""
        inbound = self._inbound.inlets.get(turn)
        if inbound is None:
            inbound = InboundTurn(turn, f"{PREFIX}.d.{subject_token(turn)}")
            self._inbound.inlets[turn] = self._by_subject[inbound.subject] = inbound
            channel = self.sender.channel_of(inbound.subject)
            self._channels[channel] += 1
            self._start(self._listen(inbound, channel))
        inbound.readers += 1
        return inbound

    def remove_reader(self, inbound: InboundTurn) -> None:
        """Remove a reader; with the last one of a turn its frames are not wanted any more."""
        inbound.readers -= 1
        if not inbound.readers and self._inbound.inlets.get(inbound.turn) is inbound:
            self.end(inbound.turn)
            if inbound.turn not in self.publisher.outlets:
                self.local.channels.pop(inbound.turn, None)  # no more frames will come

    def end(self, turn: str) -> None:
        """Stop following a turn."""
        inbound = self._inbound.inlets.pop(turn, None)
        if inbound is None:
            return
        self._by_subject.pop(inbound.subject, None)
        channel = self.sender.channel_of(inbound.subject)
        self._channels[channel] -= 1
        if not self._channels[channel]:
            del self._channels[channel]
            self._start(self._unlisten(channel))

    async def _listen(self, inbound: InboundTurn, channel: str) -> None:
        """Listen to the channel of a turn, and make up for what was missed until then."""
        if channel not in self._listening:
            self._listening[channel] = self._start(self._link.listen(channel, self._hear_frames))
        listening = self._listening[channel]
        if is_new := not listening.done():
            await asyncio.wait({listening})
        if self._inbound.inlets.get(inbound.turn) is not inbound:
            return
        if (local := self.local.channels.get(inbound.turn)) is not None:
            inbound.duplicates.fresh(local.frames)  # if it is driven here, too, readers have these already
        self._ask(inbound)
        if is_new and inbound.turn not in self.publisher.outlets:
            self.local.publish(inbound.turn, _CHECK_LOG)
        inbound.nc = self._link

    async def _unlisten(self, channel: str) -> None:
        if (listening := self._listening.get(channel)) is not None:
            await asyncio.wait({listening})
        if channel not in self._channels and self._listening.pop(channel, None) is not None:
            await self._link.unlisten(channel)
            if channel in self._channels:  # somebody came meanwhile
                self._listening[channel] = self._start(self._link.listen(channel, self._hear_frames))

    def _ask(self, inbound: InboundTurn) -> None:
        """Ask the driver of a turn for the step so far; until it answers, text after a gap is dropped."""
        if inbound.turn in self.publisher.outlets:
            return
        inbound.waiting = []
        self._loop.call_later(ANSWER_WITHIN, self._stop_waiting, inbound)
        if not self._requests:
            self._loop.call_later(REQUEST_MERGE, lambda: self._start(self._send_requests()))
        self._requests[inbound.turn] = None

    async def _send_requests(self) -> None:
        turns, self._requests = list(self._requests), {}
        if self._link.is_up:
            await self.sender.send([(resend_subject(PREFIX), turn.encode()) for turn in turns])

    def _stop_waiting(self, inbound: InboundTurn) -> None:
        inbound.waiting = None

    def _hear_frames(self, payload: str) -> None:
        node, subject, data = (*payload.split(" ", 2), "", "")[:3]
        inbound = self._by_subject.get(subject)
        if inbound is None or node == self.sender.node:
            return
        message = data.encode()
        if inbound.waiting is not None:
            if not begins_step(message):
                return
            inbound.waiting = None
        self._inbound.take(inbound, message)

    # Announcements ----------------------------------------------------------------------------------------------------

    def hear(self, topic: str, on_message: Callable[[bytes], None]) -> Callable[[], None]:
        """Hear the announcements of a topic; the first one has this process listen to those of all topics."""
        if self.sender.announcements not in self._listening:
            listening = self._link.listen(self.sender.announcements, self._hear_announcement)
            self._listening[self.sender.announcements] = self._start(listening)
        return self.local.hear(topic, on_message)

    def _hear_announcement(self, payload: str) -> None:
        node, subject, data = (*payload.split(" ", 2), "", "")[:3]
        if node == self.sender.node:
            return
        for topic in [topic for topic in self.local.topics if announcement_subject(PREFIX, topic) == subject]:
            self.local.announce(topic, data.encode())

    # Drivers ----------------------------------------------------------------------------------------------------------

    def _hear_signal(self, payload: str) -> None:
        node, subject, data = (*payload.split(" ", 2), "", "")[:3]
        if subject == PING:
            if (event := self._pings.get(data)) is not None:
                event.set()
        elif node == self.sender.node:
            return
        elif subject == resend_subject(PREFIX):
            self.publisher.resend(data)
        elif data not in self._known:
            self._known.append(data)
            token = subject.removeprefix(f"{PREFIX}.s.")
            for session in [session for session in self.local.listeners if subject_token(session) == token]:
                self.local.signal(session)

    # The rest ---------------------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Wait until this process has heard everything that was notified so far, and the server knows what it hears."""
        await self._link.was_up.wait()
        while (  # noqa: ASYNC110 - only tests and the doctor wait for this
            self.publisher.flush_now()
            or self._requests
            or any(inbound.nc is None for inbound in self._inbound.inlets.values())
            or not all(listening.done() for listening in self._listening.values())
        ):
            await asyncio.sleep(0.002)
        await self.ping()

    async def ping(self) -> None:
        """Notify this process itself, and wait until it was heard."""
        name = f"{self.sender.node}.{next(self._numbers)}"
        event = self._pings[name] = asyncio.Event()
        try:
            await self._link.notify([(self.sender.signals, f"{self.sender.node} {PING} {name}")])
            await event.wait()
        finally:
            del self._pings[name]

    async def _drop_idle_turns(self) -> None:
        while True:
            await asyncio.sleep(IDLE_CHECK_INTERVAL)
            self.publisher.drop_idle(self._loop.time())

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # A connection was lost while it was used; the next one makes up for it.
            level = logging.DEBUG if isinstance(error, LINK_ERRORS) else logging.ERROR
            log.log(level, "PostgreSQL: something of the bus was not finished: %r", error)

    async def aclose(self) -> None:
        """Cancel all tasks, end the readers here, and close the connections."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for turn in list(self.local.channels):
            self.local.close(turn)
        await self._link.aclose()
