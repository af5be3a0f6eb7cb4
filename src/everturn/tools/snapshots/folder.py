"""Folder identity of a snapshot store: a store belongs to one folder, also after that was moved."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec
from msgspec import Struct

from everturn.errors import ConfigError


class FolderIdentity(Struct, frozen=True, array_like=True):
    """Identifies a folder by its path, device and inode."""

    path: bytes
    device: int
    inode: int

    def is_same_folder(self, other: FolderIdentity) -> bool:
        """Whether both are the same folder: in its old place, or moved."""
        return self.path == other.path or (self.device, self.inode) == (other.device, other.inode)


def check_folder(folder: Path, store_dir: Path) -> None:
    """Check that a store, if it exists, belongs to this folder.

    Raises:
        ConfigError: the store belongs to another folder.
    """
    _compare(folder, store_dir)


def claim_folder(folder: Path, store_dir: Path) -> None:
    """Bind a store to this folder, and record the folder's current place; callers hold the store's lock.

    Raises:
        ConfigError: the store belongs to another folder.
    """
    known, now = _compare(folder, store_dir)
    if now is not None and known != now:
        handle, unfinished = tempfile.mkstemp(prefix="folder-", dir=store_dir)
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.msgpack.encode(now))
        os.replace(unfinished, store_dir / "folder")


def _compare(folder: Path, store_dir: Path) -> tuple[FolderIdentity | None, FolderIdentity | None]:
    """The recorded identity and the current one."""
    try:
        status = os.stat(folder)
    except OSError:
        return None, None  # it does not exist, which is reported where the folder is read
    now = FolderIdentity(os.fsencode(folder), status.st_dev, status.st_ino)
    try:
        known = msgspec.msgpack.decode((store_dir / "folder").read_bytes(), type=FolderIdentity)
    except FileNotFoundError:
        return None, now
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise ConfigError(
            f"{store_dir / 'folder'}, which names the folder of the snapshots, cannot be read ({error}): choose "
            f"another store_dir; or remove that file, if they are of {folder}"
        ) from error
    if not known.is_same_folder(now):
        raise ConfigError(
            f"{store_dir} holds the snapshots of {os.fsdecode(known.path)}, and {folder} is another folder: choose "
            "another store_dir for it, or another name"
        )
    return known, now
