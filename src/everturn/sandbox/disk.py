"""Disk quota of a sandboxed run: whether it has written more into its writable folder than it may.

The cheap check is the free space of the file system, which costs one call. When that has fallen by more than the quota,
or by a little while the disk is nearly full, the folder is walked, because other programs may have written: files that
changed since the run began count, and so do removed files that the run holds open or mapped. It is also walked once in
a while whatever the free space says: another program may have freed as much as this run has written.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Final

from everturn.sandbox.bubblewrap_args import ShellLimits
from everturn.sandbox.hidden_paths import DEEPEST, open_in_folder

BLOCK: Final = 512  # bytes per unit of `st_blocks`
SLACK: Final = 50_000_000  # nanoseconds by which the clock of a file system may be behind
PART_OF_TIME: Final = 10  # walks of the folder may take this fraction of the time
UNPROMPTED: Final = 1.0  # seconds between walks that the free space gave no reason for, at least
UNPROMPTED_PART: Final = 50  # and the fraction of the time that those may take
SOME: Final = 16 * 1024 * 1024  # bytes: a run that has taken less has not filled the disk
_MAPPED: Final = re.compile(r"^\S+ \S+ \S+ (\S+) (\d+) +\S.* \(deleted\)$", re.MULTILINE)


class DiskWatch:
    """The disk usage of one run. `processes` returns the pids that are alive."""

    def __init__(self, folder: int, limits: ShellLimits, processes: Callable[[], Iterable[str]]) -> None:
        self._folder, self._limits, self._processes = folder, limits, processes
        self._started = time.time_ns() - SLACK
        self._before = os.fstatvfs(folder)
        self._next = 0.0
        self._next_unprompted = time.monotonic() + UNPROMPTED

    def is_exceeded(self) -> bool:
        """Whether the run has used more than it may, or the disk is nearly full and it has used a part of that."""
        now, before, limits = os.fstatvfs(self._folder), self._before, self._limits
        taken = (before.f_bavail - now.f_bavail) * now.f_frsize
        files = before.f_ffree - now.f_ffree
        most = SOME if now.f_bavail * now.f_frsize < limits.free else limits.disk
        is_blind = not now.f_files or not now.f_blocks  # a file system that does not count
        is_suspect = is_blind or taken > most or files > limits.disk_files
        began = time.monotonic()
        if began < (self._next if is_suspect else self._next_unprompted):
            return False
        is_over = self._has_taken(limits.disk if is_blind else most)
        ended = time.monotonic()
        self._next = ended + PART_OF_TIME * (ended - began)
        self._next_unprompted = ended + max(UNPROMPTED, UNPROMPTED_PART * (ended - began))
        return is_over

    def _has_taken(self, most: int) -> bool:
        """Whether this run wrote so much, or so many files."""
        size = count = 0
        seen: set[int] = set()
        device = os.fstat(self._folder).st_dev
        for status in self._changed():
            if status.st_ino in seen:
                continue
            seen.add(status.st_ino)
            size, count = size + status.st_blocks * BLOCK, count + 1
            if size > most or count > self._limits.disk_files:
                return True
        for inode, blocks in self._nameless(device):
            if inode not in seen:
                seen.add(inode)
                size, count = size + blocks, count + 1
        return size > most or count > self._limits.disk_files

    def _changed(self) -> Generator[os.stat_result]:
        """Everything in the folder that was changed since the run began."""
        waiting = [""]
        while waiting:
            at = waiting.pop()
            try:
                directory = open_in_folder(self._folder, at)
            except OSError:  # removed meanwhile, or not readable
                continue
            try:
                with os.scandir(directory) as entries:
                    for entry in entries:
                        with contextlib.suppress(OSError):
                            status = entry.stat(follow_symlinks=False)
                            if status.st_ctime_ns >= self._started:
                                yield status
                            if stat.S_ISDIR(status.st_mode) and at.count("/") < DEEPEST:
                                waiting.append(f"{at}/{entry.name}" if at else entry.name)
            finally:
                os.close(directory)

    def _nameless(self, device: int) -> Generator[tuple[int, int]]:
        """Removed files that are still open: inode and size; of a mapped one the maximal size."""
        place = f"{os.major(device):02x}:{os.minor(device):02x}"
        for process in self._processes():
            with contextlib.suppress(OSError):
                for handle in os.scandir(f"/proc/{process}/fd"):
                    with contextlib.suppress(OSError):
                        status = os.stat(handle.path)
                        if stat.S_ISREG(status.st_mode) and not status.st_nlink and status.st_dev == device:
                            yield status.st_ino, status.st_blocks * BLOCK
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{process}/maps").read_text(encoding="utf-8", errors="replace")
                for mapping in _MAPPED.finditer(text):
                    if mapping[1] == place:
                        yield int(mapping[2]), self._limits.file
