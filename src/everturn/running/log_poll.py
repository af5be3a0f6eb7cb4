"""Log polling: readers learn of events whose notification was lost.

The bus announces every append, and may lose the announcement: a driver can die between its COMMIT and the message, and
a message bus can be down. The log is the source of truth, so a node polls it. One query per interval asks for the
positions of all sessions that are followed on this node, however many readers they have; only those that moved past
their reader are read. A query per reader was rejected: at 2,000 open streams it cost PostgreSQL 843 transactions/s, and
a longer interval (the 60 s there was) is how long a reader waits for the end of a turn.

Invariant: whatever is in the log when a watch is opened, or comes later, is announced to that watch within one interval
(and the duration of the query), unless its position says that it was read already.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context

from everturn.core.store_ports import Store

log = logging.getLogger(__name__)

POLL_INTERVAL = 2.0  # seconds between two polls
SESSIONS_PER_QUERY = 1000  # sessions in one query
NO_SESSION = -1  # the position of a session that does not exist (any more)


class LogReader:
    """One reader of a session. `position` returns how far it has read; `look` makes it read the log."""

    __slots__ = ("_poll", "notified_position", "position", "read_log", "session")

    def __init__(self, poll: LogPoll, session: str, position: Callable[[], int], look: Callable[[], None]) -> None:
        self._poll, self.session, self.position, self.read_log = poll, session, position, look
        self.notified_position: int | None = (
            None  # the position it was last notified of: a turn's reader stays behind the end of its session
        )

    def close(self) -> None:
        """Poll no longer for this reader."""
        self._poll.remove(self)


class LogPoll:
    """Polls the positions of all sessions that are followed in this process."""

    def __init__(self, store: Store, interval: float | None = None) -> None:
        self._store, self._interval = store, interval
        self._watches: dict[str, list[LogReader]] = {}
        self._timer: asyncio.TimerHandle | None = None  # most turns are over before it fires
        self._polling: asyncio.Task[None] | None = None

    @property
    def sessions(self) -> int:
        """How many sessions are polled."""
        return len(self._watches)

    def watch(self, session: str, position: Callable[[], int], look: Callable[[], None]) -> LogReader:
        """Call `look` whenever the log is ahead of the reader, until the watch is closed."""
        watch = LogReader(self, session, position, look)
        self._watches.setdefault(session, []).append(watch)
        if self._timer is None and self._polling is None:
            self._wait()
        return watch

    def remove(self, watch: LogReader) -> None:
        """Forget a watch; polling ends with the last one."""
        watches = self._watches.get(watch.session, [])
        if watch in watches:
            watches.remove(watch)
        if not watches:
            self._watches.pop(watch.session, None)
        if not self._watches:
            self.close()

    def close(self) -> None:
        """Stop polling."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._polling is not None:
            self._polling.cancel()
            self._polling = None

    def _wait(self) -> None:
        # In a context of its own: the first reader may be in one tenant's context, and polling is for all of them.
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._interval or POLL_INTERVAL, self._start, context=Context())

    def _start(self) -> None:
        self._timer = None
        self._polling = asyncio.get_running_loop().create_task(self._poll())

    async def _poll(self) -> None:
        try:
            await self.poll()
        except Exception as error:
            log.warning("the log positions of sessions with readers cannot be read; trying again: %s", error)
        self._polling = None
        if self._watches and self._timer is None:
            self._wait()

    async def poll(self) -> None:
        """Read all positions once, and notify the readers that are behind."""
        sessions = list(self._watches)
        for start in range(0, len(sessions), SESSIONS_PER_QUERY):
            batch = sessions[start : start + SESSIONS_PER_QUERY]
            heads = await self._store.heads(batch)
            for session in batch:
                head = heads.get(session, NO_SESSION)
                for watch in tuple(self._watches.get(session, ())):
                    if head != watch.notified_position and (head == NO_SESSION or head > watch.position()):
                        watch.notified_position = head
                        watch.read_log()
