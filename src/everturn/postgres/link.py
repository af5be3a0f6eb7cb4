"""PostgreSQL link: the connections that the engine and the bus of one process share.

There are two kinds, because a pooler treats them differently:

- One direct connection LISTENs. PgBouncer in transaction mode accepts a LISTEN and never delivers anything, so this
  connection must reach the server itself. It is re-established for ever; asyncpg forgets listeners with a connection, so
  each new one listens again and then calls `on_up`, whose callees make up for what they have not heard.
- A few connections run single statements, each a transaction of its own. They keep no state between two statements and
  need no search path, so they may go through a pooler in transaction mode (`pooler`, which also turns prepared statements
  off).

A NOTIFY never joins another statement's transaction: PostgreSQL holds one lock of the whole server from a NOTIFY to the
end of its COMMIT, and all commits that notify would wait for each other's flush.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from everturn.postgres.address import parse_address

log = logging.getLogger(__name__)

STATEMENT_CONNECTIONS = 3
CONNECT_TIMEOUT = 3.0  # seconds for one try
ANSWER_TIMEOUT = 3.0  # seconds for a statement; all of them are short
RETRY_PAUSES = (0.05, 0.1, 0.2, 0.4)  # seconds between tries to connect; the last one is repeated
PING_INTERVAL = 2.0  # seconds after which a silent direct connection is checked

LINK_ERRORS: tuple[type[BaseException], ...] = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""What a statement may raise when the database is not there, or not there any more."""

Hear = Callable[[str], None]  # is called with the payload


