"""Lease of a worker: a row that says until when it counts as alive, and the take-over from workers that do not.

Each worker renews its lease from its event loop, so a loop that is blocked loses it as a dead process does. The others
notice a death earlier: the server's end of its direct connection is missing from `pg_stat_activity` (where every worker
reaches the same server; a pooler or a replica in between needs `sees_backends=False`, and the lease alone decides).

A lost connection is not a lost lease. The new connection beats for the same row; only if that is gone, another worker has
taken over: then the drives here are cancelled, and this worker joins under a new id. Whatever an overtaken worker still
does is refused: its appends by the store's epochs, its ends by the worker's id.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from everturn.engine.postgres.statements import EngineStatements
from everturn.postgres.link import LINK_ERRORS, PostgresLink

log = logging.getLogger(__name__)

BEAT = 1.0  # seconds between two renewals, and two looks at the others
LEASE = 3.5  # seconds a worker is believed alive without a renewal: a take-over comes at most a beat later
MISSED_FOR = 0.6  # seconds a backend must be missing: an interrupted connection is open again by then
ORPHANS_EVERY = 3  # beats


class WorkerLease:
    """The lease of this worker.

    `lost` is called when another one has taken over, `freed` when sessions became free, `on_time` after each renewal in
    time.
    """

    def __init__(
        self,
        link: PostgresLink,
        statements: EngineStatements,
        lost: Callable[[], None],
        freed: Callable[[], None],
        sees_backends: bool,
        *,
        on_time: Callable[[], None],
    ) -> None:
        self._link, self._sql, self._lost, self._freed, self._on_time = link, statements, lost, freed, on_time
        self._sees_backends = sees_backends
        self.worker: int | None = None  # the id of this worker; None: it has not joined
        self._renewed = 0.0  # when the lease was renewed last
        self._beats = 0

    @property
    def is_valid(self) -> bool:
        """Whether this worker surely counts as alive."""
        return self.worker is not None and asyncio.get_running_loop().time() - self._renewed < LEASE

    async def renew(self) -> bool:
        """Renew the lease, or join if there is none. Returns whether it was renewed in time."""
        sent = asyncio.get_running_loop().time()
        if self.worker is not None and not await self._link.direct(self._sql.beat, self.worker, LEASE):
            log.warning("this worker did not renew its lease in time, and other workers have taken over its sessions")
            self.worker = None
            self._lost()
        if self.worker is None:
            self.worker = (await self._link.direct(self._sql.join, LEASE))[0]["id"]
            self._freed()  # what is due can be taken
        was_late = sent - self._renewed > 2 * BEAT
        self._renewed = sent
        if not was_late:
            self._on_time()
        return not was_late

    async def run(self) -> None:
        """Renew the lease and take over from dead workers, until cancelled."""
        while True:
            await asyncio.sleep(BEAT)
            try:
                # A worker that was late itself (stopped, or without a database) judges nobody: the others may have been
                # late for the same reason, and are about to renew theirs.
                if await self.renew():
                    await self._take_over()
            except LINK_ERRORS as error:
                log.debug("the lease was not renewed: %r", error)

    async def _take_over(self) -> None:
        if self._sees_backends and await self._link.direct(self._sql.miss):
            await asyncio.sleep(1.1 * MISSED_FOR)  # not until the next beat
        freed = await self._link.direct(self._sql.reap, MISSED_FOR)
        self._beats += 1
        if self._beats % ORPHANS_EVERY == 1:
            freed = [*freed, *await self._link.direct(self._sql.free_orphans)]
        if freed:
            log.warning("took over %d sessions of a worker that has ended", len(freed))
            self._freed()

    async def leave(self) -> bool:
        """Give the lease up. Returns whether sessions became free."""
        if self.worker is None:
            return False
        worker, self.worker = self.worker, None
        return bool(await self._link.fetch(self._sql.leave, worker))
