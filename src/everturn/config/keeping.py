"""A store that keeps house while a server or a worker runs: once a day, what nobody needs any more goes."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any, Final

from everturn.wiring import Runtime

log = logging.getLogger(__name__)

DAY: Final = 86_400.0  # seconds
FIRST: Final = 600.0  # seconds after a start: it has better things to do then


async def keep_house(runtime: Runtime, days: float, first: float = FIRST, pause: float = DAY) -> None:
    """Keep house again and again, until cancelled; sessions are erased in which nothing happened for so many days.

    Several processes may do it on one store: it goes in small steps, and what one has done the next finds done. Each takes
    its own time for it.
    """
    store: Any = runtime.store
    if not hasattr(store, "keep_house"):  # in memory nothing lasts that long
        return
    await asyncio.sleep(first * random.uniform(0.5, 1.5))
    while True:
        try:
            kept = await store.keep_house(runtime.clock.now(), days * DAY if days else None)
            log.info("the store has kept house: %s", kept)
        except Exception as error:
            log.warning("the store could not keep house, and does tomorrow: %r", error)
        await asyncio.sleep(pause * random.uniform(0.9, 1.1))
