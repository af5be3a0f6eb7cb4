"""A real folder as a file system: nothing outside of it is read or written, and no file is ever half written.

The folder is opened once: what somebody else puts in its place later is not it. All of it runs in threads. A directory that somebody moves out of the folder while a file is written in it takes that
file along; nothing else gets out.
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
from everturn.tools.files import beneath
from everturn.tools.files.paths import DEEPEST, shown
from everturn.tools.files.system import MOST_BYTES, MOST_ENTRIES, Check, Entry, Kind, Make
from everturn.tools.files.telling import CHANGED, told

_UNFINISHED: Final = re.compile(r"\.everturn-[0-9a-f]{16}\.tmp")
_STEPS: Final = frozenset(("", ".", ".."))  # names that are no names of something in a directory
LEFT_BEHIND = 3600.0  # seconds after which an unfinished file is nobody's any more


class Folder:
    """The files beneath `root`. `in_one` is how directories are opened; None: by `openat2` where there is one."""

    def __init__(self, root: str | os.PathLike[str], *, in_one: bool | None = None) -> None:
        if not beneath.CAN_WALK:
            raise ConfigError("file tools on a folder need Linux or macOS; virtual_files() works on any system")
        self.root: str = os.path.realpath(str(os.fspath(root)))
        if not os.path.isdir(self.root):
            raise ConfigError(f"{self.root} is not a folder; make it first, or name another")
        if os.path.dirname(self.root) == self.root:
            raise ConfigError(f"{self.root} is the whole disk, with its devices and processes; name a folder on it")
        try:
            self._opened = os.open(self.root, beneath.DIRECTORY | beneath.NO_FOLLOW)
        except OSError as error:
            raise ConfigError(
                f"{self.root} cannot be opened ({error.strerror}); see to that, or name another"
            ) from None
        weakref.finalize(self, os.close, self._opened)
        self._in_one = beneath.has_openat2() if in_one is None else in_one
        self._writing = threading.Lock()

    async def stat(self, path: str) -> Entry | None:
        """What is there."""
        return await asyncio.to_thread(self._stat, path)

    async def list(self, path: str) -> Sequence[Entry]:
        """What is in a directory."""
        return await asyncio.to_thread(self._list, path)

    async def read(self, path: str) -> bytes:
        """The whole of a file."""
        return await asyncio.to_thread(self._read, path)

    async def change(self, path: str, make: Make, check: Check | None = None) -> tuple[bytes | None, bytes | None]:
        """Put another content in the place of a file's."""
        return await asyncio.to_thread(self._change, path, make, check)

    # ------------------------------------------------------------------------------------------------ in a thread

    def _stat(self, path: str) -> Entry | None:
        if path == ".":
            self._check_place()
            return Entry(".", "directory")
        with told(path):
            try:
                with self._directory(path) as (directory, name):
                    found = os.stat(name, dir_fd=directory, follow_symlinks=False)
            except (FileNotFoundError, NotADirectoryError):
                return None
        return Entry(name, _kind(found.st_mode), found.st_size)

    def _list(self, path: str) -> Sequence[Entry]:
        entries: list[Entry] = []
        with told(path), self._directory(path, itself=True) as (directory, _), os.scandir(directory) as found:
            for entry in found:
                if len(entries) == MOST_ENTRIES:
                    break
                with contextlib.suppress(FileNotFoundError):  # gone since
                    status = entry.stat(follow_symlinks=False)
                    entries.append(Entry(entry.name, _kind(status.st_mode), status.st_size))
        return sorted(entries, key=lambda entry: entry.name)

    def _read(self, path: str) -> bytes:
        with told(path), self._directory(path) as (directory, name):
            return _content(directory, name, path)[0]

    def _change(self, path: str, make: Make, check: Check | None = None) -> tuple[bytes | None, bytes | None]:
        old: bytes | None = None
        status: os.stat_result | None = None
        with self._writing, told(path):
            with contextlib.suppress(FileNotFoundError), self._directory(path) as (directory, name):
                old, status = _content(directory, name, path)
            new = make(old)
            if new == old:
                return old, new
            if check is not None:
                check(lambda other: self._stat(other) is not None)
            if new is not None and len(new) > MOST_BYTES:
                raise ToolError(f"{shown(path)} was not written: a file has at most {MOST_BYTES // 2**20} MiB")
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
        """Say so if the root is no longer where it was. What is opened is beneath it all the same."""
        try:
            there, ours = os.stat(self.root, follow_symlinks=False), os.fstat(self._opened)
            if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                return
        except OSError:
            pass
        raise ToolError(
            "the root of these files is gone, or something else has been put in its place, so nothing is read or "
            "written; tell the person, who can put it back, or start again with the folder that is there now"
        )

    @contextlib.contextmanager
    def _directory(self, path: str, *, itself: bool = False, make: bool = False) -> Generator[tuple[int, str]]:
        """The directory that something is in (or is), open, and its name there."""
        parts = [] if path == "." else path.split("/")
        if (
            not _STEPS.isdisjoint(parts) or "\0" in path or len(parts) > DEEPEST
        ):  # `paths` says it in better words; this holds for any caller
            raise ToolError(f"{shown(path)} is not a path beneath the root")
        if not parts and not itself:
            raise ToolError("that is the root itself, and not a file in it; name a file")
        name = "" if itself else parts.pop()
        self._check_place()
        directory = beneath.open_directory(self._opened, parts, in_one=self._in_one, make=make)
        try:
            yield directory, name
        finally:
            os.close(directory)


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "special"


