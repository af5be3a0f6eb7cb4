"""Store check: whether sessions can be read and written by this version. It creates and changes nothing."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from everturn.cli.doctor.checks import DoctorCheck, install_command, make_printable
from everturn.cli.doctor.machine import format_bytes, nearest_existing_folder
from everturn.errors import ConfigError, EverturnError

if TYPE_CHECKING:
    from everturn.config.load import LoadedConfig

ABOUT: Final = "Sessions"
PATIENCE: Final = 0.5  # seconds to wait for another process that writes
ENCRYPT: Final = "[store.encryption] encrypts it with a key per tenant"
ELSEWHERE: Final = "name another place: url under [store], or --store"


def resolve_configured_store(loaded: LoadedConfig, environment: Mapping[str, str]) -> str:
    """Return the store that is configured, without creating a folder for it.

    Raises:
        ConfigError: the store is given by a reference that does not resolve here, or there is no home folder.
    """
    from everturn.config.build import configured_store
    from everturn.config.tools import data_folder

    # `open_backend` creates a folder for the default store, but nothing for a configured one.
    return (
        configured_store(loaded, "", environment)
        if loaded.config.store.url
        else str(data_folder(environment) / "everturn.db")
    )


def check_store(loaded: LoadedConfig, environment: Mapping[str, str]) -> list[DoctorCheck]:
    """Check the store that is configured."""
    try:
        place = resolve_configured_store(loaded, environment)
    except ConfigError as error:
        return [DoctorCheck(ABOUT, "store", "broken", make_printable(str(error)))]
    return [*_check_place(place), *check_encryption(loaded, environment, place)]


def check_encryption(loaded: LoadedConfig, environment: Mapping[str, str], place: str) -> list[DoctorCheck]:
    """Check whether stored content is encrypted, and whether the master keys open the keyring."""
    from everturn.config.encryption import key_provider

    table = loaded.config.store.encryption
    if not (table.keyring or table.master_keys or table.provider):
        return [DoctorCheck(ABOUT, "encryption", "absent", "off: what is stored is plain text", ENCRYPT)]
    try:
        provider = key_provider(loaded, environment, place)
        check: Any = getattr(provider, "check", None)
        if check is None:
            return [DoctorCheck(ABOUT, "encryption", "ok", f"on, with the keys of {table.provider}")]
        asyncio.run(_open_keyring(provider))
    except EverturnError as error:
        return [DoctorCheck(ABOUT, "encryption", "broken", make_printable(str(error)))]
    plain = "; allow_plaintext is on" if table.allow_plaintext else ""
    return [DoctorCheck(ABOUT, "encryption", "ok", f"on, and the master key opens the keyring{plain}")]


async def _open_keyring(provider: Any) -> None:
    try:
        await provider.check()
    finally:
        await provider.aclose()


def _check_place(place: str) -> list[DoctorCheck]:
    if place == "memory":
        return [DoctorCheck(ABOUT, "store", "ok", "in memory: they end with their process")]
    if "://" in place and not place.startswith("sqlite:"):
        return [DoctorCheck(ABOUT, "store", "ok", "in a database, see Services")]
    return check_store_file(Path(place.removeprefix("sqlite:").removeprefix("///").removeprefix("//")))


def check_store_file(path: Path) -> list[DoctorCheck]:
    """Check a store in a file: whether it exists, its schema version, its size, and the process that drives it."""
    shown = make_printable(str(path))
    if path.is_dir():
        return [DoctorCheck(ABOUT, "store", "broken", f"{shown} is a folder, and no file", ELSEWHERE)]
    folder = nearest_existing_folder(path.parent)
    try:
        # Not os.access: that does not see a read-only file system. The temporary file leaves nothing behind.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        detail = f"{shown} cannot be written: {make_printable(str(folder))}: {error.strerror}"
        return [DoctorCheck(ABOUT, "store", "broken", detail, ELSEWHERE)]
    if not path.exists():
        return [DoctorCheck(ABOUT, "store", "absent", f"{shown}, made at the first start")]
    if not os.access(path, os.R_OK | os.W_OK):
        return [
            DoctorCheck(
                ABOUT,
                "store",
                "broken",
                f"{shown} is not yours to read and write",
                f"chown or chmod it, or {ELSEWHERE}",
            )
        ]
    checks = [_read(path, shown)]
    if holder := find_lock_holder(path):
        fix = "that is fine; a second one needs a --store of its own, or that one to stop"
        checks.append(DoctorCheck(ABOUT, "driven by", "note", f"process {holder} has the store", fix))
    return checks


def _read(path: Path, shown: str) -> DoctorCheck:
    from everturn.stores.sql.migrate import HEAD, PRERELEASE_TABLE, VERSION_TABLE

    try:
        version = _version(path, VERSION_TABLE)
        is_prerelease = version is None and _version(path, PRERELEASE_TABLE) is not None
    except sqlite3.Error as error:
        if "locked" in str(error) or "busy" in str(error):
            fix = "another process writes; look again, and stop it if this stays"
            return DoctorCheck(ABOUT, "store", "note", f"{shown} is locked", fix)
        fix = f"bring a copy back that is whole, or {ELSEWHERE}"
        return DoctorCheck(ABOUT, "store", "broken", make_printable(f"{shown}: {error}"), fix)
    files = [path, path.with_name(f"{path.name}-wal")]
    total = sum(file.stat().st_size for file in files if file.is_file())
    detail = f"{shown}, {format_bytes(total)}"
    if is_prerelease:
        detail = f"{shown} was written by a development version before 0.1, and cannot be upgraded"
        return DoctorCheck(ABOUT, "store", "broken", detail, f"move it away, or {ELSEWHERE}")
    if version is None:
        return DoctorCheck(ABOUT, "store", "note", f"{detail}, and no session was ever kept in it")
    if version > HEAD:
        detail = f"{shown} has schema {version}, and this Everturn knows up to {HEAD}: a newer one wrote it"
        return DoctorCheck(ABOUT, "store", "broken", detail, install_command(upgrade=True))
    if version < HEAD:
        return DoctorCheck(ABOUT, "store", "ok", f"{detail}, schema {version}; {HEAD} when it is next opened")
    return DoctorCheck(ABOUT, "store", "ok", f"{detail}, schema {version}")


def _version(path: Path, table: str) -> str | None:
    """Return the schema version in a file.

    One that no process has open is read as immutable, which creates no files beside it.
    """
    log = path.with_name(f"{path.name}-wal")
    mode = "mode=ro" if log.is_file() and log.stat().st_size else "mode=ro&immutable=1"
    database = sqlite3.connect(f"file:{quote(str(path.resolve()))}?{mode}", uri=True, timeout=PATIENCE)
    try:
        row = database.execute(f"SELECT version_num FROM {table}").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return None
    finally:
        database.close()
    return str(row[0]) if row else None


def find_lock_holder(path: Path) -> str:
    """Return the id of the process that holds the lock of a store, on systems with /proc, else "".

    The lock is not touched.
    """
    try:
        lock_status = path.with_name(f"{path.name}.lock").stat()
        locks = Path("/proc/locks").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    for line in locks.splitlines():
        columns = line.split()
        if len(columns) > 5 and columns[1] == "FLOCK" and columns[5].rpartition(":")[2] == str(lock_status.st_ino):
            return columns[4]
    return ""
