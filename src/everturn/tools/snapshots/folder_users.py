"""Folder lock between processes: a folder may be restored only while no turn works in it.

Each process holds a shared lock on a file while a turn in it works in the folder; a restore takes the lock exclusively.
The system releases the lock of a process that dies.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from everturn.errors import CommandRefused, StoreUnavailable

PATIENCE = 120.0  # seconds that a restore may take
PAUSE = 0.02


class FolderUsers:
    """The users of one folder within this process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1
        self.count = 0  # of the users

    async def enter(self) -> Callable[[], None]:
        """Start to work in the folder, as soon as no restore is running; the caller calls the returned function at the
        end.

        Raises:
            StoreUnavailable: a restore has held the lock for minutes.
        """
        until = time.monotonic() + PATIENCE
        while not self.count and not self._share():
            if time.monotonic() > until:
                raise StoreUnavailable(f"another process has locked {self._path} for {PATIENCE:.0f} s; try again")
            await asyncio.sleep(PAUSE)
        self.count += 1
        is_active = True

        def leave() -> None:
            nonlocal is_active
            if is_active:
                is_active = False
                self._leave()

        return leave

    def _share(self) -> bool:
        handle = _open(self._path)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        return True

    def _leave(self) -> None:
        self.count -= 1
        if not self.count:
            _release(self._handle)
            self._handle = -1

    @contextmanager
    def hold_exclusively(self, folder: Path) -> Generator[None]:
        """Hold the folder exclusively; fails at once if it is in use.

        Raises:
            CommandRefused: a turn works in the folder.
        """
        handle = _open(self._path)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CommandRefused(
                    f"a turn that works in {os.path.basename(folder)!r} is running, maybe in another session: "
                    "wait until it has ended, or cancel it, then revert again; nothing was changed"
                ) from None
            yield
        finally:
            _release(handle)


def _release(handle: int) -> None:
    # Not by closing alone: a child process that is just being started has a copy until it executes its program.
    fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
