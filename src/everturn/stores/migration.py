"""Migration as a step of its own: the schema version of a store, what an upgrade would do, and the upgrade.

A store upgrades its database when it is opened. An operator who wants to choose the moment checks the version at start
(`require_current_schema`) and upgrades with `everturn migrate apply`.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from everturn.errors import ConfigError, EverturnError, StoreUnavailable
from everturn.postgres.address import parse_address
from everturn.stores.backup.commands import sqlite_path
from everturn.stores.registry import without_password
from everturn.stores.sql import migrate

BUSY_TIMEOUT = 30.0  # seconds
CONNECT_TIMEOUT = 10.0  # seconds


class SchemaStatus(Struct, frozen=True):
    """The schema of a store."""

    store: str
    version: str  # "": there is no store yet
    newest: str = migrate.HEAD  # the version that this Everturn needs
    sql: str = ""  # the statements that lead from one to the other

    @property
    def is_current(self) -> bool:
        """Whether nothing is to be done: the schema is this one, or a newer one that this version can use."""
        return self.version >= self.newest

    @property
    def steps(self) -> list[str]:
        """The versions that an upgrade goes through."""
        return migrate.upgrade_steps(self.version or None)


async def schema_status(store: str) -> SchemaStatus:
    """Return the schema version of a store, without changing it.

    Raises:
        ConfigError: this kind of store has no schema, or a newer version of Everturn has upgraded it.
        StoreUnavailable: it does not answer.
    """
    return await _run(store, "status")


async def migrate_store(store: str, *, dry_run: bool = False) -> SchemaStatus:
    """Upgrade a store, and return its status before that. With `dry_run`, the upgrade is rolled back.

    Raises:
        ConfigError: this kind of store has no schema, or a newer version of Everturn has upgraded it.
        StoreUnavailable: it does not answer, or a statement failed; nothing was changed.
    """
    return await _run(store, "dry run" if dry_run else "apply")


async def require_current_schema(store: str) -> None:
    """Refuse a store whose schema is not the one that this version of Everturn needs.

    Raises:
        ConfigError: it has an older schema, a newer one that this version cannot use, or none yet.
        StoreUnavailable: it does not answer.
    """
    status = await schema_status(store)
    if not status.is_current:
        found = f"has schema {status.version}" if status.version else "has no tables yet"
        raise ConfigError(
            f"the store {status.store} {found}, this version of Everturn needs {status.newest}, and it may not migrate "
            "at start ([store] migrate = false): run `everturn migrate apply` first"
        )


async def _run(store: str, action: str) -> SchemaStatus:
    file = sqlite_path(store)
    name = without_password(store)
    if file is not None:
        return await asyncio.to_thread(_run_sqlite, name, file, action)
    try:
        return await _run_postgres(name, store, action)
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is not installed; `pip install 'everturn[postgres]'`") from error


def _status(name: str, dialect: str, version: str | None, compatible_since: str | None = None) -> SchemaStatus:
    if version is not None:
        migrate.check_version(version, compatible_since)
    return SchemaStatus(name, version or "", sql=migrate.upgrade_script(dialect, version))


def _run_sqlite(name: str, file: Path, action: str) -> SchemaStatus:
    if not file.exists():
        if action != "apply":
            return _status(name, "sqlite", None)
        try:
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))  # readable by its owner only
        except OSError as error:
            raise StoreUnavailable(f"{file} cannot be created: {error.strerror}") from error
    url = f"file:{quote(str(file))}?mode=rw"
    try:
        with closing(sqlite3.connect(url, uri=True, timeout=BUSY_TIMEOUT, isolation_level=None)) as connection:
            version, compatible = migrate.sqlite_version(connection), migrate.sqlite_compatible(connection)
            status = _status(name, "sqlite", version, compatible)
            if action != "status":
                migrate.upgrade_sqlite(connection, dry_run=action == "dry run")
            return status
    except sqlite3.Error as error:
        raise StoreUnavailable(f"the store in {file} was not changed: {error}") from error


async def _run_postgres(name: str, url: str, action: str) -> SchemaStatus:
    async with _connected(url) as (connection, schema):
        version, compatible = await migrate.postgres_version(connection), await migrate.postgres_compatible(connection)
        status = _status(name, "postgresql", version, compatible)
        if action != "status":
            await migrate.upgrade_postgres(connection, schema, dry_run=action == "dry run")
        return status


@asynccontextmanager
async def _connected(url: str) -> AsyncGenerator[tuple[Any, str | None]]:
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    from everturn.stores.sql.errors import translate_error

    address, schema = parse_address(url)
    settings = {"application_name": "everturn migrate"} | ({} if schema is None else {"search_path": f'"{schema}"'})
    connect: Callable[..., Any] = getattr(asyncpg, "connect")  # noqa: B009 - it has no types
    try:
        connection = await connect(address, timeout=CONNECT_TIMEOUT, statement_cache_size=0, server_settings=settings)
        try:
            yield connection, schema
        finally:
            await connection.close()
    except EverturnError:
        raise
    except Exception as error:
        raise translate_error(error) from error
