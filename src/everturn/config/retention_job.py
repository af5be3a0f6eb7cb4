"""Retention jobs while a server or a worker runs: the store's maintenance once a day, and the end of temporary chats."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any, Final

from everturn.base_app import BaseApp
from everturn.chat import Chat
from everturn.chat.erase_session import erase_session
from everturn.errors import SessionBusy, UnknownSession

log = logging.getLogger(__name__)

DAY: Final = 86_400.0  # seconds
EXPIRY_PAUSE: Final = 600.0  # seconds between two looks for temporary chats whose time is over
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


async def erase_temporary_sessions(app: BaseApp, pause: float = EXPIRY_PAUSE) -> None:
    """Erase temporary chats whose time is over, again and again, until cancelled."""
    while True:
        try:
            await erase_expired(app)
        except Exception as error:
            log.warning("temporary chats could not be erased; next attempt later: %r", error)
        await asyncio.sleep(pause * random.uniform(0.9, 1.1))


async def erase_expired(app: BaseApp) -> int:
    """Erase the temporary chats whose time is over, and return how many. One with an open turn is cancelled first, and
    erased the next time.
    """
    erased, sharing = 0, app.store.sharing
    for session in await sharing.expired(app.clock.now()):
        try:
            await erase_session(app, session)
            erased += 1
        except UnknownSession:  # its first message was never sent
            pass
        except SessionBusy:
            info = await app.store.info(session)
            for turn in await app.store.open_turns(session):
                await Chat("", app=app, session=session, tenant=info.tenant).turn(turn).cancel(hard=True)
            continue
        await sharing.forget_temporary(session)
    return erased
