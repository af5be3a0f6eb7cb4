"""Session broadcast: reads one session's log and the live deltas of its open turns once, and sends them to all subscribers.

The problem: many clients follow one session, and each needs every log entry and every delta exactly once and in order. The
log is durable and ordered by `seq`; deltas come from the bus, are not stored, and may arrive before or after the log entry
that began their step. Reading the log once per client would cost the store as much as there are clients.

So a broadcast has one `SessionReader`, one bus subscription for the session and one for each open turn. Deltas wait in
`_pending` for at most `merge` seconds and are sent with the log entries that were read meanwhile. Invariant: `_show` never
sends a delta before the log entry that began its step. A delta with a `seq` ahead of the log is kept until the log was
read that far; if the log read after its arrival does not have its step, it is dropped. The text of unfinished steps is
kept in `_text` for clients that join in the middle of a step. `StreamHub.join` relies on `seq`: a client that has caught up
to it without awaiting in between can be attached without a gap.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from everturn.core.deltas import CallProgress, Delta, Frame, LogAdvanced
from everturn.core.events import (
    CommandDropped,
    Entry,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    Terminal,
    TurnStarted,
)
from everturn.core.ports import Bus, LiveTail
from everturn.core.projections.session_reader import SessionCursor, SessionReader, merge_deltas
from everturn.core.store_ports import Store
from everturn.errors import UnknownSession
from everturn.running.follow import is_turn_over
from everturn.server.streams.response import EventStreamResponse
from everturn.server.streams.sse import EndReason, Subscriber
from everturn.server.streams.subscribers import Shown, Subscribers

log = logging.getLogger(__name__)

RETRY_DELAY = 0.5  # seconds before a bus subscription that ended, or a store that failed, is tried again
UNMERGED_DELTAS = 64  # deltas of a step that are kept unmerged for clients that join


class SessionBroadcast:
    """Reads one session's log and live deltas once, and fans them out to every subscriber on this node."""

    def __init__(
        self, store: Store, bus: Bus, session: str, tenant: str, merge: float, end_reason: Callable[[], str]
    ) -> None:
        self.session, self.tenant = session, tenant
        self._store, self._bus, self._merge, self._end_reason = store, bus, merge, end_reason
        self.subscriber_count = 0
        self.is_closed = False
        self._loop = asyncio.get_running_loop()
        self._reader = SessionReader()
        self._subscribers = Subscribers()
        self._text: dict[str, list[Delta]] = {}  # turn -> the text of its current step that was sent
        self._listeners: dict[
            str, asyncio.Task[None]
        ] = {}  # channel (a turn, or "" for the session) -> the task that listens to it
        self._pending: list[Delta | CallProgress] = []
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0.0  # when something was last sent
        self._is_read_wanted = False  # whether the log is to be read
        self._reading: asyncio.Task[None] | None = None
        self._dropping: asyncio.Task[None] | None = None
        self.failure: Exception | None = None
        self.opened = asyncio.Event()
        # Owned by the broadcast, not by the client that opened it: a client that leaves must not affect the others.
        self._opening = self._loop.create_task(self._open())

    @property
    def seq(self) -> int:
        """The position up to which the log was sent."""
        return self._reader.seq

    @property
    def steps(self) -> Mapping[str, int]:
        """The steps that stream: turn -> the `seq` at which its step began."""
        return self._reader.steps

    def is_open(self, turn: str = "") -> bool:
        """Whether a turn, or any turn, is running, as far as this node knows."""
        return turn in self._listeners if turn else len(self._listeners) > 1

    async def _open(self) -> None:
        try:
            # First the bus, then the log, then the open turns: what happens meanwhile is received, or read at the end.
            self._subscribe("")
            with self._store.restrict_to_tenant(self.tenant):
                self._reader = SessionReader(SessionCursor(await self._store.head(self.session)))
                for turn in await self._store.open_turns(self.session):
                    self._subscribe(turn)
                    self._reader.learn_from(await self._store.events(self.session, 0, turn))
                self._show(await self._store.events(self.session, self._reader.seq), 0)
        except Exception as error:
            self.failure = error
            self.close()
        finally:
            self.opened.set()
            if self._is_read_wanted:
                self.read_log()

    # Bus ---------------------------------------------------------------------------------------------------------

    def _subscribe(self, turn: str) -> None:
        if turn not in self._listeners and not self.is_closed:
            tail = self._bus.tail(turn or self.session)
            self._listeners[turn] = self._loop.create_task(self._listen(turn, tail))

    async def _listen(self, turn: str, tail: LiveTail) -> None:
        while True:
            try:
                async for frames in tail:
                    self._take(frames)
            except Exception:
                log.exception("the live stream of session %s is interrupted", self.session)
            finally:
                await tail.aclose()
            self.read_log()  # the subscription has ended; only the log knows whether the turn has
            await asyncio.sleep(RETRY_DELAY)
            tail = self._bus.tail(turn or self.session)

    def _take(self, frames: Sequence[Frame]) -> None:
        pending = self._pending
        for frame in frames:
            if isinstance(frame, Delta):  # first, for nearly all of them are
                pending.append(frame)
            elif isinstance(frame, LogAdvanced):
                if frame.seq > self._reader.seq:
                    self.read_log()
            elif isinstance(frame, CallProgress):
                pending.append(frame)
        if not frames:  # an empty batch is a wake-up: the driver may be lost
            self._end_lost_streams()
        if pending and self._timer is None and self._reading is None and self.opened.is_set():
            # The first delta after a silence is sent at once, with what arrives in the same moment.
            wait = max(0.0, self._last + self._merge - self._loop.time())
            self._timer = self._loop.call_later(wait, self._flush)

    def read_log(self) -> None:
        """Read the log, as soon as the current reading is done."""
        self._is_read_wanted = True
        if self._reading is None and not self.is_closed and self.opened.is_set():
            self._reading = self._loop.create_task(self._read())

    async def _read(self) -> None:
        try:
            while self._is_read_wanted and not self.is_closed:
                self._is_read_wanted = False
                before = len(self._pending)
                with self._store.restrict_to_tenant(self.tenant):
                    entries = await self._store.events(self.session, self._reader.seq)
                self._show(entries, before)
        except UnknownSession:
            self.end("erased")
        except Exception as error:
            log.warning("the log of session %s cannot be read; trying again: %r", self.session, error)
            self._loop.call_later(RETRY_DELAY, self.read_log)
        finally:
            self._reading = None

    # Sending -----------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        self._timer = None
        if self._reading is None:
            self._show((), 0)

    def _show(self, entries: Sequence[Entry], before: int) -> None:
        """Send pending deltas and log entries; the first `before` pending deltas were there before the log was read."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pending, self._pending = self._pending, []
        seq = self._reader.seq
        ahead = [(at, item) for at, item in enumerate(pending) if isinstance(item, Delta) and item.seq > seq]
        items = self._new(pending if not ahead else [item for item in pending if _seq_of(item) <= seq])
        is_dropped = False
        for entry in entries:
            for _ in self._reader.entry(entry):
                pass  # each subscriber fills in for itself what it has missed of a step
            items.append(entry)
            self._forget(entry)
            is_dropped = is_dropped or isinstance(entry.event, CommandDropped)
        self._follow_turns(entries)
        items += self._new([item for _, item in ahead if item.seq <= self._reader.seq])
        # A delta arrives after the entry that began its step was written. So if it arrived before the log was read, and the
        # log does not have its step, it belongs to no step.
        self._pending = [item for at, item in ahead if item.seq > self._reader.seq and at >= before]
        if self._pending:
            self.read_log()
        if items:
            self._last = self._loop.time()
            self._subscribers.publish(items)
        if is_dropped:
            self._dropping = self._loop.create_task(self._end_dropped_turns())

    def _new(self, pending: Sequence[Delta | CallProgress]) -> list[Shown]:
        items: list[Shown] = []
        for item in merge_deltas(pending):
            if isinstance(item, CallProgress):
                items.append(item)
            elif (piece := self._reader.delta(item)) is not None:
                items.append(piece)
                shown = self._text.setdefault(piece.turn, [])
                shown.append(piece)
                if len(shown) > UNMERGED_DELTAS:
                    self._text[piece.turn] = [part for part in merge_deltas(shown) if isinstance(part, Delta)]
        return items

    def _forget(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, StepRestarted | StepFinished | StepInterrupted | Terminal):
            self._text.pop(event.turn, None)

    def _follow_turns(self, entries: Sequence[Entry]) -> None:
        started: dict[str, None] = {}
        for entry in entries:
            event = entry.event
            if isinstance(event, TurnStarted):
                started[event.turn] = None
            elif isinstance(event, Terminal):
                started.pop(event.turn, None)
                if (listener := self._listeners.pop(event.turn, None)) is not None:
                    listener.cancel()
        for turn in started:
            self._subscribe(turn)

    # Subscribers -------------------------------------------------------------------------------------------------

    def attach(self, stream: EventStreamResponse, subscriber: Subscriber) -> None:
        """Add a stream. It has caught up with the log as far as this broadcast has sent it."""
        if (
            isinstance(subscriber.reader, SessionReader) and subscriber.reader.seq <= self.seq
        ):  # otherwise the client knows more
            subscriber.reader.add_streaming_steps(self.steps)
        data = b"".join([subscriber.encode(delta) for deltas in self._text.values() for delta in deltas])
        if data:
            stream.push(data)
        if self.is_closed or (self._end_reason() and (subscriber.turn or self.is_open())):
            stream.end("lost")
        elif subscriber.is_over:
            stream.end("over")
        else:
            self._subscribers.add(stream, subscriber)

    def detach(self, stream: EventStreamResponse) -> None:
        """Remove a stream that has closed."""
        self._subscribers.remove(stream)

    def end(self, why: EndReason) -> None:
        """End all streams."""
        self._subscribers.end(why)

    def _end_lost_streams(self) -> None:
        if not self._end_reason():
            return
        is_open = self.is_open()
        for stream, turn in self._subscribers.all():
            if is_open or turn:
                stream.end("lost")

    async def _end_dropped_turns(self) -> None:
        """End the streams of turns that were dropped from the queue and will never begin."""
        turns = {turn for _, turn in self._subscribers.all() if turn and not self.is_open(turn)}
        for turn in turns:
            with suppress(Exception):  # a client that cannot be informed now learns it when it reconnects
                if await is_turn_over(self._store, self.session, turn):
                    for stream, stream_turn in self._subscribers.all():
                        if stream_turn == turn:
                            stream.end("over")

    def close(self) -> None:
        """Stop following the session."""
        self.is_closed = True
        for task in (*self._listeners.values(), self._reading, self._dropping):
            if task is not None:
                task.cancel()
        if not self._opening.done() and self._opening is not asyncio.current_task():
            self._opening.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._listeners.clear()
        self.end("lost")


def _seq_of(item: Delta | CallProgress) -> int:
    return item.seq if isinstance(item, Delta) else 0
