"""File scan: finds and reads files below a folder, without following links, within limits of count, depth and size."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from everturn.config.extensions.extension import hash_bytes
from everturn.errors import ConfigError

MAX_ENTRIES: Final = 5_000  # files and folders that are looked at below one folder
MAX_DEPTH: Final = 6
MAX_TEXT: Final = 256 * 1024  # bytes of a Markdown or JSON file
MAX_CACHED: Final = 10_000
_SKIPPED: Final = frozenset({"node_modules", "__pycache__", ".git", ".venv", "venv"})
_hashes: dict[str, tuple[tuple[int, ...], str]] = {}


class LinkFound(ConfigError):
    """A path is a link, or has one among its folders."""


def check_no_link(root: Path, path: Path) -> None:
    """Refuse a path below `root` that is a link or lies behind one.

    Raises:
        LinkFound: it does; the text names the link.
    """
    at = root
    for part in path.relative_to(root).parts:
        at = at / part
        if at.is_symlink():
            raise LinkFound(f"{at.relative_to(root).as_posix()} is a link; put the files there instead")


def read_text(path: Path, limit: int = MAX_TEXT) -> str:
    """Read a regular file as UTF-8.

    Raises:
        ConfigError: it is a link, no regular file, too large, not UTF-8, or cannot be read.
    """
    try:
        return read_bytes(path, limit).decode()
    except UnicodeDecodeError:
        raise ConfigError("it is not UTF-8") from None


def read_bytes(path: Path, limit: int) -> bytes:
    """Read a regular file.

    Raises:
        ConfigError: it is a link, no regular file, too large, or cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        opened = os.open(path, flags)
    except OSError as error:
        raise ConfigError("it is a link" if path.is_symlink() else f"it cannot be read: {error.strerror}") from None
    with os.fdopen(opened, "rb") as file:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError("it is not a regular file")
        if status.st_size > limit:
            raise ConfigError(f"it has {status.st_size:,} bytes; at most {limit:,} are read")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ConfigError(f"it has more than {limit:,} bytes")
    return data


def hash_file(path: Path, limit: int) -> str:
    """Return the hash of a file; it is read again only if its inode, size or times have changed.

    Raises:
        ConfigError: as `read_bytes`.
    """
    try:
        status = os.lstat(path)
    except OSError as error:
        raise ConfigError(f"it cannot be read: {error.strerror}") from None
    signature = (status.st_ino, status.st_dev, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    known = _hashes.get(str(path))
    if known is not None and known[0] == signature:
        return known[1]
    digest = hash_bytes(read_bytes(path, limit))
    if len(_hashes) >= MAX_CACHED:
        _hashes.clear()
    _hashes[str(path)] = signature, digest
    return digest


def walk_files(top: Path) -> Iterator[Path]:
    """Yield the regular files below a folder, breadth first and sorted. Links are left out.

    Raises:
        ConfigError: there are more entries than are looked at; those before were yielded.
    """
    waiting, seen = [(top, 0)], 0
    for folder, depth in waiting:  # it grows
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > MAX_ENTRIES:
                raise ConfigError(f"more than {MAX_ENTRIES:,} files and folders; the rest is ignored")
            if entry.is_file(follow_symlinks=False):
                yield Path(entry.path)
            elif entry.is_dir(follow_symlinks=False) and depth < MAX_DEPTH and entry.name not in _SKIPPED:
                waiting.append((Path(entry.path), depth + 1))


def find_links(top: Path) -> list[Path]:
    """Return the links directly in a folder, which `walk_files` leaves out."""
    try:
        with os.scandir(top) as found:
            return [Path(entry.path) for entry in sorted(found, key=lambda entry: entry.name) if entry.is_symlink()]
    except OSError:
        return []
