"""Backup of a PostgreSQL store: COPY of every table in one snapshot; a restore is one transaction in an empty schema."""

from __future__ import annotations

import gzip
import hashlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from everturn.core.tenants.encryption import is_sealed
from everturn.errors import ConfigError, EverturnError, UnreadableLog
from everturn.postgres.address import parse_address
from everturn.stores.backup.copy_format import read_int, read_rows, read_text
from everturn.stores.backup.log_check import LogRow, check_logs
from everturn.stores.backup.manifest import (
    BLOCK,
    BackupFile,
    BackupManifest,
    StoreContents,
    describe_file,
    open_private,
    sync,
)
from everturn.stores.backup.tables import copied_tables, schema_script
from everturn.stores.sql.errors import translate_error
from everturn.stores.sql.migrate import check_version, lock_for_upgrade, postgres_version, upgrade_postgres

SUFFIX: Final = ".copy.gz"
LEVEL: Final = 3  # of gzip: three quarters of the best for a third of its time
CONNECT_TIMEOUT = 10.0  # seconds

_ORDER: Final[Mapping[str, str]] = {"events": " ORDER BY session, seq", "chunks": " ORDER BY blob, n"}
# Without the number of a log's partition: what is restored is in the first one (stores/sql/event_partitions.py).
_COLUMNS = """
SELECT a.attname FROM pg_catalog.pg_attribute a WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped
AND a.attgenerated = '' AND a.attname <> 'cohort' ORDER BY a.attnum
"""
_SERIALS = """
SELECT a.attname, pg_get_serial_sequence($1, a.attname) FROM pg_catalog.pg_attribute a
WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped AND pg_get_serial_sequence($1, a.attname) IS NOT NULL
"""
_CONTENTS = """
SELECT (SELECT count(*) FROM sessions WHERE NOT erased), (SELECT count(*) FROM events), (SELECT count(*) FROM blobs),
(SELECT count(*) FROM turns WHERE state != 'over'), (SELECT count(*) FROM gates WHERE is_open AND resolution IS NULL)
"""
_SETTINGS: Final = {
    "application_name": "everturn backup",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "row_security": "off",  # a role that may not see all rows is refused, instead of given a part of them
}


@asynccontextmanager
async def _connected(url: str) -> AsyncGenerator[tuple[Any, str | None]]:
    address, schema = parse_address(url)
    settings = dict(_SETTINGS) if schema is None else {**_SETTINGS, "search_path": f'"{schema}"'}
    try:
        connect: Any = getattr(asyncpg, "connect")  # noqa: B009 - it has no types
        connection = await connect(address, timeout=CONNECT_TIMEOUT, statement_cache_size=0, server_settings=settings)
        try:
            yield connection, schema
        finally:
            await connection.close()
    except EverturnError:
        raise
    except Exception as error:
        raise translate_error(error) from error


async def create(url: str, folder: Path) -> BackupManifest:
    """Copy the tables of a store into files of a folder; the store may be in use.

    Raises:
        ConfigError: there is no store in this database, or a newer version of Everturn wrote it.
        StoreUnavailable: the database does not answer.
    """
    async with _connected(url) as (connection, _), connection.transaction(isolation="repeatable_read", readonly=True):
        version = await postgres_version(connection)
        if version is None:
            raise ConfigError("there is no store in this database, or in this ?schema=; check the address in --store")
        version = check_version(version)
        files, columns = dict[str, BackupFile](), dict[str, tuple[str, ...]]()
        for table in copied_tables(version):
            columns[table] = tuple(row[0] for row in await connection.fetch(_COLUMNS, table))
            listed = ", ".join(f'"{column}"' for column in columns[table])
            query = f'SELECT {listed} FROM "{table}"{_ORDER.get(table, "")}'
            name = f"{table}{SUFFIX}"
            await _copy_out(connection, query, folder / name)
            files[name] = describe_file(folder / name)
        contents = StoreContents(*await connection.fetchrow(_CONTENTS))
    return BackupManifest(
        kind="postgresql", schema=version, created=time.time(), contents=contents, columns=columns, files=files
    )


async def _copy_out(connection: Any, query: str, path: Path) -> None:
    with open_private(path) as out:
        with gzip.GzipFile(filename="", fileobj=out, mode="wb", compresslevel=LEVEL, mtime=0) as packed:

            async def write(data: bytes) -> None:
                packed.write(data)

            await connection.copy_from_query(query, output=write, format="binary")
        sync(out)


