"""Where sessions are kept → whether they can be read and written there, by this version. Nothing is made or changed."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from everturn.cli.doctor_checks import Check, installing, plain
from everturn.cli.doctor_machine import nearest, size
from everturn.errors import ConfigError

if TYPE_CHECKING:
    from everturn.config.loading import Loaded

ABOUT: Final = "Sessions"
PATIENCE: Final = 0.5  # seconds that somebody who writes is waited for
ELSEWHERE: Final = "name another place: url under [store], or --store"


def place_of(loaded: Loaded, environment: Mapping[str, str]) -> str:
    """The store that is meant, without making a folder for it.

    Raises:
        ConfigError: it is written by a reference for which there is nothing here, or nobody says where home is.
    """
    from everturn.config.building import store_of
    from everturn.config.tools import data_folder

    # With a place that is configured nothing is made; without one a folder would be.
    return (
        store_of(loaded, "", environment) if loaded.config.store.url else str(data_folder(environment) / "everturn.db")
    )


def store(loaded: Loaded, environment: Mapping[str, str]) -> list[Check]:
    """The store, and what beside it is worth knowing."""
    try:
        place = place_of(loaded, environment)
    except ConfigError as error:
        return [Check(ABOUT, "store", "broken", plain(str(error)))]
    if place == "memory":
        return [Check(ABOUT, "store", "ok", "in memory: they end with their process")]
    if "://" in place and not place.startswith("sqlite:"):
        return [Check(ABOUT, "store", "ok", "in a database, see Services")]
    return in_file(Path(place.removeprefix("sqlite:").removeprefix("///").removeprefix("//")))


def in_file(path: Path) -> list[Check]:
    """A store in a file: there or still to be made, of which version, how large, and who has it."""
    shown = plain(str(path))
    if path.is_dir():
        return [Check(ABOUT, "store", "broken", f"{shown} is a folder, and no file", ELSEWHERE)]
    folder = nearest(path.parent)
    try:
        # Not os.access: that knows nothing of a disk that is read-only for everybody. Nothing of this is left.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        said = f"{shown} cannot be written: {plain(str(folder))}: {error.strerror}"
        return [Check(ABOUT, "store", "broken", said, ELSEWHERE)]
    if not path.exists():
        return [Check(ABOUT, "store", "absent", f"{shown}, made at the first start")]
    if not os.access(path, os.R_OK | os.W_OK):
        return [
            Check(
                ABOUT,
                "store",
                "broken",
                f"{shown} is not yours to read and write",
                f"chown or chmod it, or {ELSEWHERE}",
            )
        ]
    found = [_read(path, shown)]
    if holder := driver(path):
        mend = "that is fine; a second one needs a --store of its own, or that one to stop"
        found.append(Check(ABOUT, "driven by", "note", f"process {holder} has the store", mend))
    return found


def _read(path: Path, shown: str) -> Check:
    from everturn.stores.sql.migrating import HEAD, VERSION

    try:
        version = _version(path, VERSION)
    except sqlite3.Error as error:
        if "locked" in str(error) or "busy" in str(error):
            mend = "another process writes; look again, and stop it if this stays"
            return Check(ABOUT, "store", "note", f"{shown} is locked", mend)
        mend = f"bring a copy back that is whole, or {ELSEWHERE}"
        return Check(ABOUT, "store", "broken", plain(f"{shown}: {error}"), mend)
    beside = [path, path.with_name(f"{path.name}-wal")]
    large = sum(file.stat().st_size for file in beside if file.is_file())
    said = f"{shown}, {size(large)}"
    if version is None:
        return Check(ABOUT, "store", "note", f"{said}, and no session was ever kept in it")
    if version > HEAD:
        said = f"{shown} has schema {version}, and this Everturn knows up to {HEAD}: a newer one wrote it"
        return Check(ABOUT, "store", "broken", said, installing(upgrade=True))
    if version < HEAD:
        return Check(ABOUT, "store", "ok", f"{said}, schema {version}; {HEAD} when it is next opened")
    return Check(ABOUT, "store", "ok", f"{said}, schema {version}")


def _version(path: Path, table: str) -> str | None:
    """The schema that is written in a file. One that nobody has open is looked at without putting anything beside it."""
    log = path.with_name(f"{path.name}-wal")
    how = "mode=ro" if log.is_file() and log.stat().st_size else "mode=ro&immutable=1"
    database = sqlite3.connect(f"file:{quote(str(path.resolve()))}?{how}", uri=True, timeout=PATIENCE)
    try:
        row = database.execute(f"SELECT version_num FROM {table}").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return None
    finally:
        database.close()
    return str(row[0]) if row else None


def driver(path: Path) -> str:
    """The process that drives what is in a file, where the system says so; "": none does. The lock is not touched."""
    try:
        found = path.with_name(f"{path.name}.lock").stat()
        held = Path("/proc/locks").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    for line in held.splitlines():
        words = line.split()
        if len(words) > 5 and words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(found.st_ino):
            return words[4]
    return ""