class PostgresLink:
    """The connections of one process. Every user calls `open` and `aclose`; the last one closes them."""

    def __init__(self, url: str, *, pooler: str = "") -> None:
        self._url, self.schema = parse_address(url)
        self._pooler = parse_address(pooler)[0] if pooler else ""
        self._pool: Any = None
        self._pooling = asyncio.Lock()
        self._connection: Any = None
        self._using = asyncio.Lock()  # a connection runs one statement at a time
        self._used = 0.0
        self._channels: dict[str, Hear] = {}
        self._on_up: list[Callable[[], Awaitable[None]]] = []
        self.was_up = asyncio.Event()
        self._users = 0
        self._running: asyncio.Task[None] | None = None

    @property
    def is_up(self) -> bool:
        """Whether this process hears notifications now."""
        return self._connection is not None and not self._connection.is_closed()

    def table(self, name: str) -> str:
        """A table's name in SQL, with its schema: a connection of a pooler has no search path of ours."""
        return f'"{self.schema}".{name}' if self.schema else name

    def channel(self, name: str) -> str:
        """The name of a channel: those of a database are shared by all its schemas."""
        return f"everturn_{self.schema}_{name}" if self.schema else f"everturn_{name}"

    def on_up(self, callee: Callable[[], Awaitable[None]]) -> None:
        """Have a function called whenever there is a new direct connection; also now, if there is one."""
        self._on_up.append(callee)
        if self.is_up:
            self._start(callee())

    def open(self) -> None:
        """Connect, in the background."""
        self._users += 1
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())

    # Statements -------------------------------------------------------------------------------------------------------

    async def fetch(self, sql: str, *parameters: Any) -> list[Any]:
        """Run a statement as a transaction of its own, and return its rows."""
        if self._pool is None:
            async with self._pooling:
                if self._pool is None:
                    self._pool = await asyncpg.create_pool(  # pyright: ignore[reportUnknownMemberType]
                        self._pooler or self._url,
                        min_size=0,  # while the database is away, nothing is opened in vain
                        max_size=STATEMENT_CONNECTIONS,
                        timeout=CONNECT_TIMEOUT,
                        command_timeout=ANSWER_TIMEOUT,
                        statement_cache_size=0 if self._pooler else 100,
                        # Nothing to reset, and with a pooler the reset would go to another session.
                        reset=_leave_as_it_is,
                    )
        return await self._pool.fetch(sql, *parameters)

    async def notify(self, messages: list[tuple[str, str]]) -> None:
        """Notify channels, with one statement. Payloads have less than 8,000 bytes."""
        channels, payloads = [channel for channel, _ in messages], [payload for _, payload in messages]
        await self.fetch(
            "SELECT count(pg_notify(c, p)) FROM unnest($1::text[], $2::text[]) AS m(c, p)", channels, payloads
        )

    # The direct connection --------------------------------------------------------------------------------------------

    async def direct(self, sql: str, *parameters: Any) -> list[Any]:
        """Run a statement on the direct connection; if it does not answer in time, the connection is given up.

        Raises:
            ConnectionError: there is no connection now.
        """
        connection = self._connection
        if connection is None:
            raise ConnectionError("there is no connection to the database")
        return await self._run_on(connection, lambda: connection.fetch(sql, *parameters))

    async def listen(self, channel: str, hear: Hear) -> None:
        """Call a function with every payload of a channel; when this returns, the server has been told."""
        self._channels[channel] = hear
        if (connection := self._connection) is not None:
            await self._run_on(connection, lambda: connection.add_listener(channel, self._receive))

    async def unlisten(self, channel: str) -> None:
        """Stop listening to a channel."""
        self._channels.pop(channel, None)
        if (connection := self._connection) is not None:
            await self._run_on(connection, lambda: connection.remove_listener(channel, self._receive))

    def _receive(self, _connection: object, _pid: int, channel: str, payload: str) -> None:
        hear = self._channels.get(channel)
        if hear is None:
            return
        try:
            hear(payload)
        except Exception:  # asyncpg would only tell the event loop
            log.exception("a notification on %s could not be processed", channel)

    async def _run_on(self, connection: Any, statement: Callable[[], Awaitable[Any]]) -> Any:
        async with self._using:
            try:
                async with asyncio.timeout(ANSWER_TIMEOUT):
                    result = await statement()
            except TimeoutError:
                connection.terminate()
                raise
            self._used = asyncio.get_running_loop().time()
            return result

    async def _run(self) -> None:
        tries = 0
        while True:
            lost = asyncio.Event()
            try:
                connection = await self._connect(lost)
            except LINK_ERRORS as error:
                if tries == len(RETRY_PAUSES):
                    log.warning("the database does not answer; trying again: %r", error)
                await asyncio.sleep(RETRY_PAUSES[min(tries, len(RETRY_PAUSES) - 1)])
                tries += 1
                continue
            tries = 0
            try:
                await self._use(connection, lost)
            except LINK_ERRORS as error:
                log.warning("the connection for LISTEN was lost; opening it again: %r", error)
            finally:
                self._connection = None
                connection.terminate()

    async def _connect(self, lost: asyncio.Event) -> Any:
        connect: Any = getattr(asyncpg, "connect")  # noqa: B009 - it has no types
        connection = await connect(
            self._url,
            timeout=CONNECT_TIMEOUT,
            statement_cache_size=0,
            server_settings={"application_name": "everturn listens", "jit": "off"},
        )

        def end(_connection: object) -> None:
            lost.set()

        connection.add_termination_listener(end)
        return connection

    async def _use(self, connection: Any, lost: asyncio.Event) -> None:
        """Listen until the connection is lost."""
        for channel in list(self._channels):
            await connection.add_listener(channel, self._receive)
        self._connection = connection
        for channel in list(self._channels):  # that were added meanwhile; a second LISTEN is nothing
            await self._run_on(connection, lambda channel=channel: connection.add_listener(channel, self._receive))
        for callee in list(self._on_up):
            await callee()
        self.was_up.set()
        loop = asyncio.get_running_loop()
        while not lost.is_set():
            try:
                async with asyncio.timeout(PING_INTERVAL):
                    await lost.wait()
            except TimeoutError:
                if loop.time() - self._used >= PING_INTERVAL:
                    await self._run_on(connection, lambda: connection.fetchval("SELECT 1"))
        raise ConnectionError("the server has closed it")

    def _start(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            try:
                await work
            except LINK_ERRORS as error:
                log.debug("a new connection was lost immediately: %r", error)

        task = asyncio.get_running_loop().create_task(run())
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)

    async def aclose(self) -> None:
        """Close the connections, if this was the last user."""
        self._users -= 1
        if self._users > 0:
            return
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})
            self._running = None
        if self._pool is not None:
            try:
                async with asyncio.timeout(1.0):
                    await self._pool.close()
            except LINK_ERRORS:
                self._pool.terminate()
            self._pool = None


_tasks: set[asyncio.Task[None]] = set()  # asyncio may collect a task without a reference


async def _leave_as_it_is(_connection: object) -> None:
    """Do nothing when a connection is given back."""
