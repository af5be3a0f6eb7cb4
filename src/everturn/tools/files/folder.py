"""File system on a real folder: nothing outside of it is read or written, and every write is atomic.

The folder is opened once: a folder that replaces it later is not used. All operations run in threads. A directory that
another program moves out of the folder while a file is written in it takes that file along; nothing else gets out.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import secrets
import stat
import threading
import time
import weakref
from collections.abc import Generator, Sequence
from typing import Final

from everturn.errors import ConfigError, ToolError
from everturn.tools.files import openat
from everturn.tools.files.errors import CHANGED_MEANWHILE, translate_os_errors
from everturn.tools.files.file_system import (
    MAX_DIRECTORY_ENTRIES,
    MAX_FILE_BYTES,
    ChangeCheck,
    ContentChange,
    DirectoryEntry,
    EntryKind,
)
from everturn.tools.files.paths import MAX_PATH_DEPTH, quote_path

_UNFINISHED: Final = re.compile(r"\.everturn-[0-9a-f]{16}\.tmp")
_STEPS: Final = frozenset(("", ".", ".."))  # no names of directory entries
ABANDONED_AFTER = 3600.0  # seconds after which an unfinished file is considered abandoned


class Folder:
    """The files below `root`. `in_one` says whether to open directories with one `openat2` call; None: where it is
    available.
    """

    def __init__(self, root: str | os.PathLike[str], *, in_one: bool | None = None) -> None:
        if not openat.HAS_DIR_FD:
            raise ConfigError("file tools on a folder need Linux or macOS; virtual_files() works on any system")
        self.root: str = os.path.realpath(str(os.fspath(root)))
        if not os.path.isdir(self.root):
            raise ConfigError(f"{self.root} is not a folder; create it first, or name another")
        if os.path.dirname(self.root) == self.root:
            raise ConfigError(f"{self.root} is the whole disk, with its devices and processes; name a folder on it")
        try:
            self._opened = os.open(self.root, openat.DIRECTORY | openat.NO_FOLLOW)
        except OSError as error:
            raise ConfigError(
                f"{self.root} cannot be opened ({error.strerror}); fix this, or name another folder"
            ) from None
        weakref.finalize(self, os.close, self._opened)
        self._in_one = openat.has_openat2() if in_one is None else in_one
        self._writing = threading.Lock()

    async def stat(self, path: str) -> DirectoryEntry | None:
        """The entry at a path."""
        return await asyncio.to_thread(self._stat, path)

    async def list(self, path: str) -> Sequence[DirectoryEntry]:
        """The entries of a directory."""
        return await asyncio.to_thread(self._list, path)

    async def read(self, path: str) -> bytes:
        """The whole content of a file."""
        return await asyncio.to_thread(self._read, path)

    async def change(
        self, path: str, make: ContentChange, check: ChangeCheck | None = None
    ) -> tuple[bytes | None, bytes | None]:
        """Replace the content of a file."""
        return await asyncio.to_thread(self._change, path, make, check)

    # ------------------------------------------------------------------------------------------------ in a thread

    def _stat(self, path: str) -> DirectoryEntry | None:
        if path == ".":
            self._check_place()
            return DirectoryEntry(".", "directory")
        with translate_os_errors(path):
            try:
                with self._directory(path) as (directory, name):
                    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            except (FileNotFoundError, NotADirectoryError):
                return None
        return DirectoryEntry(name, _kind(status.st_mode), status.st_size)

    def _list(self, path: str) -> Sequence[DirectoryEntry]:
        entries: list[DirectoryEntry] = []
        with (
            translate_os_errors(path),
            self._directory(path, itself=True) as (directory, _),
            os.scandir(directory) as scanned,
        ):
            for entry in scanned:
                if len(entries) == MAX_DIRECTORY_ENTRIES:
                    break
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                    status = entry.stat(follow_symlinks=False)
                    entries.append(DirectoryEntry(entry.name, _kind(status.st_mode), status.st_size))
        return sorted(entries, key=lambda entry: entry.name)

    def _read(self, path: str) -> bytes:
        with translate_os_errors(path), self._directory(path) as (directory, name):
            return _content(directory, name, path)[0]

    def _change(
        self, path: str, make: ContentChange, check: ChangeCheck | None = None
    ) -> tuple[bytes | None, bytes | None]:
        old: bytes | None = None
        status: os.stat_result | None = None
        with self._writing, translate_os_errors(path):
            with contextlib.suppress(FileNotFoundError), self._directory(path) as (directory, name):
                old, status = _content(directory, name, path)
            new = make(old)
            if new == old:
                return old, new
            if check is not None:
                check(lambda other: self._stat(other) is not None)
            if new is not None and len(new) > MAX_FILE_BYTES:
                raise ToolError(f"{quote_path(path)} was not written: a file has at most {MAX_FILE_BYTES // 2**20} MiB")
            if status is not None:
                _check_writable(status, path)
            if new is None:
                with self._directory(path) as (directory, name):
                    _check_same(directory, name, status, path)
                    os.unlink(name, dir_fd=directory)
                    os.fsync(directory)
                return old, new
            with self._directory(path, make=True) as (directory, name):
                _put(directory, name, new, status, path)
        return old, new

    def _check_place(self) -> None:
        """Raise if the root was moved or replaced. Everything that is opened is below the original root in any case."""
        try:
            current, original = os.stat(self.root, follow_symlinks=False), os.fstat(self._opened)
            if (current.st_dev, current.st_ino) == (original.st_dev, original.st_ino):
                return
        except OSError:
            pass
        raise ToolError(
            "the folder of these files was removed or replaced, so nothing is read or written; tell the user, "
            "who can restore it, or start again with the new folder"
        )

    @contextlib.contextmanager
    def _directory(self, path: str, *, itself: bool = False, make: bool = False) -> Generator[tuple[int, str]]:
        """Open the directory that contains a path (or is the path), and return it with the name in it."""
        parts = [] if path == "." else path.split("/")
        if (
            not _STEPS.isdisjoint(parts) or "\0" in path or len(parts) > MAX_PATH_DEPTH
        ):  # `paths` has better messages; this check holds for any caller
            raise ToolError(f"{quote_path(path)} is not a path below the root")
        if not parts and not itself:
            raise ToolError("that is the root itself, and not a file in it; name a file")
        name = "" if itself else parts.pop()
        self._check_place()
        directory = openat.open_directory(self._opened, parts, in_one=self._in_one, make=make)
        try:
            yield directory, name
        finally:
            os.close(directory)


def _kind(mode: int) -> EntryKind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "special"


def _content(directory: int, name: str, path: str) -> tuple[bytes, os.stat_result]:
    """The content of a regular file. Anything else is not opened: opening a pipe or a device may wake or block its
    other end.
    """
    _check_regular(os.stat(name, dir_fd=directory, follow_symlinks=False), path)
    file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | openat.NO_FOLLOW, dir_fd=directory)
    with open(file, "rb", buffering=0) as opened:
        status = os.fstat(file)
        _check_regular(status, path)  # the name may refer to another file by now
        pieces: list[bytes] = []
        size = 0
        while size <= MAX_FILE_BYTES and (piece := opened.read(MAX_FILE_BYTES + 1 - size)):
            pieces.append(piece)
            size += len(piece)
    if size > MAX_FILE_BYTES:
        raise ToolError(
            f"{quote_path(path)} is larger than {MAX_FILE_BYTES // 2**20} MiB, which is the limit of these tools"
        )
    return b"".join(pieces), status


def _check_regular(status: os.stat_result, path: str) -> None:
    kind = _kind(status.st_mode)
    if kind == "link":
        raise OSError(errno.ELOOP, "a link", path)
    if kind == "directory":
        raise ToolError(f"{quote_path(path)} is a directory; list_directory shows its content")
    if kind == "special":
        raise ToolError(f"{quote_path(path)} is a pipe, socket or device, not a file; it is not opened")
    if status.st_size > MAX_FILE_BYTES:
        raise ToolError(
            f"{quote_path(path)} has {status.st_size:,} bytes; the limit of these tools is {MAX_FILE_BYTES // 2**20} MiB"
        )


def _check_writable(status: os.stat_result, path: str) -> None:
    if status.st_nlink > 1:
        raise ToolError(
            f"{quote_path(path)} has {status.st_nlink} names (hard links), which may be anywhere on the disk; it "
            "is not written. Write a new file instead, or ask the user to separate them"
        )
    if not status.st_mode & 0o222:
        raise ToolError(f"{quote_path(path)} is read-only; ask the user whether it should be")


def _check_same(directory: int, name: str, seen: os.stat_result | None, path: str) -> None:
    try:
        now = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        now = None
    if seen is not None and now is not None and _state(now) == _state(seen):
        return
    if seen is not None or now is not None:
        raise ToolError(CHANGED_MEANWHILE.format(path=quote_path(path)))


def _state(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_nlink


def _put(directory: int, name: str, data: bytes, old: os.stat_result | None, path: str) -> None:
    """Write a temporary file beside it, and rename that when all of it is on the disk."""
    _delete_leftovers(directory)
    unfinished = f".everturn-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | openat.NO_FOLLOW
    file = os.open(unfinished, flags, 0o666 if old is None else 0o600, dir_fd=directory)
    try:
        with open(file, "wb") as opened:
            if old is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(file, old.st_uid, old.st_gid)
                os.fchmod(file, stat.S_IMODE(old.st_mode) & 0o777)
            opened.write(data)
            opened.flush()
            os.fsync(file)
        _check_same(directory, name, old, path)
        if old is None:
            openat.rename_noreplace(directory, unfinished, name)
        else:
            os.rename(unfinished, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished, dir_fd=directory)
        raise
    os.fsync(directory)


def _delete_leftovers(directory: int) -> None:
    """Remove the temporary files of writers that died."""
    before = time.time() - ABANDONED_AFTER
    with os.scandir(directory) as entries:
        for entry in entries:
            if _UNFINISHED.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < before:
                        os.unlink(entry.name, dir_fd=directory)
