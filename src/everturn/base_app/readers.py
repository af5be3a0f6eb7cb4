"""Readers of sessions in this process: they follow turns, or wait until a command is carried out.

The bus tells them of every append, and may lose the message: so each of them is also in the log poll. When this process
no longer drives a session, it tells them why.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager

from everturn.core.commands import AnyCommand
from everturn.core.deltas import DriverGone, TurnItem, TurnReader
from everturn.core.events import CommandDropped
from everturn.core.ports import Bus, LiveTail
from everturn.core.store_ports import Store
from everturn.errors import CommandRefused, DriverLost
from everturn.running.follow import NUDGE_FRAMES, RESUBSCRIBE_PAUSE, follow_turn
from everturn.running.log_poll import LogPoll, LogReader


class SessionReaders:
    """The readers of sessions in this process, and why sessions are not driven here any more."""

    def __init__(self, store: Store, bus: Bus) -> None:
        self._store, self._bus = store, bus
        self.log_poll = LogPoll(store)
        self._followed: Counter[tuple[str, str]] = Counter()  # (session, turn)
        self._waiting: Counter[str] = Counter()  # session -> how many wait there for a command
        self._end_reasons: dict[str, str] = {}  # session -> why it is not driven here; "" is for all sessions

    def explain_not_driven(self, session: str) -> str:
        """Why this process no longer drives a session; "" if it does, or if the reason is unknown."""
        return self._end_reasons.get(session) or self._end_reasons.get("", "")

    @property
    def is_closing(self) -> bool:
        """Whether no session will be driven here any more."""
        return "" in self._end_reasons

    def resume(self, session: str) -> None:
        """Note that a session is about to be driven here again."""
        self._end_reasons.pop(session, None)

    def report_lost(self, session: str, error: BaseException) -> None:
        """Note that a session is no longer driven here, and tell its readers."""
        self._end_reasons[session] = f"session {session} is no longer driven here: {error}"
        self._notify(session, self._end_reasons[session])

    def close(self, reason: str) -> None:
        """Note that no session will be driven here any more; `notify_all` tells the readers."""
        self._end_reasons[""] = reason
        self.log_poll.close()

    def notify_all(self) -> None:
        """Tell all readers why no session is driven here any more."""
        for session in {*(where for where, _ in self._followed), *self._waiting}:
            self._notify(session, self._end_reasons[""])

    def _notify(self, session: str, text: str) -> None:
        turns = [turn for where, turn in self._followed if where == session]
        for channel in (session, *turns):
            self._bus.publish(channel, (DriverGone(text),))

    def count(self, session: str, turn: str) -> int:
        """The number of readers of a turn in this process."""
        return self._followed[session, turn]

    def follow(self, session: str, reader: TurnReader) -> AsyncGenerator[TurnItem, None]:
        """Show a turn from the reader's position until its end."""
        within = self._counted(session, reader)
        return follow_turn(self._store, self._bus, session, reader, lambda: self.explain_not_driven(session), within)

    @contextmanager
    def _counted(self, session: str, reader: TurnReader) -> Generator[None]:
        """Count a reader of a turn, and make it check the log."""
        key = (session, reader.turn)
        self._followed[key] += 1
        watch = self._watch(session, reader.turn, lambda: reader.seq)
        try:
            yield
        finally:
            watch.close()
            self._followed[key] -= 1
            if not self._followed[key]:
                del self._followed[key]

    def _watch(self, session: str, channel: str, position: Callable[[], int]) -> LogReader:
        """Make the readers of a channel in this process check the log, if it has grown without a notification."""
        return self.log_poll.watch(session, position, lambda: self._bus.publish(channel, NUDGE_FRAMES))

    async def wait_until_carried_out(self, command: AnyCommand, after: int) -> None:
        """Wait until a driver has carried out a command that starts no turn, admitted when the log was at `after`.

        Raises:
            CommandRefused: the command was dropped; nothing was changed.
            DriverLost: this process no longer drives the session.
        """
        session, key = command.session, command.key
        tail = self._bus.tail(session)
        self._waiting[session] += 1
        watch = self._watch(session, session, lambda: after)
        try:
            while any(waiting.key == key for waiting in await self._store.inbox(session)):
                if why := self.explain_not_driven(session):
                    raise DriverLost(why)
                try:
                    await anext(tail)
                except StopAsyncIteration:  # only the inbox decides
                    await tail.aclose()
                    await asyncio.sleep(RESUBSCRIBE_PAUSE)
                    tail = self._bus.tail(session)
        finally:
            self._waiting[session] -= 1
            self._waiting = +self._waiting
            watch.close()
            await tail.aclose()
        if (reason := await self.find_drop_reason(session, key, after)) is not None:
            raise CommandRefused(reason)

    async def watch_turns(self, *turns: tuple[str, str]) -> AsyncGenerator[None, None]:
        """Yield once, and again whenever something may have happened to one of these turns, each with its session."""
        noticed = asyncio.Event()
        tails = [self._bus.tail(turn) for _, turn in turns]
        tasks = [asyncio.create_task(_notice(tail, noticed)) for tail in tails]
        watches = [self._watch(session, turn, lambda: -1) for session, turn in turns]
        try:
            while True:
                noticed.clear()
                yield
                await noticed.wait()
        finally:
            for watch in watches:
                watch.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def find_drop_reason(self, session: str, key: str, after: int = 0) -> str | None:
        """Why a command was dropped after position `after`, if it was."""
        for entry in reversed(await self._store.indexed_events(session, "command", key)):
            if entry.seq > after and isinstance(entry.event, CommandDropped):
                return entry.event.reason
        return None


async def _notice(tail: LiveTail, noticed: asyncio.Event) -> None:
    """Set an event whenever a turn has live frames, and when they end."""
    try:
        async for _ in tail:
            noticed.set()
        noticed.set()
    finally:
        await tail.aclose()
