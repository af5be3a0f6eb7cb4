"""Create, verify and restore a backup of any store that has one."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from pathlib import Path

from everturn.errors import ConfigError, StoreUnavailable, UnreadableLog
from everturn.postgres.address import is_postgres_url
from everturn.stores.backup import sqlite_backup
from everturn.stores.backup.manifest import BackupManifest, damaged_files, read_manifest, write_manifest
from everturn.stores.registry import SUFFIXES, without_password
from everturn.stores.sql.migrate import check_version

PROBLEMS_SHOWN = 20


async def create_backup(store: str, folder: str | Path) -> BackupManifest:
    """Copy a store, which may be in use, into a new folder.

    Args:
        store: a SQLite file, or the URL of a PostgreSQL database.
        folder: the backup; it must not exist.

    Raises:
        ConfigError: there is no such store, or the folder exists.
        StoreUnavailable: the store cannot be read, or the folder not be written.
    """
    target = Path(folder)
    file = sqlite_path(store)
    await asyncio.to_thread(_check_places, target, file)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        try:
            partial.mkdir(mode=0o700, parents=True)
            if file is not None:
                manifest = await asyncio.to_thread(sqlite_backup.create, file, partial)
            else:
                from everturn.stores.backup import postgres_backup

                manifest = await postgres_backup.create(store, partial)
            write_manifest(partial, manifest)
            partial.rename(target)
            _sync_folder(target.parent)
        except OSError as error:
            raise StoreUnavailable(f"the backup cannot be written to {target}: {error.strerror or error}") from error
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return manifest


def _check_places(target: Path, file: Path | None) -> None:
    if target.exists():
        raise ConfigError(f"{target} already exists; name a new folder for the backup")
    if file is not None and not file.exists():
        raise ConfigError(f"there is no store {file}; name an existing one with --store")


async def verify_backup(folder: str | Path) -> tuple[BackupManifest, list[str]]:
    """Check every file and every log of a backup; return its manifest, and a line for each problem.

    Raises:
        ConfigError: the folder is not a backup, or a newer version of Everturn wrote it.
    """
    path = Path(folder)
    manifest = read_manifest(path)
    check_version(manifest.schema)
    return manifest, await asyncio.to_thread(_problems, path, manifest)


def _problems(folder: Path, manifest: BackupManifest) -> list[str]:
    if problems := list(damaged_files(folder, manifest)):
        return problems
    if manifest.kind == "sqlite":
        return list(sqlite_backup.verify(folder, manifest))
    from everturn.stores.backup import postgres_backup

    return list(postgres_backup.verify(folder, manifest))


async def restore_backup(folder: str | Path, store: str) -> BackupManifest:
    """Restore a backup to a place where no store is; return its manifest. Its files are checked first.

    Raises:
        ConfigError: the folder is not a backup, there is a store already, or it is of another kind.
        UnreadableLog: the backup is damaged.
        StoreUnavailable: the store cannot be written.
    """
    path = Path(folder)
    manifest = read_manifest(path)
    check_version(manifest.schema)
    file = sqlite_path(store)
    kind = "postgresql" if file is None else "sqlite"
    if kind != manifest.kind:
        wanted = "a file such as talks.db" if manifest.kind == "sqlite" else "postgresql://user@host/database"
        raise ConfigError(f"{folder} is a backup of a {manifest.kind} store; restore it to one: --store {wanted}")
    if problems := await asyncio.to_thread(lambda: list(damaged_files(path, manifest))):
        shown = "; ".join(problems[:PROBLEMS_SHOWN])
        raise UnreadableLog(f"{folder} is damaged, and nothing was restored; use an older backup: {shown}")
    if file is None:
        from everturn.stores.backup import postgres_backup

        await postgres_backup.restore(path, manifest, store)
        return manifest
    try:
        await asyncio.to_thread(sqlite_backup.restore, path, manifest, file)
    except OSError as error:
        raise StoreUnavailable(f"the store cannot be written to {file}: {error.strerror or error}") from error
    return manifest


def sqlite_path(store: str) -> Path | None:
    """Return the file of a SQLite store; None for the URL of a PostgreSQL database.

    Raises:
        ConfigError: it is neither.
    """
    if is_postgres_url(store):
        return None
    if store.startswith("sqlite:") or ("://" not in store and Path(store).suffix in SUFFIXES):
        file = store.removeprefix("sqlite:").removeprefix("///").removeprefix("//")
        return Path(os.path.realpath(file))
    raise ConfigError(
        f"{without_password(store)!r} is neither a SQLite file such as talks.db nor postgresql://user@host/database; "
        "name one with --store"
    )


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
