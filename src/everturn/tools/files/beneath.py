"""A root and the parts of a path → a directory that is beneath it, whatever anybody does to the names meanwhile.

No link is followed, not even one that stays inside: what a rule judged by its name is then what is opened. Linux does it
in one call (`openat2`); elsewhere, and where a filter forbids that call, each part is opened in the one before it.
Never by comparing texts.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

_OPENAT2: Final = 437  # the same on every architecture that Linux calls current
_RESOLVE: Final = 0x08 | 0x04 | 0x02  # BENEATH | NO_SYMLINKS | NO_MAGICLINKS
_TRIES = 8  # the kernel may ask for another when names move under its feet
_NOREPLACE: Final = 1
DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

CAN_WALK: Final = {os.open, os.mkdir, os.stat, os.unlink} <= os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""Whether this system opens names relative to a directory at all. Windows does not."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


@cache
def has_openat2() -> bool:
    """Whether the kernel has it, and lets us use it."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        os.close(_openat2(-100, "."))  # AT_FDCWD
    except OSError:
        return False
    return True


def _openat2(directory: int, path: str) -> int:
    how = _How(DIRECTORY, 0, _RESOLVE)
    name = os.fsencode(path)
    for _ in range(_TRIES):
        found: int = _libc().syscall(_OPENAT2, directory, name, ctypes.byref(how), ctypes.sizeof(how))
        if found >= 0:
            return found
        number = ctypes.get_errno()
        if number not in (errno.EAGAIN, errno.EINTR):
            raise OSError(number, os.strerror(number), path)
    raise OSError(errno.EAGAIN, "names are being changed all the time", path)


def open_directory(root: int, parts: Sequence[str], *, in_one: bool, make: bool = False) -> int:
    """Open a directory beneath an open one. With `make`, those that are missing are made.

    Raises:
        OSError: ELOOP for a link on the way, and whatever else `open` has to say.
    """
    if in_one and not make:
        return _openat2(root, "/".join(parts) or ".")
    here = os.open(".", DIRECTORY, dir_fd=root)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=here)
            there = _step(here, part)
            os.close(here)
            here = there
    except BaseException:
        os.close(here)
        raise
    return here


def _step(here: int, part: str) -> int:
    try:
        return os.open(part, DIRECTORY | NO_FOLLOW, dir_fd=here)
    except NotADirectoryError:
        if is_link(here, part):
            raise OSError(errno.ELOOP, "a link", part) from None
        raise


def is_link(directory: int, name: str) -> bool:
    """Whether a name is a link, for an error that says so."""
    import stat

    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def rename_new(directory: int, old: str, new: str) -> None:
    """Give a file a name that nothing has yet.

    Raises:
        FileExistsError: something has it.
    """
    if sys.platform.startswith("linux") and hasattr(_libc(), "renameat2"):
        if _libc().renameat2(directory, os.fsencode(old), directory, os.fsencode(new), _NOREPLACE) == 0:
            return
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS, errno.EPERM):  # these: the disk, or a filter, knows it not
            raise OSError(number, os.strerror(number), new)
    try:
        os.stat(new, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=directory, dst_dir_fd=directory)
        return
    raise FileExistsError(errno.EEXIST, "there is one now", new)
