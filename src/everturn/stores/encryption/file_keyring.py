"""Keyring in a folder: a file per key, for one machine or a volume that all of them mount.

Writers lock a file in the folder. A key is replaced by a rename, so that a reader has the old one or the new one, and the
bytes of the old one are overwritten first, as far as the file system does that in place.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from everturn.errors import ConfigError
from everturn.stores.encryption.key_rows import KeyRow

T = TypeVar("T")

_SUFFIX = ".json"
_decode = msgspec.json.Decoder(KeyRow).decode


class FileKeyring:
    """The rows of a keyring in a folder that only its owner can read."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    async def rows(self, names: Sequence[str] | None = None) -> list[KeyRow]:
        """Return the rows of these names, or all."""
        return await self._run(lambda: self._rows(names))

    async def add(self, row: KeyRow) -> KeyRow:
        """Add a row unless there is one of this name, and return the one that is there."""

        def work() -> KeyRow:
            with self._locked():
                existing = self._rows([row.name])
                if not existing:
                    self._write(row)
                return existing[0] if existing else row

        return await self._run(work)

    async def replace(self, row: KeyRow) -> bool:
        """Replace a row; False if it was destroyed."""

        def work() -> bool:
            with self._locked():
                existing = self._rows([row.name])
                if existing and existing[0].destroyed:
                    return False
                if existing and row.destroyed:
                    _overwrite(self._path(row.name))
                self._write(row)
                return True

        return await self._run(work)

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except (OSError, msgspec.MsgspecError) as error:
            raise ConfigError(
                f"the keyring in {self._folder} ([store.encryption] keyring) cannot be used: {error}"
            ) from error

    def _rows(self, names: Sequence[str] | None) -> list[KeyRow]:
        if names is None:
            paths = sorted(self._folder.glob(f"*{_SUFFIX}"))
        else:
            paths = [path for name in names if (path := self._path(name)).exists()]
        return [_decode(path.read_bytes()) for path in paths]

    def _write(self, row: KeyRow) -> None:
        path = self._path(row.name)
        partial = path.with_suffix(".partial")
        handle = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as out:
            out.write(msgspec.json.encode(row))
            out.flush()
            os.fsync(out.fileno())
        partial.rename(path)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self._folder / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _path(self, name: str) -> Path:
        return self._folder / (hashlib.sha256(name.encode()).hexdigest()[:40] + _SUFFIX)


def _overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b" " * path.stat().st_size)
        file.flush()
        os.fsync(file.fileno())
