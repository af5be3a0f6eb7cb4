"""Engine and bus on the database of a store: the defaults of an app whose store is a PostgreSQL URL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from everturn.core.ports import Clock
from everturn.driver.driver import CAUGHT_TRIES, ActiveDrive
from everturn.errors import ConfigError

if TYPE_CHECKING:
    from everturn.bus.postgres import PostgresBus
    from everturn.engine.postgres import PostgresEngine
    from everturn.postgres.link import PostgresLink


class SharedDatabase:
    """Makes an engine and a bus that share their connections, when they are first asked for."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._link: PostgresLink | None = None

    def engine(
        self, clock: Clock | None = None, *, drives: bool = True, loop_timeout: float | None = None
    ) -> PostgresEngine:
        """The engine; without `drives` it only wakes."""
        from everturn.engine.postgres.engine import LOOP_TIMEOUT, PostgresEngine

        timeout = LOOP_TIMEOUT if loop_timeout is None else loop_timeout
        return PostgresEngine(self._shared_link(), drives=drives, loop_timeout=timeout, clock=clock)

    def bus(self) -> PostgresBus:
        """The bus."""
        from everturn.bus.postgres import PostgresBus

        return PostgresBus(self._shared_link())

    def _shared_link(self) -> PostgresLink:
        if self._link is None:
            try:
                from everturn.postgres.link import PostgresLink
            except ModuleNotFoundError as error:
                raise ConfigError(f"{error.name} is not installed; `pip install 'everturn[postgres]'`") from error
            self._link = PostgresLink(self._url)
        return self._link


def require_shared(shared: SharedDatabase | None, option: str) -> SharedDatabase:
    """Return a shared database.

    Raises:
        ConfigError: there is none, because the store is not given by a PostgreSQL URL.
    """
    if shared is None:
        raise ConfigError(
            f'{option}="postgres" uses the database of the store: give its URL, such as store="postgresql://…", or make a '
            f"Postgres{option.capitalize()} yourself"
        )
    return shared


def blocked_drive_recorder(url: str) -> Callable[[ActiveDrive | None], None]:
    """Record which session blocked the event loop, so that it is quarantined and no other session is suspected.

    The function that this returns is called in the watchdog's thread, on connections of its own.
    """

    async def record(driven: ActiveDrive) -> None:
        from everturn.stores.sql.store import SqlStore

        store = SqlStore.postgres(url)
        try:
            await store.release(driven.session, driven.epoch, max(driven.tries, CAUGHT_TRIES))
        finally:
            await store.aclose()

    def on_blocked(driven: ActiveDrive | None) -> None:
        if driven is not None:
            asyncio.run(record(driven))

    return on_blocked
