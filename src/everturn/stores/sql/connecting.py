"""An address → connections to PostgreSQL, and the lock that says which process drives what is there.

Every limit here is there because a process may be stopped at any moment with a transaction open: what it holds must come
free by itself, and its COMMIT must then fail.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from everturn.errors import ConfigError, EverturnError, StoreBusy, StoreUnavailable
from everturn.stores.sql.grouping import Batch
from everturn.stores.sql.migrating import upgrade_postgres
from everturn.stores.sql.trouble import told
from everturn.stores.sql.walls import entering, raise_walls

READERS = 8
CONNECT = 5.0  # seconds for one try
ANSWER = 15.0  # seconds until a connection that says nothing is given up: longer than what the server allows itself

# In milliseconds, as PostgreSQL wants them. A group waits for a row no longer than it takes two groups that wait for each
# other to be told (deadlock_timeout, 1 s): alone, an operation has nobody to wait for in a circle.
# What is written or read is found by its key, however many rows the planner thinks there are: planned once, and never by
# reading a table from end to end because it was small when the connection was made.
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


class Link:
    """One connection, and the statements it has been taught."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.tenant: str | None = None  # as whom it reads; None: as whoever logged in
        self._prepared: dict[str, Any] = {}

    @property
    def is_closed(self) -> bool:
        """Whether it can be used no more."""
        return self.connection.is_closed()

    async def say(self, text: str) -> str:
        """Say something that has no parameters; what is answered is its tag."""
        return await self.connection.execute(text)

    async def ask(self, batch: Batch) -> Sequence[Any]:
        """Run a batch and return its rows."""
        prepared = self._prepared.get(batch.text)
        if prepared is None:
            # By a name, or the server would parse and plan it again each time.
            name = f"everturn{len(self._prepared)}"
            prepared = self._prepared[batch.text] = await self.connection.prepare(batch.text, name=name)
        return await prepared.fetch(*batch.parameters)

    def terminate(self) -> None:
        """Drop it at once."""
        self.connection.terminate()

    async def aclose(self) -> None:
        """Part in good order, if the server still listens."""
        try:
            await self.connection.close(timeout=2.0)
        except Exception:
            self.connection.terminate()


