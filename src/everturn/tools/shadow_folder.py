"""A folder and a store → whether the one is kept in the other: a store is of one folder, wherever that is moved."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec
from msgspec import Struct

from everturn.errors import ConfigError


class Identity(Struct, frozen=True, array_like=True):
    """Which folder it is."""

    path: bytes
    device: int
    inode: int

    def is_of(self, other: Identity) -> bool:
        """Whether both are one folder: in its old place, or moved."""
        return self.path == other.path or (self.device, self.inode) == (other.device, other.inode)


def check_folder(folder: Path, store_dir: Path) -> None:
    """See that a store, if there is one, is of this folder.

    Raises:
        ConfigError: it is of another one.
    """
    _compare(folder, store_dir)


def claim_folder(folder: Path, store_dir: Path) -> None:
    """Make a store that of this folder, and write down where it is now; one at a time.

    Raises:
        ConfigError: it is of another one.
    """
    known, now = _compare(folder, store_dir)
    if now is not None and known != now:
        handle, unfinished = tempfile.mkstemp(prefix="folder-", dir=store_dir)
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.msgpack.encode(now))
        os.replace(unfinished, store_dir / "folder")


def _compare(folder: Path, store_dir: Path) -> tuple[Identity | None, Identity | None]:
    """Who is known and who is here."""
    try:
        status = os.stat(folder)
    except OSError:
        return None, None  # it is gone, which is told by who looks into it
    now = Identity(os.fsencode(folder), status.st_dev, status.st_ino)
    try:
        known = msgspec.msgpack.decode((store_dir / "folder").read_bytes(), type=Identity)
    except FileNotFoundError:
        return None, now
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise ConfigError(
            f"{store_dir / 'folder'}, which says what {store_dir} holds snapshots of, cannot be read ({error}): choose "
            f"another store_dir; or remove that file, if they are of {folder}"
        ) from error
    if not known.is_of(now):
        raise ConfigError(
            f"{store_dir} holds the snapshots of {os.fsdecode(known.path)}, and {folder} is another folder: choose "
            "another store_dir for it, or another name"
        )
    return known, now
