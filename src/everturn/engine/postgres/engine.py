"""PostgreSQL engine: a table of wakes decides which process drives a session. See decision 0169.

The problem. Several processes share one database and nothing else. A session that is wanted must be driven by one of
them, by no two at once, again if it is woken during its drive, at a time if it waits for one, and by another process when
its own is dead or blocked.

What was rejected. Job queues on PostgreSQL were measured: none has all of this. They lose a wake during a drive, or never
take over, or cost three to five times the CPU. An advisory lock per session needs a connection per drive. A lease per
session needs a write per session and second; here there is a lease per worker.

The invariants.

- A session has one row or none, and `worker` in it names the one that may drive it. Only a take sets it, only an end of
  the same worker, its departure or its death clears it (`statements`, `lease`).
- A wake writes `due`. A take moves it away, an end deletes the row only if nothing has written it since: a wake that
  comes during a drive is never lost.
- Wakes are durable before `wake` returns, and notifications are only hints: every worker also looks every few seconds.

A wake in a process that drives is taken by that process with the same statement: no notification, no second process woken,
and the reader who sent the message is where the text is made.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from everturn.clock import SystemClock
from everturn.core.ports import Clock
from everturn.engine.postgres.lease import WorkerLease
from everturn.engine.postgres.notifier import WakeNotifier
from everturn.engine.postgres.statements import EngineStatements
from everturn.engine.wake_queue import WakeQueue
from everturn.errors import EngineUnavailable, SessionQuarantined, Stale, StoreBusy
from everturn.postgres.link import LINK_ERRORS, PostgresLink

log = logging.getLogger(__name__)

LOOK_INTERVAL = 2.5  # seconds between two looks for due sessions although nothing was heard
BATCH = 8  # sessions taken at once: other workers that were notified take some, too
AT_ONCE = 500  # sessions driven at once in one process
MIN_AT_ONCE = 4  # sessions that a worker which lost its lease drives at once, until it renews in time again
RETRY_DELAYS = (0.1, 5.0)  # seconds before a failed drive is tried again: the first pause, doubled up to the last
WAKE_TIMEOUT = 10.0  # seconds for which a wake is tried; a restart of the database takes less
START_TIMEOUT = 10.0  # seconds for the first connection
STRAYS_INTERVAL = 5.0  # seconds between two looks for sessions that were taken without an answer
TRY_PAUSE = 0.1  # seconds between two tries of a statement while the database does not answer
LOOP_TIMEOUT = 15.0  # seconds after which a process ends whose event loop is blocked: its sessions are driven elsewhere


DRIVEN_ALONE = 'a process with the inline engine drives what is in this database alone; stop it, or start it without engine="inline"'


class PostgresEngine:
    """Wakes sessions through a table of PostgreSQL and, unless `drives` is false, drives them in this process.

    The database has the schema of a `SqlStore`, which creates it. `link` is shared with a `PostgresBus`, or a URL.
    """

    is_durable = True

    def __init__(
        self,
        link: PostgresLink | str,
        *,
        drives: bool = True,
        sees_backends: bool = True,
        at_once: int = AT_ONCE,
        loop_timeout: float = LOOP_TIMEOUT,
        clock: Clock | None = None,
    ) -> None:
        self._link = link = PostgresLink(link) if isinstance(link, str) else link
        self._drives, self._at_once, self.loop_timeout = drives, at_once, loop_timeout if drives else 0.0
        self._sql = EngineStatements(link.table("wakes"), link.table("engine_workers"))
        self._channel = link.channel("wakes")
        self._notifier = WakeNotifier(link, self._channel)
        self._lease = WorkerLease(
            link, self._sql, self._lost_lease, self._sessions_freed, sees_backends, on_time=self._raise_limit
        )
        self._limit = at_once  # sessions driven at once now: fewer after this worker was too slow to renew its lease
        self._wakes = WakeQueue(self._send, clock or SystemClock())
        self._drive: Callable[[str], Awaitable[None]] | None = None
        self._driving: dict[str, asyncio.Task[None]] = {}
        self._ended: dict[int, list[str]] = {}  # worker id -> sessions whose drives have ended
        self._failed: list[tuple[str, int, float]] = []  # (session, worker id, seconds until it is tried again)
        self._has_ended, self._has_to_look = asyncio.Event(), asyncio.Event()
        self._look_at = 0.0  # of the event loop's clock: when a session may be due
        self._taking: set[str] = set()  # sessions whose wakes may be taken by this worker now
        self._strays_at = 0.0  # when strays are looked for
        self._is_sorting = False  # strays are looked for: nothing is taken meanwhile
        self._tasks: list[asyncio.Task[None]] = []
        self._is_open = self._is_closed = self._is_leaving = False

    # Wakes ------------------------------------------------------------------------------------------------------------

    async def wake(self, session: str, at: float | None = None, *, is_reminder: bool = False) -> None:
        """Have a session driven; when this returns, the wake is stored.

        Raises:
            EngineUnavailable: the database did not take it within ten seconds.
        """
        if not self._is_closed:
            self._open()
            await self._wakes.wake(session, at)

    async def _send(self, session: str, delay: float, _key: str) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + WAKE_TIMEOUT
        while True:
            try:
                await self._write_wake(session, delay)
                return
            except LINK_ERRORS as error:
                if loop.time() + TRY_PAUSE >= deadline or getattr(error, "sqlstate", "")[:2] in (
                    "22",
                    "28",
                    "3D",
                    "42",
                ):
                    raise EngineUnavailable(
                        f"session {session!r} could not be woken, because the database did not accept it "
                        f"({error!r}); check that it runs, and "
                        "send this again: the message itself is stored"
                    ) from error
            await asyncio.sleep(TRY_PAUSE)

    async def _write_wake(self, session: str, delay: float) -> None:
        if delay > 0:
            rows = await self._link.fetch(self._sql.wake_later, session, delay)
            if rows and not rows[0]["is_driven"]:
                if self._can_take:
                    self._look_after(delay)  # if this process ends before, another one looks
                else:
                    self._notifier.notify(delay)
        elif self._can_take and session not in self._driving:
            await self._wake_and_take(session)
        else:
            rows = await self._link.fetch(self._sql.wake, session)
            if rows and not rows[0]["is_driven"]:
                self._look_now()
                self._notifier.notify()

    async def _wake_and_take(self, session: str) -> None:
        worker = self._lease.worker
        assert worker is not None
        self._taking.add(session)
        try:
            rows = await self._link.fetch(self._sql.wake_and_take, session, worker)
            if rows and rows[0]["is_taken"]:
                self._start(session, rows[0]["tries"], worker)
        except LINK_ERRORS:
            self._strays_at = 0.0  # it may be taken all the same
            raise
        finally:
            self._taking.discard(session)

    @property
    def _can_take(self) -> bool:
        """Whether this process may drive another session."""
        is_serving = bool(self._tasks) and not (self._is_leaving or self._is_closed or self._is_sorting)
        return is_serving and self._lease.is_valid and len(self._driving) < self._limit

    # Drives -----------------------------------------------------------------------------------------------------------

    async def serve(self, drive: Callable[[str], Awaitable[None]]) -> None:
        """Drive sessions here, unless this engine only wakes; returns when this worker has joined.

        Raises:
            EngineUnavailable: the database does not answer.
        """
        self._open()
        if not self._drives:
            return
        self._drive = drive
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await self._link.was_up.wait()
                if not await self._share_driver_lock():
                    raise StoreBusy(DRIVEN_ALONE)
                await self._link.listen(self._channel, self._hear)
                await self._lease.renew()
        except LINK_ERRORS as error:
            raise EngineUnavailable(f"the database of the engine does not answer: {error!r}") from error
        self._link.on_up(self._reconnected)
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(work) for work in (self._take_due(), self._write_ends(), self._lease.run())]

    async def _share_driver_lock(self) -> bool:
        """Keep out a process that would drive this database alone. Returns whether there is none."""
        rows = await self._link.direct(self._sql.share_driver_lock, self._link.schema)
        return bool(rows[0]["is_shared"])

    async def _reconnected(self) -> None:
        if not self._is_closed:
            if not await self._share_driver_lock():
                log.error(DRIVEN_ALONE)  # it came while the database was away; epochs let one of both write
            await self._lease.renew()
            self._look_now()  # a notification may have been missed

    def _hear(self, payload: str) -> None:
        with suppress(ValueError):
            self._look_after(float(payload))

    def _sessions_freed(self) -> None:
        """Take sessions that lost their worker; others take some, too, so that no process gets all of them."""
        self._look_now()
        self._notifier.notify()

    def _look_now(self) -> None:
        self._look_after(0.0)

    def _look_after(self, delay: float) -> None:
        at = asyncio.get_running_loop().time() + delay
        if at < self._look_at:
            self._look_at = at
            self._has_to_look.set()

    async def _take_due(self) -> None:
        """Take due sessions: when something was heard, when one is due, and every few seconds."""
        loop = asyncio.get_running_loop()
        while not self._is_leaving:
            if (pause := self._look_at - loop.time()) > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._has_to_look.wait()
                self._has_to_look.clear()
                continue
            self._look_at = loop.time() + LOOK_INTERVAL
            if not self._can_take:
                self._look_after(0.1)
                continue
            try:
                if loop.time() >= self._strays_at:
                    await self._free_strays()
                await self._take()
            except LINK_ERRORS as error:
                log.debug("due sessions could not be read; next attempt soon: %r", error)
                self._strays_at = 0.0
                self._look_after(TRY_PAUSE)

    async def _free_strays(self) -> None:
        """Free sessions that this worker has taken without knowing it."""
        self._is_sorting = True
        try:
            ended = [session for sessions in self._ended.values() for session in sessions]
            known = {*self._driving, *self._taking, *ended, *(session for session, _, _ in self._failed)}
            self._strays_at = asyncio.get_running_loop().time() + STRAYS_INTERVAL
            for row in await self._link.fetch(self._sql.free_strays, self._lease.worker, sorted(known)):
                log.info("session %s was claimed, but the database did not answer; it is claimed again", row["session"])
        finally:
            self._is_sorting = False

    async def _take(self) -> None:
        worker = self._lease.worker
        assert worker is not None
        room = min(BATCH, self._limit - len(self._driving))
        rows = await self._link.fetch(self._sql.take, worker, room)
        for row in rows:
            self._start(row["session"], row["tries"], worker)
        if len(rows) == room:
            self._look_now()
        else:
            for row in await self._link.fetch(self._sql.next_due):
                self._look_after(row["seconds"])

    def _start(self, session: str, tries: int, worker: int) -> None:
        before = self._driving.get(session)
        task = asyncio.get_running_loop().create_task(self._run_drive(session, tries, worker, before))
        self._driving[session] = task
        task.add_done_callback(lambda ended: self._forget(session, ended))

    def _forget(self, session: str, task: asyncio.Task[None]) -> None:
        if self._driving.get(session) is task:
            del self._driving[session]

    async def _run_drive(self, session: str, tries: int, worker: int, before: asyncio.Task[None] | None) -> None:
        assert self._drive is not None
        if before is not None:  # it was taken from this worker, and came back: the first drive has to end
            before.cancel()
            await asyncio.wait({before})
        try:
            await self._drive(session)
        except (Stale, SessionQuarantined) as error:
            # Another process drives it, or it must not be driven: a retry would help neither.
            log.warning("%s: %s", session, error)
        except Exception:
            if not self._is_leaving:
                log.exception("driving session %s failed; it will be tried again", session)
            pause = 0.0 if self._is_leaving else min(RETRY_DELAYS[0] * 2**tries, RETRY_DELAYS[1])
            self._failed.append((session, worker, pause))
            self._has_ended.set()
            return
        self._ended.setdefault(worker, []).append(session)
        self._has_ended.set()

    async def _write_ends(self) -> None:
        """Write the ends of drives: those that have ended while the last statement ran, together."""
        while True:
            await self._has_ended.wait()
            self._has_ended.clear()
            try:
                await self._write_ended()
            except LINK_ERRORS as error:
                log.debug("the ends of drives could not be written; next attempt soon: %r", error)
                self._has_ended.set()
                await asyncio.sleep(TRY_PAUSE)

    async def _write_ended(self) -> None:
        while self._ended:
            worker, sessions = next(iter(self._ended.items()))
            ending = list(sessions)
            rows = await self._link.fetch(self._sql.end, ending, worker)
            del sessions[: len(ending)]
            if not sessions:
                del self._ended[worker]
            if any(row["is_due"] for row in rows):
                self._look_or_tell()
        while self._failed:
            session, worker, pause = self._failed[0]
            await self._link.fetch(self._sql.retry, session, worker, pause)
            del self._failed[0]
            self._look_or_tell(pause)

    def _look_or_tell(self, delay: float = 0.0) -> None:
        if self._can_take:
            self._look_after(delay)
        else:
            self._notifier.notify(delay)

    # A worker that is too slow to renew its lease has more sessions than it can drive. Would it take as many again, it
    # would lose them again, and each loss is a try that counts towards the quarantine of an innocent session. So it goes
    # on with half of them, and with twice as many after each renewal in time.

    def _lost_lease(self) -> None:
        driving = [task for task in self._driving.values() if not task.cancelling()]
        self._limit = min(self._at_once, max(MIN_AT_ONCE, len(driving) // 2))
        for task in driving:
            task.cancel()

    def _raise_limit(self) -> None:
        if self._limit < self._at_once:
            self._limit = min(self._at_once, self._limit * 2)
            self._look_now()

    # End --------------------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        if not self._is_open:
            self._is_open = True
            self._link.open()

    async def stop_accepting(self) -> None:
        """Start no new drives here; what is woken from now on goes to other workers."""
        self._is_leaving = True
        self._has_to_look.set()

    async def aclose(self) -> None:
        """Stop driving. What was not finished is free for other workers at once."""
        if self._is_closed:
            return
        self._is_closed = self._is_leaving = True
        await self._wakes.aclose()
        drives = list(self._driving.values())
        for task in (*drives, *self._tasks):
            task.cancel()
        await asyncio.gather(*drives, *self._tasks, return_exceptions=True)
        with suppress(*LINK_ERRORS):  # without a database: others take over when the lease has ended
            async with asyncio.timeout(2.0):
                await self._write_ended()
                if await self._lease.leave():
                    self._notifier.notify()
                await self._notifier.flush()
        if self._is_open:
            await self._link.aclose()