class Links:
    """Makes connections, and brings the database up to date before it gives out the first."""

    def __init__(self, url: str, schema: str | None = None) -> None:
        self._url, self._schema = _address(url, schema)
        self.role = ""  # that reads for one tenant; "": none could be had
        self._upgrading = asyncio.Lock()
        self._is_current = False
        self._idle: list[Link] = []
        self._readers = asyncio.Semaphore(READERS)
        self._holding: Link | None = None
        self._holding_on: asyncio.Task[None] | None = None
        self._refusal: EverturnError | None = None
        self._is_closed = False

    def check(self) -> None:
        """Whether anything may still be written: raises why not."""
        if self._refusal is not None:
            raise self._refusal

    async def writer(self) -> Link:
        """A connection to write on."""
        return await self._connect(_WRITING)

    async def borrow(self, tenant: str | None = None) -> Link:
        """A connection to read on, one of a few, and inside the walls of a tenant; give it back."""
        await self._readers.acquire()
        try:
            link = self._take(tenant)
            if link is None:
                self.check()
                link = await self._connect(_READING)
            if link.tenant != tenant:
                await self._enter(link, tenant)
            return link
        except BaseException:
            self._readers.release()
            raise

    def _take(self, tenant: str | None) -> Link | None:
        """One that lies idle; rather one that stands inside these walls already."""
        self._idle = [link for link in self._idle if not link.is_closed]
        at = next((n for n in reversed(range(len(self._idle))) if self._idle[n].tenant == tenant), -1)
        return self._idle.pop(at) if self._idle else None

    async def _enter(self, link: Link, tenant: str | None) -> None:
        try:
            await link.say(entering(self.role, tenant))
        except BaseException:
            link.terminate()  # nobody knows where it stands
            raise
        link.tenant = tenant

    def give_back(self, link: Link) -> None:
        """The next may have it."""
        if self._is_closed:
            link.terminate()
        elif not link.is_closed:
            self._idle.append(link)
        self._readers.release()

    async def _connect(self, settings: dict[str, str]) -> Link:
        settings = {"application_name": "everturn", "jit": "off", **settings}
        if self._schema is not None:
            settings["search_path"] = f'"{self._schema}"'
        async with self._upgrading:
            if not self._is_current:
                # On a connection of its own, which none of the limits applies to.
                await self._upgrade({name: settings[name] for name in settings if name == "search_path"})
        return Link(await self._open(settings, ANSWER))

    async def _open(self, settings: dict[str, str], answer: float | None) -> Any:
        connect: Any = getattr(asyncpg, "connect")  # noqa: B009 - it has no types
        return await connect(
            self._url, timeout=CONNECT, command_timeout=answer, statement_cache_size=0, server_settings=settings
        )

    async def _upgrade(self, settings: dict[str, str]) -> None:
        link = Link(await self._open(settings, None))
        try:
            await upgrade_postgres(link.connection, self._schema)
            self.role = await raise_walls(link.connection)
            self._is_current = True
        finally:
            await link.aclose()

    # One process ---------------------------------------------------------------------------------------------------

    async def hold(self) -> None:
        """Take the lock that says which process drives this, and keep it, over lost connections too.

        Raises:
            StoreBusy: another process has it.
        """
        if self._holding is None or self._holding.is_closed:
            try:
                await self._hold()
            except EverturnError:
                raise
            except Exception as error:
                raise told(error) from error

    async def _hold(self) -> None:
        link = await self._connect(_HOLDING)
        if not await link.connection.fetchval(_HOLD):
            who = await link.connection.fetchrow(_HOLDER)
            await link.aclose()
            seen = f" from {who[0]}, since {who[1]}" if who else ""
            raise StoreBusy(
                f"another process drives what is in this database{seen}; stop it first, or run both with an engine that "
                "many processes share"
            )
        self._holding = link
        link.connection.add_termination_listener(self._lost_hold)

    def _lost_hold(self, connection: Any) -> None:
        if self._refusal is None and self._holding is not None and connection is self._holding.connection:
            self._holding_on = asyncio.get_running_loop().create_task(self._hold_again())

    async def _hold_again(self) -> None:
        """The database was restarted, perhaps: be quicker than others, or write no more."""
        while self._refusal is None:
            try:
                return await self._hold()
            except StoreBusy as error:
                self._refusal = error
            except Exception:
                await asyncio.sleep(0.2)

    def close_door(self) -> None:
        """From now on nothing new is taken."""
        self._refusal = self._refusal or StoreUnavailable("this store has been closed")

    async def aclose(self) -> None:
        """Let go of every connection."""
        if self._holding_on is not None:
            self._holding_on.cancel()
            await asyncio.wait({self._holding_on})
        self._is_closed = True
        for link in (*self._idle, *([self._holding] if self._holding else [])):
            await link.aclose()
        self._idle.clear()


def _address(url: str, schema: str | None) -> tuple[str, str | None]:
    """The address for the driver, and the schema it may carry: `…?schema=name`."""
    parts = urlsplit(url)
    if parts.scheme.partition("+")[0] not in ("postgres", "postgresql"):
        raise ConfigError(f"this is not the address of a PostgreSQL database: it begins with {parts.scheme!r}")
    asked = parse_qsl(parts.query, keep_blank_values=True)
    schema = schema or dict(asked).get("schema")
    if schema is not None and re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema) is None:
        raise ConfigError(f"a schema is named with small letters, digits and _, not {schema!r}")
    query = urlencode([(name, value) for name, value in asked if name != "schema"])
    return parts._replace(scheme="postgresql", query=query).geturl(), schema
