"""Reconciler: wakes sessions that should be driven and are not, because a wake was lost on the way to the engine."""

from __future__ import annotations

import asyncio
import logging
import random

from everturn.core.ports import Clock, Engine
from everturn.core.store_ports import Store

log = logging.getLogger(__name__)

RECONCILE_INTERVAL = 5.0  # seconds between two runs; with jitter in each process
RECONCILE_AFTER = 20.0  # seconds without a driver after which the reconciler wakes a session


async def run_reconciler(store: Store, engine: Engine, clock: Clock) -> None:
    """Search for such sessions, again and again, until cancelled."""
    while True:
        await asyncio.sleep(RECONCILE_INTERVAL * random.uniform(0.5, 1.5))
        now = clock.now()
        try:
            for session in await store.overdue(now - RECONCILE_AFTER, now):
                log.info("session %s was not driven for %g s; waking it", session, RECONCILE_AFTER)
                await engine.wake(session, is_reminder=True)
        except Exception as error:
            log.warning("the search for sessions without a driver failed and will be repeated: %s", error)
