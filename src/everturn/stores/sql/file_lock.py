"""File lock beside a SQLite database: lets one process drive its sessions. It ends with that process."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

from everturn.errors import StoreBusy, StoreUnavailable


class FileLock:
    """A lock that is held until it is released."""

    def __init__(self, path: Path) -> None:
        """Take the lock.

        Raises:
            StoreBusy: another process holds it; the message says which.
            StoreUnavailable: the file cannot be created or locked.
        """
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreUnavailable(
                f"cannot create the lock file {path}: {error.strerror}; check that the folder exists and is writable"
            ) from error
        try:
            _lock(self._file)
        except OSError as error:
            os.close(self._file)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise StoreBusy(_busy(path)) from error
            raise StoreUnavailable(
                f"{path} cannot be locked: {error.strerror}; keep the store on a local disk"
            ) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Release the lock."""
        os.close(self._file)


def _busy(path: Path) -> str:
    pid = ""
    with suppress(OSError):
        pid = path.read_text(encoding="ascii", errors="replace").strip()
    return (
        f"process {pid or 'unknown'} already uses this store ({path} is locked); "
        "stop it first, or use another file (--store)"
    )


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        # Far behind the process id in the file: other processes cannot read a locked byte.
        os.lseek(file, 1024, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
