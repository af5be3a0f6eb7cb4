"""Retention job: runs the store's maintenance once a day while a server or a worker runs."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any, Final

from everturn.base_app import BaseApp

log = logging.getLogger(__name__)

DAY: Final = 86_400.0  # seconds
FIRST_DELAY: Final = 600.0  # seconds after a start, which has other work to do first


async def run_maintenance(app: BaseApp, days: float, first: float = FIRST_DELAY, pause: float = DAY) -> None:
    """Run the maintenance periodically, until cancelled; sessions that were idle for `days` are erased.

    Several processes may do this on one store: it works in small steps, and work that one has done is not repeated.
    Each waits a random time.
    """
    store: Any = app.store
    if not hasattr(store, "run_maintenance"):  # a store in memory does not last that long
        return
    await asyncio.sleep(first * random.uniform(0.5, 1.5))
    while True:
        try:
            result = await store.run_maintenance(app.clock.now(), days * DAY if days else None)
            log.info("store maintenance: %s", result)
        except Exception as error:
            log.warning("store maintenance failed; the next run is tomorrow: %r", error)
        await asyncio.sleep(pause * random.uniform(0.9, 1.1))
