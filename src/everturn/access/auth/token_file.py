"""Token file: the token of the local operator, in a file that no other user of the machine can read."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from pathlib import Path
from typing import Final

from everturn.errors import ConfigError

_TOKEN: Final = re.compile(r"evk_[A-Za-z0-9_-]{32,128}")
LONGEST: Final = 1024  # bytes that are read of it


def load_or_create_token(path: Path, made: str) -> str:
    """The token in a file; `made` is written there when there is none.

    Raises:
        ConfigError: other users can read the file, it is a link or another user's, or it holds no token.
    """
    for _ in range(3):  # it may be created or removed between the two attempts
        try:
            return _read(path)
        except FileNotFoundError:
            if _make(path, made):
                return made
    raise ConfigError(f"{path}: the token file keeps changing; does another program write there?")


def _make(path: Path, token: str) -> bool:
    """Write the file atomically; False if another process was first."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(new, flags, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(file.fileno(), 0o600)  # whatever the umask is
            file.write(token + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(new, path, follow_symlinks=False)
    except FileExistsError:
        return False
    finally:
        new.unlink(missing_ok=True)
    return True


def _read(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise FileNotFoundError(path) from None
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise ConfigError(
            f"{path}: the token file cannot be read: {reason}; remove it, and Everturn creates a new one"
        ) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(
                f"{path}: the token file is not a regular file; remove it, and Everturn creates a new one"
            )
        if status.st_uid != os.geteuid():
            raise ConfigError(
                f"{path}: the token file belongs to another user; remove it, and Everturn creates a new one"
            )
        if status.st_mode & 0o077:
            raise ConfigError(f"{path}: others can read the token file, so it is not used: chmod 600 {path}")
        text = os.read(descriptor, LONGEST).decode("ascii", "replace").strip()
    finally:
        os.close(descriptor)
    if not _TOKEN.fullmatch(text):
        raise ConfigError(f"{path}: it contains no token; remove it, and Everturn creates a new one")
    return text
