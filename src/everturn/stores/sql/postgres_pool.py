"""PostgreSQL connections: opens and reuses them, and holds the lock that lets one process drive a database.

Every timeout here exists because a process may be stopped at any moment with a transaction open: its locks must be
released without it, and its COMMIT must then fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from everturn.errors import EverturnError, StoreBusy, StoreUnavailable
from everturn.postgres.address import parse_address
from everturn.stores.sql.errors import translate_error
from everturn.stores.sql.group_commit import StatementBatch
from everturn.stores.sql.migrate import upgrade_postgres
from everturn.stores.sql.row_security import ReadScope, ensure_tenant_role, set_scope_sql

READERS = 8
CONNECT_TIMEOUT = 5.0  # seconds for one try
COMMAND_TIMEOUT = 15.0  # seconds until an unresponsive connection is given up: longer than the server's own timeouts

# In milliseconds, as PostgreSQL expects. A group waits for a row for less time than PostgreSQL takes to detect a
# deadlock (deadlock_timeout, 1 s): an operation that runs alone cannot be part of one.
# Rows are found by key, however many the planner expects: plans are made once, and never as a sequential scan because a
# table was small when the connection was opened.
_BY_KEY = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
_WRITING = {
    "lock_timeout": "250",
    "statement_timeout": "10000",
    "idle_in_transaction_session_timeout": "10000",
    **_BY_KEY,
}
_READING = {"statement_timeout": "12000", **_BY_KEY}
_HOLDING = {"statement_timeout": "5000"}

_HOLD = "SELECT pg_try_advisory_lock(hashtextextended('everturn.holding.' || current_schema(), 0))"
_HOLDER = """
SELECT coalesce(host(a.client_addr), 'this machine'), a.backend_start::text FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND (l.classid::bigint << 32) | l.objid::bigint = hashtextextended('everturn.holding.' || current_schema(), 0)
"""


class PostgresConnection:
    """One connection and its prepared statements."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.scope: ReadScope | None = None  # what it reads for; None: as the login role
        self._prepared: dict[str, Any] = {}

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed."""
        return self.connection.is_closed()

    async def execute(self, text: str) -> str:
        """Execute a statement without parameters and return its status."""
        return await self.connection.execute(text)

    async def fetch(self, batch: StatementBatch) -> Sequence[Any]:
        """Run a batch and return its rows."""
        prepared = self._prepared.get(batch.text)
        if prepared is None:
            # With a name, or the server would parse and plan it again each time.
            name = f"everturn{len(self._prepared)}"
            prepared = self._prepared[batch.text] = await self.connection.prepare(batch.text, name=name)
        return await prepared.fetch(*batch.parameters)

    def terminate(self) -> None:
        """Drop the connection at once."""
        self.connection.terminate()

    async def aclose(self) -> None:
        """Close the connection gracefully, or drop it if the server does not answer."""
        try:
            await self.connection.close(timeout=2.0)
        except Exception:
            self.connection.terminate()


class PostgresConnections:
    """Opens connections, and upgrades the database before it returns the first."""

    def __init__(self, url: str, schema: str | None = None) -> None:
        self._url, self._schema = parse_address(url, schema)
        self.role = ""  # the role that reads for one tenant; "": there is none
        self._upgrading = asyncio.Lock()
        self._is_current = False
        self._idle: list[PostgresConnection] = []
        self._readers = asyncio.Semaphore(READERS)
        self._holding: PostgresConnection | None = None
        self._holding_on: asyncio.Task[None] | None = None
        self._refusal: EverturnError | None = None
        self._is_closed = False

    def check(self) -> None:
        """Raise why nothing can be written any more, if so."""
        if self._refusal is not None:
            raise self._refusal

    async def writer(self) -> PostgresConnection:
        """Open a connection for writes."""
        return await self._connect(_WRITING)

    async def borrow(self, scope: ReadScope | None = None) -> PostgresConnection:
        """Return a connection for reads from a small pool, restricted to a scope; `give_back` it."""
        await self._readers.acquire()
        try:
            link = self._take(scope)
            if link is None:
                self.check()
                link = await self._connect(_READING)
            if link.scope != scope:
                await self._enter(link, scope)
            return link
        except BaseException:
            self._readers.release()
            raise

    def _take(self, scope: ReadScope | None) -> PostgresConnection | None:
        """Return an idle connection, preferably one that is restricted to this scope already."""
        self._idle = [link for link in self._idle if not link.is_closed]
        at = next((n for n in reversed(range(len(self._idle))) if self._idle[n].scope == scope), -1)
        return self._idle.pop(at) if self._idle else None

    async def _enter(self, link: PostgresConnection, scope: ReadScope | None) -> None:
        try:
            await link.execute(set_scope_sql(self.role, scope))
        except BaseException:
            link.terminate()  # its role is unknown
            raise
        link.scope = scope

    def give_back(self, link: PostgresConnection) -> None:
        """Return a connection to the pool."""
        if self._is_closed:
            link.terminate()
        elif not link.is_closed:
            self._idle.append(link)
        self._readers.release()

    async def _connect(self, settings: dict[str, str]) -> PostgresConnection:
        settings = {"application_name": "everturn", "jit": "off", **settings}
        if self._schema is not None:
            settings["search_path"] = f'"{self._schema}"'
        async with self._upgrading:
            if not self._is_current:
                # On a connection of its own, without the timeouts.
                await self._upgrade({name: settings[name] for name in settings if name == "search_path"})
        return PostgresConnection(await self._open(settings, COMMAND_TIMEOUT))

    async def _open(self, settings: dict[str, str], answer: float | None) -> Any:
        connect: Any = getattr(asyncpg, "connect")  # noqa: B009 - it has no types
        return await connect(
            self._url, timeout=CONNECT_TIMEOUT, command_timeout=answer, statement_cache_size=0, server_settings=settings
        )

    async def _upgrade(self, settings: dict[str, str]) -> None:
        link = PostgresConnection(await self._open(settings, None))
        try:
            await upgrade_postgres(link.connection, self._schema)
            self.role = await ensure_tenant_role(link.connection)
            self._is_current = True
        finally:
            await link.aclose()

    # Exclusive driver------------------------------------------------------------------------------------------------

    async def hold_driver_lock(self) -> None:
        """Take the lock that lets one process drive this database, and hold it across lost connections.

        Raises:
            StoreBusy: another process holds it.
        """
        if self._holding is None or self._holding.is_closed:
            try:
                await self._hold()
            except EverturnError:
                raise
            except Exception as error:
                raise translate_error(error) from error

    async def _hold(self) -> None:
        link = await self._connect(_HOLDING)
        if not await link.connection.fetchval(_HOLD):
            holder = await link.connection.fetchrow(_HOLDER)
            await link.aclose()
            origin = f" from {holder[0]}, since {holder[1]}" if holder else ""
            raise StoreBusy(
                f"another process already uses this database{origin}; stop it first, or run both with an engine "
                "for several processes, such as engine='postgres'"
            )
        self._holding = link
        link.connection.add_termination_listener(self._lost_hold)

    def _lost_hold(self, connection: Any) -> None:
        if self._refusal is None and self._holding is not None and connection is self._holding.connection:
            self._holding_on = asyncio.get_running_loop().create_task(self._hold_again())

    async def _hold_again(self) -> None:
        """Retake the lock, perhaps after a restart of the database; if another process has it, refuse all writes."""
        while self._refusal is None:
            try:
                return await self._hold()
            except StoreBusy as error:
                self._refusal = error
            except Exception:
                await asyncio.sleep(0.2)

    def refuse_writes(self) -> None:
        """Refuse new writes from now on."""
        self._refusal = self._refusal or StoreUnavailable("this store has been closed")

    async def aclose(self) -> None:
        """Close every connection."""
        if self._holding_on is not None:
            self._holding_on.cancel()
            await asyncio.wait({self._holding_on})
        self._is_closed = True
        for link in (*self._idle, *([self._holding] if self._holding else [])):
            await link.aclose()
        self._idle.clear()
