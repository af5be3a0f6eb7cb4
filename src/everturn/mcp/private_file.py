"""Private file: readable and writable by its owner alone, replaced atomically, written by one process at a time."""

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
    """Read a file; None if it does not exist.

    Raises:
        ConfigError: the file cannot be read, or other users could have written it.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
                raise ConfigError(f"{path} was not written by Everturn; move it away")
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                raise ConfigError(f"{path} can be written by other users; check its content, then `chmod 600` it")
            return file.read(_LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None


def write_private(path: Path, data: bytes) -> None:
    """Replace a file atomically; at no time can other users read it.

    Raises:
        ConfigError: the file cannot be written, or would be too large to be read again.
    """
    if len(data) > _LARGEST:
        raise ConfigError(f"{path} would be larger than {_LARGEST} bytes; remove entries that you no longer use")
    partial = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}; name another place") from None


@contextlib.contextmanager
def lock_file(path: Path) -> Generator[None]:
    """Hold the lock of a file, to read and then write it.

    Raises:
        ConfigError: another process holds the lock for too long.
    """
    lock_path = path.with_name(f".{path.name}.lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}; name another place") from None
    try:
        deadline = time.monotonic() + _WAIT
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ConfigError(f"{path} is being written by another process; try again") from None
                time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)
