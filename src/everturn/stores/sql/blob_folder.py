"""Blob folder: files beside a database, for blobs that are too large for a row. All functions block.

A file is on disk before its name is returned, and is never written again: a blob that is put once more gets a file of
its own.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

TRIES = 3


class BlobFolder:
    """A folder of blobs, with a sub-folder for the first two letters of their names."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, data: bytes) -> str:
        """Write a file under a new name, and return that name once the file is synced to disk."""
        for _ in range(TRIES - 1):
            # The retention job may remove an unfinished file that it takes for an abandoned one.
            with contextlib.suppress(FileNotFoundError):
                return self._write(name, data)
        return self._write(name, data)

    def _write(self, name: str, data: bytes) -> str:
        file = f"{name}.{secrets.token_hex(6)}"
        path = self._path(file)
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)  # readable by its owner only
        path.parent.mkdir(exist_ok=True)
        partial = path.with_name(f"{file}.partial")
        try:
            with partial.open("wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            partial.rename(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        for folder in (path.parent, self.path, self.path.parent):
            _sync_folder(folder)
        return file

    def read(self, file: str, size: int) -> bytes | None:
        """Return at most `size + 1` bytes of a file; None if it does not exist."""
        try:
            with self._path(file).open("rb") as opened:
                return opened.read(size + 1)
        except FileNotFoundError:
            return None

    def size(self, file: str) -> int:
        """Return the size of a file; -1 if it does not exist."""
        try:
            return self._path(file).stat().st_size
        except OSError:
            return -1

    def remove(self, files: Iterable[str]) -> None:
        """Remove files; a missing one is no error."""
        for file in files:
            with contextlib.suppress(OSError):
                self._path(file).unlink()

    def old(self, before: float) -> Iterator[str]:
        """Yield the blob files that were written before a time, finished or not."""
        for path in self.path.glob("??/*.*"):
            is_ours = len(path.name.partition(".")[0]) == 64 and path.name.startswith(path.parent.name)
            with contextlib.suppress(OSError):
                if is_ours and path.stat().st_mtime < before:
                    yield path.name

    def _path(self, file: str) -> Path:
        return self.path / file[:2] / file


def _sync_folder(path: Path) -> None:
    # A rename is durable when its folder is synced. Windows cannot open a folder.
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
