"""Bytes → a file that only its owner can read and write: replaced as a whole, by one writer at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Generator
from pathlib import Path

from everturn.errors import ConfigError

_LARGEST = 16_000_000  # bytes
_WAIT = 5.0  # seconds for another process that writes


def read_private(path: Path) -> bytes | None:
    """What is in a file; None when there is none.

    Raises:
        ConfigError: it cannot be read, or others could have written it.
    """
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
                raise ConfigError(f"{path} is not a file that was written here; move it away")
            if found.st_uid != os.geteuid() or found.st_mode & 0o022:
                raise ConfigError(f"{path} could have been written by others; look what is in it, then `chmod 600` it")
            return file.read(_LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None


def write_private(path: Path, data: bytes) -> None:
    """Put bytes in the place of a file, all or none; nobody else can read them at any time.

    Raises:
        ConfigError: it cannot be written, or could not be read again.
    """
    if len(data) > _LARGEST:
        raise ConfigError(f"{path} would be larger than {_LARGEST} bytes; forget what you no longer use")
    beside = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}; name another place") from None


@contextlib.contextmanager
def locked(path: Path) -> Generator[None]:
    """Be the one who reads and then writes a file.

    Raises:
        ConfigError: somebody else does, and does not end.
    """
    beside = path.with_name(f".{path.name}.lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}; name another place") from None
    try:
        until = time.monotonic() + _WAIT
        while True:
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise ConfigError(f"{path} is being written by another process; try again") from None
                time.sleep(0.01)
        yield
    finally:
        os.close(number)
