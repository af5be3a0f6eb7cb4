"""One session that is followed: its log and the live edge of its open turns, read once, and shown to all who are here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from everturn.core.deltas import CallProgress, Delta, Frame, LogMoved
from everturn.core.events import (
    CommandDropped,
    Entry,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    Terminal,
    TurnStarted,
)
from everturn.core.following import SessionCursor, SessionReader, merge_shown
from everturn.core.ports import Bus, Store, Tail
from everturn.errors import UnknownSession
from everturn.server.guests import Guests, Shown
from everturn.server.live import Live
from everturn.server.sse import Sight, Why
from everturn.turn.follow import is_turn_over

log = logging.getLogger(__name__)

AGAIN = 0.5  # seconds before a bus that ended, or a store that failed, is asked again
CRUMBS = 64  # deltas of a step that are kept one by one for those who come


class Room:
    """A session as this node follows it."""

    def __init__(
        self, store: Store, bus: Bus, session: str, tenant: str, merge: float, gone: Callable[[], str]
    ) -> None:
        self.session, self.tenant = session, tenant
        self._store, self._bus, self._merge, self._gone = store, bus, merge, gone
        self.guests = 0
        self.is_closed = False
        self._loop = asyncio.get_running_loop()
        self._reader = SessionReader()
        self._guests = Guests()
        self._text: dict[str, list[Delta]] = {}  # turn -> what was shown of its step
        self._ears: dict[str, asyncio.Task[None]] = {}  # channel -> who listens to it; the session's own is ""
        self._pending: list[Delta | CallProgress] = []
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0.0  # when something was shown
        self._is_wanted = False  # to read the log
        self._reading: asyncio.Task[None] | None = None
        self._dropping: asyncio.Task[None] | None = None
        self.failure: Exception | None = None
        self.opened = asyncio.Event()
        # Owned here, and by nobody who comes: that one of them leaves must not keep the others out.
        self._opening = self._loop.create_task(self._open())

    @property
    def seq(self) -> int:
        """How far the log was shown."""
        return self._reader.seq

    @property
    def steps(self) -> Mapping[str, int]:
        """The steps that stream: turn -> where its step began."""
        return self._reader.steps

    def is_open(self, turn: str = "") -> bool:
        """Whether a turn, or any, is under way, as far as is known here."""
        return turn in self._ears if turn else len(self._ears) > 1

    async def _open(self) -> None:
        try:
            # First the ear, then the log, then the open turns: whatever happens meanwhile is heard, or read at the end.
            self._hear("")
            with self._store.within(self.tenant):
                self._reader = SessionReader(SessionCursor(await self._store.head(self.session)))
                for turn in await self._store.open_turns(self.session):
                    self._hear(turn)
                    self._reader.learn(await self._store.events(self.session, 0, turn))
                self._show(await self._store.events(self.session, self._reader.seq), 0)
        except Exception as error:
            self.failure = error
            self.close()
        finally:
            self.opened.set()
            if self._is_wanted:
                self.look()

    # Listening ---------------------------------------------------------------------------------------------------

    def _hear(self, turn: str) -> None:
        if turn not in self._ears and not self.is_closed:
            tail = self._bus.tail(turn or self.session)
            self._ears[turn] = self._loop.create_task(self._listen(turn, tail))

    async def _listen(self, turn: str, tail: Tail) -> None:
        while True:
            try:
                async for frames in tail:
                    self._take(frames)
            except Exception:
                log.exception("session %s is not heard for a moment", self.session)
            finally:
                await tail.aclose()
            self.look()  # the bus says that it is over; only the log knows
            await asyncio.sleep(AGAIN)
            tail = self._bus.tail(turn or self.session)

    def _take(self, frames: Sequence[Frame]) -> None:
        pending = self._pending
        for frame in frames:
            if isinstance(frame, Delta):  # first, for nearly all of them are
                pending.append(frame)
            elif isinstance(frame, LogMoved):
                if frame.seq > self._reader.seq:
                    self.look()
            elif isinstance(frame, CallProgress):
                pending.append(frame)
        if not frames:  # somebody knocked: nobody may be driving any more
            self._see_who_is_lost()
        if pending and self._timer is None and self._reading is None and self.opened.is_set():
            # The first piece after a silence goes at once, with what comes in the same moment.
            wait = max(0.0, self._last + self._merge - self._loop.time())
            self._timer = self._loop.call_later(wait, self._flush)

    def look(self) -> None:
        """Read the log, as soon as it is not being read."""
        self._is_wanted = True
        if self._reading is None and not self.is_closed and self.opened.is_set():
            self._reading = self._loop.create_task(self._read())

    async def _read(self) -> None:
        try:
            while self._is_wanted and not self.is_closed:
                self._is_wanted = False
                before = len(self._pending)
                with self._store.within(self.tenant):
                    entries = await self._store.events(self.session, self._reader.seq)
                self._show(entries, before)
        except UnknownSession:
            self.end("erased")
        except Exception as error:
            log.warning("the log of session %s cannot be read, and is read again: %r", self.session, error)
            self._loop.call_later(AGAIN, self.look)
        finally:
            self._reading = None

    # Showing -----------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        self._timer = None
        if self._reading is None:
            self._show((), 0)

    def _show(self, entries: Sequence[Entry], before: int) -> None:
        """Show what is pending and what was read; `before` of what is pending was there before the log was read."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pending, self._pending = self._pending, []
        seq = self._reader.seq
        ahead = [(at, one) for at, one in enumerate(pending) if isinstance(one, Delta) and one.seq > seq]
        items = self._new(pending if not ahead else [one for one in pending if _seq(one) <= seq])
        is_dropped = False
        for entry in entries:
            for _ in self._reader.entry(entry):
                pass  # what was missed of a step is made up by each sight for itself
            items.append(entry)
            self._forget(entry)
            is_dropped = is_dropped or isinstance(entry.event, CommandDropped)
        self._follow_turns(entries)
        items += self._new([one for _, one in ahead if one.seq <= self._reader.seq])
        # A delta comes after the entry that began its step was written: one that was there before the log was read,
        # and whose step was not, is of no step.
        self._pending = [one for at, one in ahead if one.seq > self._reader.seq and at >= before]
        if self._pending:
            self.look()
        if items:
            self._last = self._loop.time()
            self._guests.show(items)
        if is_dropped:
            self._dropping = self._loop.create_task(self._see_what_was_dropped())

    def _new(self, pending: Sequence[Delta | CallProgress]) -> list[Shown]:
        items: list[Shown] = []
        for one in merge_shown(pending):
            if isinstance(one, CallProgress):
                items.append(one)
            elif (piece := self._reader.delta(one)) is not None:
                items.append(piece)
                kept = self._text.setdefault(piece.turn, [])
                kept.append(piece)
                if len(kept) > CRUMBS:
                    self._text[piece.turn] = [each for each in merge_shown(kept) if isinstance(each, Delta)]
        return items

    def _forget(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, StepRestarted | StepFinished | StepInterrupted | Terminal):
            self._text.pop(event.turn, None)

    def _follow_turns(self, entries: Sequence[Entry]) -> None:
        begun: dict[str, None] = {}
        for entry in entries:
            event = entry.event
            if isinstance(event, TurnStarted):
                begun[event.turn] = None
            elif isinstance(event, Terminal):
                begun.pop(event.turn, None)
                if (ear := self._ears.pop(event.turn, None)) is not None:
                    ear.cancel()
        for turn in begun:
            self._hear(turn)

    # Who is here -------------------------------------------------------------------------------------------------

    def attach(self, live: Live, sight: Sight) -> None:
        """Let a reader have what comes from now on. It has read the log as far as it was shown here."""
        if isinstance(sight.reader, SessionReader) and sight.reader.seq <= self.seq:  # else it knows better
            sight.reader.begun(self.steps)
        data = b"".join([sight.take(delta) for deltas in self._text.values() for delta in deltas])
        if data:
            live.push(data)
        if self.is_closed or (self._gone() and (sight.turn or self.is_open())):
            live.end("lost")
        elif sight.is_over:
            live.end("over")
        else:
            self._guests.place(live, sight)

    def detach(self, live: Live) -> None:
        """A reader has left."""
        self._guests.remove(live)

    def end(self, why: Why) -> None:
        """End all streams."""
        self._guests.end(why)

    def _see_who_is_lost(self) -> None:
        if not self._gone():
            return
        is_open = self.is_open()
        for live, turn in self._guests.all():
            if is_open or turn:
                live.end("lost")

    async def _see_what_was_dropped(self) -> None:
        """End the streams of turns that will never begin."""
        turns = {turn for _, turn in self._guests.all() if turn and not self.is_open(turn)}
        for turn in turns:
            with suppress(Exception):  # who cannot be told now is when they come again
                if await is_turn_over(self._store, self.session, turn):
                    for live, of in self._guests.all():
                        if of == turn:
                            live.end("over")

    def close(self) -> None:
        """Follow it no longer."""
        self.is_closed = True
        for task in (*self._ears.values(), self._reading, self._dropping):
            if task is not None:
                task.cancel()
        if not self._opening.done() and self._opening is not asyncio.current_task():
            self._opening.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._ears.clear()
        self.end("lost")


def _seq(one: Delta | CallProgress) -> int:
    return one.seq if isinstance(one, Delta) else 0
