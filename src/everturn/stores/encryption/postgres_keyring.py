"""Keyring in a PostgreSQL database of its own, for processes on several machines.

Not the store's database: its backups would have the keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from everturn.errors import ConfigError, EverturnError, StoreUnavailable
from everturn.postgres.address import parse_address
from everturn.stores.encryption.key_rows import KeyRow

CONNECT_TIMEOUT: Final = 10.0  # seconds
_CREATE: Final = """SELECT pg_advisory_xact_lock(hashtextextended('everturn_keyring', 0));
CREATE TABLE IF NOT EXISTS everturn_keyring (
    name text PRIMARY KEY, master text NOT NULL, wrapped bytea NOT NULL, destroyed float8 NOT NULL)"""
_SELECT: Final = "SELECT name, master, wrapped, destroyed FROM everturn_keyring"
_INSERT: Final = "INSERT INTO everturn_keyring (name, master, wrapped, destroyed) VALUES ($1, $2, $3, $4)"
_SELECT_ALL: Final = f"{_SELECT} ORDER BY name"
_SELECT_NAMED: Final = f"{_SELECT} WHERE name = ANY($1::text[])"
_ADD: Final = f"{_INSERT} ON CONFLICT DO NOTHING"
_REPLACE: Final = f"""{_INSERT} ON CONFLICT (name) DO UPDATE SET master = excluded.master, wrapped = excluded.wrapped,
    destroyed = excluded.destroyed WHERE everturn_keyring.destroyed = 0 RETURNING name"""


class PostgresKeyring:
    """The rows of a keyring in a table."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Any = None  # asyncpg has no types
        self._lock = asyncio.Lock()
        self._has_table = False

    async def rows(self, names: Sequence[str] | None = None) -> list[KeyRow]:
        """Return the rows of these names, or all."""
        if not self._has_table:
            if await self._run("fetchval", "SELECT to_regclass('everturn_keyring')") is None:
                return []
            self._has_table = True
        if names is None:
            found = await self._run("fetch", _SELECT_ALL)
        else:
            found = await self._run("fetch", _SELECT_NAMED, list(names))
        return [_row(row) for row in found]

    async def add(self, row: KeyRow) -> KeyRow:
        """Add a row unless there is one of this name, and return the one that is there."""
        await self._create()
        await self._run("execute", _ADD, *_values(row))
        return (await self.rows([row.name]))[0]

    async def replace(self, row: KeyRow) -> bool:
        """Replace a row; False if it was destroyed."""
        await self._create()
        changed = await self._run("fetch", _REPLACE, *_values(row))
        if changed and row.destroyed:
            await self._run("execute", "VACUUM everturn_keyring")  # the old version of the row
        return bool(changed)

    async def aclose(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()

    async def _create(self) -> None:
        if not self._has_table:
            await self._run("execute", _CREATE)
            self._has_table = True

    async def _run(self, method: str, sql: str, *values: object) -> Any:
        """Run a statement, on a new connection if the last one was closed. Every statement may be run twice."""
        try:
            async with self._lock:
                for attempt in (1, 2):
                    if self._connection is None or self._connection.is_closed():
                        self._connection = await self._connect()
                    try:
                        return await getattr(self._connection, method)(sql, *values)
                    except Exception:
                        if attempt == 2 or not self._connection.is_closed():
                            raise
        except EverturnError:
            raise
        except Exception as error:
            raise StoreUnavailable(f"the keyring ([store.encryption] keyring) does not answer: {error}") from error

    async def _connect(self) -> Any:
        try:
            import asyncpg  # pyright: ignore[reportMissingTypeStubs]
        except ModuleNotFoundError as error:
            raise ConfigError("asyncpg is not installed; `pip install 'everturn[postgres]'`") from error
        address, schema = parse_address(self._url)
        settings = {"application_name": "everturn keyring"} | ({} if schema is None else {"search_path": f'"{schema}"'})
        connect: Callable[..., Any] = getattr(asyncpg, "connect")  # noqa: B009 - it has no types
        return await connect(address, timeout=CONNECT_TIMEOUT, statement_cache_size=0, server_settings=settings)


def _row(row: Any) -> KeyRow:
    return KeyRow(row[0], row[1], bytes(row[2]), row[3])


def _values(row: KeyRow) -> tuple[str, str, bytes, float]:
    return row.name, row.master, row.wrapped, row.destroyed
