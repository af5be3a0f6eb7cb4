"""A database of any age → one of the schema this code knows. Many processes may start at once: one of them does it.

The steps are scripts of SQL in migrations/scripts, written beforehand by Alembic; the driver that the store uses runs what
is missing, in one transaction behind a lock. So nobody needs a second driver, nor has to import Alembic and SQLAlchemy
to open a database, and an operator can read what will be done before it is.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, TypeAlias

from everturn.errors import ConfigError

# asyncpg has no types of its own that a strict reader could use.
Connection: TypeAlias = Any

HEAD = "0003"
"""The schema this code knows; tests hold it against migrations/versions."""

SCRIPTS = Path(__file__).parent / "migrations" / "scripts"

# A name of our own: the database may be an application's, which has migrations too.
VERSION = "everturn_version"

_WHICH = f"SELECT version_num FROM {VERSION}"
# By the schema the tables lie in, so that tenants of one database do not wait for each other. The limits that keep a
# connection from holding locks for long are not meant for this.
_LOCK = """
SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;
SELECT pg_advisory_xact_lock(hashtextextended('everturn.migrating.' || current_setting('search_path'), 0))
"""


def upgrade_sqlite(connection: sqlite3.Connection) -> None:
    """Bring a SQLite database up to date. The connection is in autocommit, and is so afterwards.

    Raises:
        ConfigError: a newer version of Everturn has been here.
    """
    if _is_current(_version_sqlite(connection)):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version_sqlite(connection)  # somebody else may have been quicker
        if not _is_current(version):
            for statement in _statements(script("sqlite", version)):
                connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


_HAS_SCHEMA = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1)"
_IS_THERE = f"""
SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND c.relname = '{VERSION}')
"""


async def upgrade_postgres(connection: Connection, schema: str | None = None) -> None:
    """Bring a PostgreSQL database up to date: what comes first in the connection's search path.

    With `schema`, that is to be its name: it is made if it is not there.

    Raises:
        ConfigError: a newer version of Everturn has been here.
    """
    if _is_current(await _version_postgres(connection)):
        return
    async with connection.transaction():
        await connection.execute(_LOCK)
        # Not only IF NOT EXISTS: that asks for the right to make one, also where it is there.
        if schema is not None and not await connection.fetchval(_HAS_SCHEMA, schema):
            await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        version = await _version_postgres(connection)
        if not _is_current(version):
            await connection.execute(script("postgresql", version))


def script(dialect: str, since: str | None = None) -> str:
    """What has to be said to a database at version `since` (None: an empty one) to make it current."""
    steps = sorted(SCRIPTS.glob(f"*.{dialect}.sql"))
    return "".join(step.read_text(encoding="utf-8") for step in steps if since is None or step.name > f"{since}.~")


def _is_current(version: str | None) -> bool:
    if version is not None and version > HEAD:
        raise ConfigError(
            f"this database has schema {version}, and this version of Everturn knows schemas up to {HEAD}: "
            "a newer version has upgraded it; run that one, or one newer still"
        )
    return version == HEAD


def _version_sqlite(connection: sqlite3.Connection) -> str | None:
    try:
        row = connection.execute(_WHICH).fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return None
    return row and row[0]


async def _version_postgres(connection: Connection) -> str | None:
    # Asked for by name first: inside a transaction a failed query would be the end of it. And asked of the tables: what
    # to_regclass has once not found, it may still not find in a transaction that waited for whoever was making it.
    if not await connection.fetchval(_IS_THERE):
        return None
    return await connection.fetchval(_WHICH)


def _statements(script: str) -> list[str]:
    """The statements of a script; sqlite3 has a function for all of them, but it commits first."""
    statements, begun = list[str](), ""
    for line in script.splitlines(keepends=True):
        begun += line
        if sqlite3.complete_statement(begun):
            statements.append(begun)
            begun = ""
    return statements
