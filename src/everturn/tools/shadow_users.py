"""Those who work in a folder, in any number of processes → whether it may be restored now: only when there are none.

Each process shares a lock on a file while somebody in it works there; whoever restores has it alone. The system lets go of
it for a process that dies.
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


class Users:
    """The users of one folder, as far as they are in this process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1
        self.count = 0  # of them

    async def enter(self) -> Callable[[], None]:
        """Begin to work there, when nobody restores it; call what is returned at the end.

        Raises:
            StoreUnavailable: somebody has been restoring it for minutes.
        """
        until = time.monotonic() + PATIENCE
        while not self.count and not self._share():
            if time.monotonic() > until:
                raise StoreUnavailable(f"somebody has held {self._path} for {PATIENCE:.0f} s; try again")
            await asyncio.sleep(PAUSE)
        self.count += 1
        is_in = True

        def leave() -> None:
            nonlocal is_in
            if is_in:
                is_in = False
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
            _let_go(self._handle)
            self._handle = -1

    @contextmanager
    def shut_out(self, folder: Path) -> Generator[None]:
        """Be the only one there, at once or not at all.

        Raises:
            CommandRefused: somebody works there.
        """
        handle = _open(self._path)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CommandRefused(
                    f"a turn that works in {os.path.basename(folder)!r} is under way, maybe in another session: wait until it is over, or "
                    "cancel it, then revert again; nothing was changed"
                ) from None
            yield
        finally:
            _let_go(handle)


def _let_go(handle: int) -> None:
    # Not by closing alone: a process that is just being started has a copy until it runs its own program.
    fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
