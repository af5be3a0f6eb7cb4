"""Backup of a SQLite store: a copy of the file in one read transaction, and of the blob files that the copy names.

Blob files are never changed, only added and removed. So they are copied after the database; if the retention job has
removed one meanwhile, a newer copy of the database does not name it any more.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from everturn.core.tenants.encryption import is_sealed
from everturn.errors import ConfigError, StoreUnavailable
from everturn.stores.backup.log_check import check_logs
from everturn.stores.backup.manifest import BackupFile, BackupManifest, StoreContents, copy_file, describe_file, sync
from everturn.stores.sql.migrate import check_version, upgrade_sqlite

DATABASE = "store.db"
BLOBS = "blobs"
TRIES = 3  # snapshots, while the retention job removes blobs that the last one names
BUSY_TIMEOUT = 30.0  # seconds

_CONTENTS = """
SELECT (SELECT count(*) FROM sessions WHERE NOT erased), (SELECT count(*) FROM events), (SELECT count(*) FROM blobs),
(SELECT count(*) FROM turns WHERE state != 'over'),
(SELECT count(*) FROM gates WHERE is_open = 1 AND resolution IS NULL)
"""


def create(source: Path, folder: Path) -> BackupManifest:
    """Copy a store into a folder. Blocks; the store may be in use.

    Raises:
        StoreUnavailable: the store cannot be read.
    """
    copied = None
    for tries_left in reversed(range(TRIES)):
        try:
            _copy_database(source, folder / DATABASE)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the store in {source} cannot be copied: {error}") from error
        copied = _copy_blobs(Path(f"{source}-blobs"), folder, is_last=tries_left == 0)
        if copied is not None:
            break
    assert copied is not None
    files, problems = copied
    with closing(_open(folder / DATABASE, "ro")) as copy:
        version = check_version(copy.execute("SELECT version_num FROM everturn_schema").fetchone()[0])
        contents = StoreContents(*copy.execute(_CONTENTS).fetchone())
    files[DATABASE] = describe_file(folder / DATABASE)
    return BackupManifest(
        kind="sqlite",
        schema=version,
        created=time.time(),
        contents=contents,
        problems=tuple(problems),
        files=files,
    )


def _open(path: Path, mode: str) -> sqlite3.Connection:
    # By URI: a file that does not exist is not created.
    return sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=BUSY_TIMEOUT, isolation_level=None)


def _copy_database(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    with closing(_open(source, "rw")) as store, closing(_open(target, "rw")) as copy:
        store.backup(copy)  # in one step: it reads one snapshot, and writers go on
        copy.execute("PRAGMA journal_mode = DELETE").fetchall()  # one file, without a -wal beside it
        has_erased = copy.execute("SELECT 1 FROM sessions WHERE erased AND token = 'erased' LIMIT 1").fetchone()
        if has_erased:  # pieces of erased sessions may be left in pages and in the index: not in a backup
            copy.execute("PRAGMA secure_delete = ON").fetchall()
            copy.execute("INSERT INTO lookup_words(lookup_words) VALUES ('optimize')")
            copy.execute("UPDATE sessions SET token = '' WHERE erased AND token = 'erased'")
            copy.execute("VACUUM")
    with target.open("rb+") as written:
        sync(written)


def _copy_blobs(source: Path, folder: Path, is_last: bool) -> tuple[dict[str, BackupFile], list[str]] | None:
    """Copy the blob files that the copied database names; return them and problems; None: one was removed meanwhile."""
    with closing(_open(folder / DATABASE, "ro")) as copy:
        rows = copy.execute("SELECT name, data FROM blobs WHERE place = 'folder' ORDER BY name").fetchall()
    files, problems = dict[str, BackupFile](), list[str]()
    for name, data in rows:
        file = bytes(data).decode()
        target = folder / BLOBS / file[:2] / file
        try:
            copied = describe_file(target) if target.exists() else copy_file(source / file[:2] / file, target)
        except FileNotFoundError:
            if not is_last:
                return None
            problems.append(f"blob {name}: its file was missing in the store")
            continue
        if copied.sha256 != name and not is_sealed(_first_bytes(target)):  # an encrypted one is not named by its hash
            problems.append(f"blob {name}: its bytes were damaged in the store")
        files[f"{BLOBS}/{file[:2]}/{file}"] = copied
    _remove_others(folder, set(files))
    return files, problems


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(2)


def _remove_others(folder: Path, files: set[str]) -> None:
    """Remove blob files of an earlier snapshot that this one does not name."""
    for path in (folder / BLOBS).glob("??/*"):
        if f"{BLOBS}/{path.parent.name}/{path.name}" not in files:
            path.unlink()


def verify(folder: Path, manifest: BackupManifest) -> Iterator[str]:
    """Yield a line for each thing that is wrong in the database of a backup. Blocks."""
    try:
        with closing(_open(folder / DATABASE, "ro")) as copy:
            for (line,) in copy.execute("PRAGMA integrity_check(20)"):
                if line != "ok":
                    yield f"{DATABASE}: {line}"
            heads = dict(copy.execute("SELECT id, head FROM sessions WHERE NOT erased").fetchall())
            rows = copy.execute("SELECT session, seq, body FROM events ORDER BY session, seq")
            yield from check_logs(((session, seq, bytes(body)) for session, seq, body in rows), heads)
            for name, data in copy.execute("SELECT name, data FROM blobs WHERE place = 'row'"):
                if not is_sealed(bytes(data or b"")) and hashlib.sha256(bytes(data or b"")).hexdigest() != name:
                    yield f"blob {name}: its bytes are damaged"
            found = StoreContents(*copy.execute(_CONTENTS).fetchone())
            if found != manifest.contents:
                yield f"{DATABASE}: it holds {found}, and the manifest says {manifest.contents}"
    except sqlite3.Error as error:
        yield f"{DATABASE}: {error}"


def restore(folder: Path, manifest: BackupManifest, target: Path) -> None:
    """Restore a backup to a path where no store is. Blocks.

    Raises:
        ConfigError: there is a store already.
    """
    blobs = Path(f"{target}-blobs")
    for path in (target, blobs, Path(f"{target}-wal")):
        if path.exists():
            raise ConfigError(
                f"{path} already exists, and a restore overwrites nothing: name another file with --store, "
                "or move this one away"
            )
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.restoring")
    partial.unlink(missing_ok=True)
    for name in manifest.files:
        if name.startswith(f"{BLOBS}/"):
            copy_file(folder / name, blobs / name.removeprefix(f"{BLOBS}/"))
    copy_file(folder / DATABASE, partial)
    with closing(_open(partial, "rw")) as copy:
        upgrade_sqlite(copy)
    partial.rename(target)  # last: until then there is no store at this path
