"""Sessions that are followed on this node. Each has a room, which reads its log and its bus once for all readers.

A reader comes with a cursor, catches up with the log on its own (`Hub.join`), and is then shown what everybody is shown.
Those who are at the same place are given the same bytes; one who is ahead, or behind, or speaks another protocol has a
sight of its own until it is where the others are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from everturn.core.deltas import Reader
from everturn.core.events import Entry
from everturn.core.following import SessionReader
from everturn.core.ports import Bus, Store
from everturn.errors import EverturnError, UnknownSession
from everturn.server.live import CATCH_UP, Live
from everturn.server.room import Room
from everturn.server.sse import Sight, Why
from everturn.turn.follow import is_turn_over
from everturn.turn.log_poll import LogPoll, Watch

log = logging.getLogger(__name__)

AT_ONCE = 32  # logs that are read at a time by those who catch up
LINGER = 2.0  # seconds a room stays when everybody has left: most come back


class Hub:
    """The rooms of a node."""

    def __init__(self, store: Store, bus: Bus, poll: LogPoll, merge: float, gone: Callable[[str], str]) -> None:
        self.store, self._bus, self._poll, self._merge, self._gone = store, bus, poll, merge, gone
        self.rooms: dict[str, Room] = {}
        self._reading = asyncio.Semaphore(AT_ONCE)
        self._watches: dict[Room, Watch] = {}

    async def join(self, live: Live, session: str, tenant: str, sight: Sight) -> None:
        """Show a reader what it has not seen, and let it have what comes from now on.

        Raises:
            Ended: the stream was ended meanwhile.
        """
        room = self._enter(session, tenant)
        live.on_leave = lambda: self._leave(room, live)
        try:
            await room.opened.wait()
            if room.failure is not None:
                raise room.failure
            await self._check(room, sight)
            while not sight.is_over:
                is_over = await self._is_over(room, sight)  # before the log is read, which then says it all
                to = room.seq
                await self._catch_up(live, room, sight)
                if is_over:
                    break
                if to >= room.seq:  # nothing was awaited since, so nothing falls between
                    room.attach(live, sight)
                    return
            live.end("over")
        except UnknownSession:
            live.end("erased")
        except EverturnError as error:
            log.warning("session %s cannot be followed now: %s", session, error)
            live.end("lost")

    async def _check(self, room: Room, sight: Sight) -> None:
        """Let a cursor that is of no place here be the beginning."""
        reader = sight.reader
        if isinstance(reader, SessionReader):
            if reader.seq > room.seq and reader.seq > await self.store.head(room.session):
                sight.reader = SessionReader()
        elif reader.seq:
            entries = await self._events(room, reader.seq - 1, sight.turn)
            if not entries or entries[0].seq != reader.seq:
                sight.reader = Reader(sight.turn)

    async def _catch_up(self, live: Live, room: Room, sight: Sight) -> None:
        """Show what the log has and this reader has not seen, as fast as it takes it."""
        reader = sight.reader
        if isinstance(reader, SessionReader):
            entries = await self._events(room, reader.after)
            reader.learn(entries)
            if reader.seq <= room.seq:
                reader.begun(room.steps)
            else:  # what streams here may have ended where this reader has been: only the log knows
                for turn in set(room.steps) - set(reader.steps):
                    reader.learn(await self._events(room, 0, turn))
            for turn in reader.unknown(entries):
                reader.learn(await self._events(room, 0, turn))
        else:
            entries = await self._events(room, reader.seq, sight.turn)
        data: list[bytes] = []
        size = 0
        for entry in entries:
            data.append(sight.take(entry))
            size += len(data[-1])
            if size > CATCH_UP:
                await live.write(b"".join(data))
                data, size = [], 0
        if size:
            await live.write(b"".join(data))

    async def _events(self, room: Room, after: int, turn: str | None = None) -> list[Entry]:
        async with self._reading:
            with self.store.within(room.tenant):
                return await self.store.events(room.session, after, turn)

    async def _is_over(self, room: Room, sight: Sight) -> bool:
        if not sight.turn or room.is_open(sight.turn):
            return False
        return await is_turn_over(self.store, room.session, sight.turn)

    def _enter(self, session: str, tenant: str) -> Room:
        room = self.rooms.get(session)
        if room is None or room.is_closed:
            room = Room(self.store, self._bus, session, tenant, self._merge, lambda: self._gone(session))
            self.rooms[session] = room
            self._watches[room] = self._poll.watch(session, lambda: room.seq, room.look)
        room.guests += 1
        return room

    def _leave(self, room: Room, live: Live) -> None:
        room.detach(live)
        room.guests -= 1
        if not room.guests:
            asyncio.get_running_loop().call_later(LINGER, self._close, room)

    def _close(self, room: Room) -> None:
        if not room.guests:
            self._poll_no_more(room)
            room.close()
            if self.rooms.get(room.session) is room:
                del self.rooms[room.session]

    def _poll_no_more(self, room: Room) -> None:
        if (watch := self._watches.pop(room, None)) is not None:
            watch.close()

    def end(self, session: str, why: Why) -> None:
        """End all streams of a session."""
        if (room := self.rooms.get(session)) is not None:
            room.end(why)

    async def aclose(self) -> None:
        """Close all rooms."""
        for room in list(self.rooms.values()):
            self._poll_no_more(room)
            room.close()
        self.rooms.clear()