def verify(folder: Path, manifest: BackupManifest) -> Iterator[str]:
    """Yield a line for each thing that is wrong in the tables of a backup. Blocks."""
    try:
        tables = _tables(manifest)
        counts = dict.fromkeys(tables, 0)
        heads = {
            read_text(row["id"]): read_int(row["head"])
            for row in _rows(folder, manifest, "sessions")
            if row["erased"] == b"\0"
        }
        yield from check_logs(_log_rows(folder, manifest), heads)
        for row in _rows(folder, manifest, "blobs"):
            name, data = read_text(row["name"]), row["data"]
            if row["place"] != b"row" or is_sealed(data or b""):  # an encrypted one is not named by its hash
                continue
            if hashlib.sha256(data or b"").hexdigest() != name:
                yield f"blob {name}: its bytes are damaged"
        for table in tables:  # to the end of each
            counts[table] = sum(1 for _ in read_rows(folder / f"{table}{SUFFIX}"))
        for table, expected in (("events", manifest.contents.events), ("blobs", manifest.contents.blobs)):
            if counts[table] != expected:
                yield f"{table}{SUFFIX}: {counts[table]} rows, and the manifest says {expected}"
        if len(heads) != manifest.contents.sessions:
            yield f"sessions{SUFFIX}: {len(heads)} sessions, and the manifest says {manifest.contents.sessions}"
    except UnreadableLog as error:
        yield str(error)


def _tables(manifest: BackupManifest) -> list[str]:
    tables = copied_tables(manifest.schema)
    for table in tables:
        columns = manifest.columns.get(table, ())
        if f"{table}{SUFFIX}" not in manifest.files or not columns:
            raise UnreadableLog(f"{table}{SUFFIX}: the manifest does not name it")
        if not all(column.isidentifier() for column in columns):
            raise UnreadableLog(f"{table}{SUFFIX}: the manifest names a column that cannot be one")
    return tables


def _rows(folder: Path, manifest: BackupManifest, table: str) -> Iterator[dict[str, bytes | None]]:
    columns = manifest.columns[table]
    for row in read_rows(folder / f"{table}{SUFFIX}"):
        if len(row) != len(columns):
            raise UnreadableLog(f"{table}{SUFFIX}: a row has {len(row)} values for {len(columns)} columns")
        yield dict(zip(columns, row, strict=True))


def _log_rows(folder: Path, manifest: BackupManifest) -> Iterator[LogRow]:
    for row in _rows(folder, manifest, "events"):
        yield read_text(row["session"]), read_int(row["seq"]), row["body"] or b""


async def restore(folder: Path, manifest: BackupManifest, url: str) -> None:
    """Restore a backup into a database, or a schema of it, that holds no store; all of it or nothing.

    Raises:
        ConfigError: there is a store already.
        StoreUnavailable: the database does not answer.
    """
    tables = _tables(manifest)
    async with _connected(url) as (connection, schema):
        async with connection.transaction():
            await lock_for_upgrade(connection, schema)
            if await postgres_version(connection) is not None:
                raise ConfigError(
                    "this database already contains a store, and a restore overwrites nothing: create an empty database, "
                    "or add ?schema=NAME to the address in --store"
                )
            await connection.execute(schema_script("postgresql", manifest.schema))
            for table in tables:
                # What triggers maintain is in the backup, too.
                await connection.execute(f'ALTER TABLE "{table}" DISABLE TRIGGER USER')
                await connection.copy_to_table(
                    table,
                    source=_unpacked(folder / f"{table}{SUFFIX}"),
                    columns=manifest.columns[table],
                    format="binary",
                )
                await connection.execute(f'ALTER TABLE "{table}" ENABLE TRIGGER USER')
                for column, sequence in await connection.fetch(_SERIALS, table):
                    top = f'SELECT coalesce(max("{column}"), 0) + 1 FROM "{table}"'
                    await connection.execute(f"SELECT setval('{sequence}', ({top}), false)")
            if "wakes" in tables:  # held by processes that do not exist here
                await connection.execute("UPDATE wakes SET worker = NULL, due = now() WHERE worker IS NOT NULL")
        await upgrade_postgres(connection, schema)
        for table in tables:
            await connection.execute(f'ANALYZE "{table}"')


async def _unpacked(path: Path) -> AsyncIterator[bytes]:
    with gzip.open(path, "rb") as file:
        while block := file.read(BLOCK):
            yield block
