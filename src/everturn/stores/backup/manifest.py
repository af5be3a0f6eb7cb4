"""Manifest of a backup: what it holds, and the size and hash of each of its files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

import msgspec
from msgspec import Struct

from everturn.errors import ConfigError

FORMAT = 1
MANIFEST = "manifest.json"
BLOCK = 1 << 20  # bytes that are read at once

Kind = Literal["sqlite", "postgresql"]


class BackupFile(Struct, frozen=True):
    """A file of a backup."""

    size: int
    sha256: str


class StoreContents(Struct, frozen=True):
    """Row counts of a store; of a backup, at the moment of its snapshot."""

    sessions: int = 0
    events: int = 0
    blobs: int = 0
    open_turns: int = 0
    open_gates: int = 0


class BackupManifest(Struct, frozen=True, kw_only=True):
    """What a backup holds. Without this file a folder is not a backup: it is written last."""

    format: int = FORMAT
    kind: Kind
    schema: str  # version of the database schema
    created: float
    contents: StoreContents
    problems: tuple[str, ...] = ()  # what was damaged in the store already
    columns: dict[str, tuple[str, ...]] = {}  # of each table, on PostgreSQL
    files: dict[str, BackupFile] = {}


def write_manifest(folder: Path, manifest: BackupManifest) -> None:
    """Write the manifest and sync it to disk."""
    data = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    with open_private(folder / MANIFEST) as out:
        out.write(data)
        sync(out)


def read_manifest(folder: Path) -> BackupManifest:
    """Read the manifest of a backup.

    Raises:
        ConfigError: the folder is not a backup, or a newer version of Everturn wrote it.
    """
    try:
        data = (folder / MANIFEST).read_bytes()
    except OSError:
        raise ConfigError(
            f"{folder} is not a backup: it has no {MANIFEST}; name the folder that `everturn backup create` made"
        ) from None
    try:
        manifest = msgspec.json.decode(data, type=BackupManifest)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{folder / MANIFEST} cannot be read ({error}); use another backup") from None
    if manifest.format > FORMAT:
        raise ConfigError(
            f"{folder} has backup format {manifest.format}, and this version of Everturn knows formats up to {FORMAT}: "
            "use the version that wrote it, or a newer one"
        )
    return manifest


def open_private(path: Path) -> IO[bytes]:
    """Create a file that only its owner can read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600), "wb")


def sync(out: IO[bytes]) -> None:
    """Sync a file to disk."""
    out.flush()
    os.fsync(out.fileno())


def describe_file(path: Path) -> BackupFile:
    """Return the size and the hash of a file."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as opened:
        while block := opened.read(BLOCK):
            digest.update(block)
            size += len(block)
    return BackupFile(size, digest.hexdigest())


def copy_file(source: Path, target: Path) -> BackupFile:
    """Copy a file, sync the copy to disk, and return its size and hash."""
    digest, size = hashlib.sha256(), 0
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with source.open("rb") as opened, open_private(target) as out:
        while block := opened.read(BLOCK):
            digest.update(block)
            size += len(block)
            out.write(block)
        sync(out)
    return BackupFile(size, digest.hexdigest())


def damaged_files(folder: Path, manifest: BackupManifest) -> Iterator[str]:
    """Yield a line for each file that is missing or differs from the manifest."""
    for name, expected in manifest.files.items():
        if not _is_below(name):
            yield f"{name}: a backup has no such file name"
            continue
        try:
            found = describe_file(folder / name)
        except OSError as error:
            yield f"{name}: {error.strerror or error}"
            continue
        if found.size != expected.size:
            yield f"{name}: {found.size} bytes instead of {expected.size}"
        elif found.sha256 != expected.sha256:
            yield f"{name}: its bytes have changed"


def _is_below(name: str) -> bool:
    path = Path(name)
    return not path.is_absolute() and ".." not in path.parts
