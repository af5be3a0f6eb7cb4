"""Stream hub: the session broadcasts of this node. Each reads its session's log and bus once for all subscribers.

A client joins with a cursor and catches up from the log on its own (`StreamHub.join`); then it receives what the broadcast
sends. Subscribers at the same position share the same bytes. One that is ahead, behind, or uses another protocol has a
`Subscriber` of its own until it reaches the position of the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from everturn.core.deltas import TurnReader
from everturn.core.events import Entry
from everturn.core.ports import Bus
from everturn.core.projections.session_reader import SessionReader
from everturn.core.store_ports import Store
from everturn.errors import EverturnError, UnknownSession
from everturn.running.follow import is_turn_over
from everturn.running.log_poll import LogPoll, LogReader
from everturn.server.streams.response import CATCH_UP_CHUNK, EventStreamResponse
from everturn.server.streams.session_broadcast import SessionBroadcast
from everturn.server.streams.sse import EndReason, Subscriber

log = logging.getLogger(__name__)

CONCURRENT_READS = 32  # logs that are read at a time for clients that catch up
LINGER = 2.0  # seconds a broadcast stays open without subscribers: most reconnect


class StreamHub:
    """The session broadcasts of a node."""

    def __init__(self, store: Store, bus: Bus, poll: LogPoll, merge: float, end_reason: Callable[[str], str]) -> None:
        self.store, self._bus, self._poll, self._merge, self._end_reason = store, bus, poll, merge, end_reason
        self.broadcasts: dict[str, SessionBroadcast] = {}
        self._read_slots = asyncio.Semaphore(CONCURRENT_READS)
        self._watches: dict[SessionBroadcast, LogReader] = {}

    async def join(self, response: EventStreamResponse, session: str, tenant: str, subscriber: Subscriber) -> None:
        """Send a client what it has missed, then attach it to the session's broadcast.

        Raises:
            StreamEnded: the stream was ended meanwhile.
        """
        broadcast = self._open_broadcast(session, tenant)
        response.on_leave = lambda: self._release(broadcast, response)
        try:
            await broadcast.opened.wait()
            if broadcast.failure is not None:
                raise broadcast.failure
            await self._check(broadcast, subscriber)
            while not subscriber.is_over:
                is_over = await self._is_turn_over(
                    broadcast, subscriber
                )  # before the log is read, which then has everything
                to = broadcast.seq
                await self._catch_up(response, broadcast, subscriber)
                if is_over:
                    break
                if to >= broadcast.seq:  # nothing was awaited since, so no event is missed
                    broadcast.attach(response, subscriber)
                    return
            response.end("over")
        except UnknownSession:
            response.end("erased")
        except EverturnError as error:
            log.warning("session %s cannot be streamed now: %s", session, error)
            response.end("lost")

    async def _check(self, broadcast: SessionBroadcast, subscriber: Subscriber) -> None:
        """Reset a cursor that points to no position of this log to the beginning."""
        reader = subscriber.reader
        if isinstance(reader, SessionReader):
            if reader.seq > broadcast.seq and reader.seq > await self.store.head(broadcast.session):
                subscriber.reader = SessionReader()
        elif reader.seq:
            entries = await self._events(broadcast, reader.seq - 1, subscriber.turn)
            if not entries or entries[0].seq != reader.seq:
                subscriber.reader = TurnReader(subscriber.turn)

    async def _catch_up(
        self, response: EventStreamResponse, broadcast: SessionBroadcast, subscriber: Subscriber
    ) -> None:
        """Send what the log has and this client has not seen, as fast as the client reads."""
        reader = subscriber.reader
        if isinstance(reader, SessionReader):
            entries = await self._events(broadcast, reader.read_after)
            reader.learn_from(entries)
            if reader.seq <= broadcast.seq:
                reader.add_streaming_steps(broadcast.steps)
            else:  # a step that streams here may have ended in what this client has already seen: only the log knows
                for turn in set(broadcast.steps) - set(reader.steps):
                    reader.learn_from(await self._events(broadcast, 0, turn))
            for turn in reader.unknown_turns(entries):
                reader.learn_from(await self._events(broadcast, 0, turn))
        else:
            entries = await self._events(broadcast, reader.seq, subscriber.turn)
        data: list[bytes] = []
        size = 0
        for entry in entries:
            data.append(subscriber.encode(entry))
            size += len(data[-1])
            if size > CATCH_UP_CHUNK:
                await response.write(b"".join(data))
                data, size = [], 0
        if size:
            await response.write(b"".join(data))

    async def _events(self, broadcast: SessionBroadcast, after: int, turn: str | None = None) -> list[Entry]:
        async with self._read_slots:
            with self.store.restrict_to_tenant(broadcast.tenant):
                return await self.store.events(broadcast.session, after, turn)

    async def _is_turn_over(self, broadcast: SessionBroadcast, subscriber: Subscriber) -> bool:
        if not subscriber.turn or broadcast.is_open(subscriber.turn):
            return False
        return await is_turn_over(self.store, broadcast.session, subscriber.turn)

    def _open_broadcast(self, session: str, tenant: str) -> SessionBroadcast:
        broadcast = self.broadcasts.get(session)
        if broadcast is None or broadcast.is_closed:
            broadcast = SessionBroadcast(
                self.store, self._bus, session, tenant, self._merge, lambda: self._end_reason(session)
            )
            self.broadcasts[session] = broadcast
            self._watches[broadcast] = self._poll.watch(session, lambda: broadcast.seq, broadcast.read_log)
        broadcast.subscriber_count += 1
        return broadcast

    def _release(self, broadcast: SessionBroadcast, response: EventStreamResponse) -> None:
        broadcast.detach(response)
        broadcast.subscriber_count -= 1
        if not broadcast.subscriber_count:
            asyncio.get_running_loop().call_later(LINGER, self._close, broadcast)

    def _close(self, broadcast: SessionBroadcast) -> None:
        if not broadcast.subscriber_count:
            self._stop_polling(broadcast)
            broadcast.close()
            if self.broadcasts.get(broadcast.session) is broadcast:
                del self.broadcasts[broadcast.session]

    def _stop_polling(self, broadcast: SessionBroadcast) -> None:
        if (watch := self._watches.pop(broadcast, None)) is not None:
            watch.close()

    def end(self, session: str, why: EndReason) -> None:
        """End all streams of a session."""
        if (broadcast := self.broadcasts.get(session)) is not None:
            broadcast.end(why)

    async def aclose(self) -> None:
        """Close all broadcasts."""
        for broadcast in list(self.broadcasts.values()):
            self._stop_polling(broadcast)
            broadcast.close()
        self.broadcasts.clear()