def _content(directory: int, name: str, path: str) -> tuple[bytes, os.stat_result]:
    """What a regular file holds. Anything else is not opened: to open a pipe or a device may wake or block somebody."""
    _check_regular(os.stat(name, dir_fd=directory, follow_symlinks=False), path)
    file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | beneath.NO_FOLLOW, dir_fd=directory)
    with open(file, "rb", buffering=0) as opened:
        status = os.fstat(file)
        _check_regular(status, path)  # the name may stand for something else by now
        pieces: list[bytes] = []
        size = 0
        while size <= MOST_BYTES and (piece := opened.read(MOST_BYTES + 1 - size)):
            pieces.append(piece)
            size += len(piece)
    if size > MOST_BYTES:
        raise ToolError(f"{shown(path)} is larger than {MOST_BYTES // 2**20} MiB, which is more than these tools take")
    return b"".join(pieces), status


def _check_regular(status: os.stat_result, path: str) -> None:
    kind = _kind(status.st_mode)
    if kind == "link":
        raise OSError(errno.ELOOP, "a link", path)
    if kind == "directory":
        raise ToolError(f"{shown(path)} is a directory; list_directory says what is in it")
    if kind == "special":
        raise ToolError(f"{shown(path)} is a pipe, socket or device and no file; it is not opened")
    if status.st_size > MOST_BYTES:
        raise ToolError(
            f"{shown(path)} has {status.st_size:,} bytes; these tools take files of up to {MOST_BYTES // 2**20} MiB"
        )


def _check_writable(status: os.stat_result, path: str) -> None:
    if status.st_nlink > 1:
        raise ToolError(
            f"{shown(path)} has {status.st_nlink} names (hard links), and the others may be anywhere on the disk; it is "
            "not written. Write a new file instead, or ask the person to part them"
        )
    if not status.st_mode & 0o222:
        raise ToolError(f"{shown(path)} is read-only; ask the person whether it should be")


def _check_same(directory: int, name: str, seen: os.stat_result | None, path: str) -> None:
    try:
        now = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        now = None
    if seen is not None and now is not None and _state(now) == _state(seen):
        return
    if seen is not None or now is not None:
        raise ToolError(CHANGED.format(path=shown(path)))


def _state(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_nlink


def _put(directory: int, name: str, data: bytes, old: os.stat_result | None, path: str) -> None:
    """Write beside it, and give that its name when all of it is on the disk."""
    _sweep(directory)
    unfinished = f".everturn-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | beneath.NO_FOLLOW
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
            beneath.rename_new(directory, unfinished, name)
        else:
            os.rename(unfinished, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished, dir_fd=directory)
        raise
    os.fsync(directory)


def _sweep(directory: int) -> None:
    """Remove what writers left unfinished when they died."""
    before = time.time() - LEFT_BEHIND
    with os.scandir(directory) as entries:
        for entry in entries:
            if _UNFINISHED.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < before:
                        os.unlink(entry.name, dir_fd=directory)
