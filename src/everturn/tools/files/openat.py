"""Opening directories below a root without following links, safe against concurrent renames (`openat2`).

No link is followed, not even one that stays inside: then the path that a rule allowed is the path that is opened. Linux
does it in one call (`openat2`); elsewhere, and where a seccomp filter forbids that call, each part is opened relative
to the one before it. Paths are never compared as text.
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

_OPENAT2: Final = 437  # the same number on every current architecture of Linux
_RESOLVE: Final = 0x08 | 0x04 | 0x02  # BENEATH | NO_SYMLINKS | NO_MAGICLINKS
_TRIES = 8  # the kernel may ask for a retry when names change during the lookup
_NOREPLACE: Final = 1
DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)

HAS_DIR_FD: Final = {os.open, os.mkdir, os.stat, os.unlink} <= os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
"""Whether this system can open names relative to a directory. Windows cannot."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


@cache
def has_openat2() -> bool:
    """Whether the kernel has `openat2`, and permits it."""
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
        descriptor: int = _libc().syscall(_OPENAT2, directory, name, ctypes.byref(how), ctypes.sizeof(how))
        if descriptor >= 0:
            return descriptor
        number = ctypes.get_errno()
        if number not in (errno.EAGAIN, errno.EINTR):
            raise OSError(number, os.strerror(number), path)
    raise OSError(errno.EAGAIN, "the names keep changing", path)


def open_directory(root: int, parts: Sequence[str], *, in_one: bool, make: bool = False) -> int:
    """Open a directory below an open one. With `make`, missing directories are created.

    Raises:
        OSError: ELOOP for a link in the path, and any other error of `open`.
    """
    if in_one and not make:
        return _openat2(root, "/".join(parts) or ".")
    current = os.open(".", DIRECTORY, dir_fd=root)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=current)
            child = _step(current, part)
            os.close(current)
            current = child
    except BaseException:
        os.close(current)
        raise
    return current


def _step(directory: int, part: str) -> int:
    try:
        return os.open(part, DIRECTORY | NO_FOLLOW, dir_fd=directory)
    except NotADirectoryError:
        if is_link(directory, part):
            raise OSError(errno.ELOOP, "a link", part) from None
        raise


def is_link(directory: int, name: str) -> bool:
    """Whether a name is a link, for an error message that says so."""
    import stat

    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def rename_noreplace(directory: int, old: str, new: str) -> None:
    """Rename a file to a name that does not exist yet.

    Raises:
        FileExistsError: the name exists.
    """
    if sys.platform.startswith("linux") and hasattr(_libc(), "renameat2"):
        if _libc().renameat2(directory, os.fsencode(old), directory, os.fsencode(new), _NOREPLACE) == 0:
            return
        number = ctypes.get_errno()
        # These three: not supported by the file system, or forbidden by a filter.
        if number not in (errno.EINVAL, errno.ENOSYS, errno.EPERM):
            raise OSError(number, os.strerror(number), new)
    try:
        os.stat(new, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=directory, dst_dir_fd=directory)
        return
    raise FileExistsError(errno.EEXIST, "there is one now", new)
