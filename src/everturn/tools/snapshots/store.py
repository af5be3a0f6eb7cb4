"""Snapshot store of a folder: records, compares and restores its content, in a repository outside of it.

Recorded are files of at most 2 MiB and links (as links), executable or not. Not recorded are what the folder's own
`.gitignore` files name, anything called `.git`, larger and special files, and folders without files. A recorded file
stays recorded until it is removed, even if a rule names it later or it grows: up to 32 MiB with its content, beyond
that as a placeholder. The files of repositories inside the folder are recorded like any others. A restore gives back
exactly what is recorded, and leaves alone what is not; it refuses if something would be lost.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from everturn import failpoints
from everturn.core.parts import FileChange
from everturn.errors import CommandRefused, ConfigError, StoreUnavailable
from everturn.tools.snapshots.folder import check_folder, claim_folder
from everturn.tools.snapshots.folder_users import FolderUsers
from everturn.tools.snapshots.git_objects import LINK, Listing, ObjectRepository
from everturn.tools.snapshots.git_process import find_git
from everturn.tools.snapshots.gitignore import RULES
from everturn.tools.snapshots.large_files import list_placeholders
from everturn.tools.snapshots.restore import apply_restore, decode_path, plan_restore
from everturn.tools.snapshots.walk import RecordedFile, RuleSet, WalkResult, walk_folder

CHANGES = 500  # listed at most
DIFF_BYTES = 64 * 1024
ASKED_BYTES = 100_000  # of paths on a command line
LOCK_SECONDS = 120.0
CUT = "\n… the rest of this diff is not shown\n"
T = TypeVar("T")


class SnapshotCache(Struct, frozen=True, omit_defaults=True):
    """The state between two walks, a cache: without it every file is read again."""

    files: dict[bytes, RecordedFile] = {}
    left: frozenset[bytes] = frozenset()  # not recorded: a restore removed the `.gitignore` that named them


class FolderSnapshots:
    """The snapshots of one folder. Any number of instances, in any number of processes, may share a `store_dir`."""

    def __init__(self, folder: str | os.PathLike[str], store_dir: str | os.PathLike[str]) -> None:
        self.folder, self.store_dir = Path(folder).resolve(), Path(store_dir).resolve()
        if not self.folder.is_dir():
            raise ConfigError(f"snapshots of {self.folder}: there is no such folder; create it first")
        if self.store_dir.is_relative_to(self.folder) or self.folder.is_relative_to(self.store_dir):
            raise ConfigError(f"snapshots of {self.folder} must be kept outside of it, and not in {self.store_dir}")
        check_folder(self.folder, self.store_dir)
        find_git()
        self.users = FolderUsers(self.store_dir / "busy")

    @cached_property
    def _repository(self) -> ObjectRepository:
        self.store_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        return ObjectRepository(self.store_dir / "git")

    async def record(self, rules: str = "") -> str:
        """Record the content of the folder, and return its tree.

        Files that the `.gitignore` files name are left out: those of the tree `rules`, or the current ones. A turn that
        must not hide its changes is recorded by the rules of the tree before it.

        Raises:
            CommandRefused: the tree does not exist, or there are too many files.
        """
        return await asyncio.to_thread(self._alone, lambda: self._record([self._rules_of(rules) if rules else None]))

    async def record_before(self, tree: str) -> str:
        """Record the content of the folder before another tree is restored, and return its tree.

        Files that the `.gitignore` files of that tree name are left out too: if those rules are gone by now, a restore
        would remove the files.
        """
        return await asyncio.to_thread(self._alone, lambda: self._record([None, self._rules_of(tree)]))

    async def restore(self, tree: str) -> None:
        """Restore the content of a tree.

        Raises:
            CommandRefused: the tree does not exist, a turn works in the folder, or something would be lost; nothing was
                changed.
        """
        await asyncio.to_thread(self._alone, lambda: self._restore_unused(tree))

    async def check_unused(self) -> None:
        """Refuse an operation while a turn works in the folder.

        Raises:
            CommandRefused: a turn works in the folder.
        """
        await asyncio.to_thread(self._alone, self._check_unused)

    def _check_unused(self) -> None:
        with self.users.hold_exclusively(self.folder):
            pass

    def _restore_unused(self, tree: str) -> None:
        with self.users.hold_exclusively(self.folder):
            self._restore(tree)

    async def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """The files that differ between two trees; the first 500."""
        return await asyncio.to_thread(self._changes, before, after)

    async def diff(self, before: str, after: str, path: str) -> str:
        """The diff of one file, named as in `changes`, between two trees; no more than 64 KiB of it."""
        return await asyncio.to_thread(self._diff, before, after, path)

    def _record(self, rules: Sequence[RuleSet]) -> str:
        memory = self._remembered()
        walked = self._walk(memory, rules=rules)
        left = frozenset(path for path in memory.left if walked.skipped.get(path) == "left")
        new = SnapshotCache(walked.files, left)
        if new != memory:
            self._remember(new)
        return self._repository.write_tree(_listing(walked.files))

    def _restore(self, tree: str) -> None:
        wanted = self._repository.list_tree(tree)
        memory = self._remembered()
        walked = self._walk(memory, wanted, [None, _rules_in(wanted)])
        todo = plan_restore(walked, wanted, list_placeholders(self._repository))
        if missing := self._repository.missing({name for _, _, name in todo.write}):
            raise CommandRefused(
                f"{len(missing)} files of tree {tree} are missing from the snapshots; nothing was changed"
            )
        named = {path for path, why in walked.skipped.items() if why in ("ignored", "left")} - walked.folders
        files = {path: RecordedFile(mode, name) for path, (mode, name) in wanted.items()}
        # Written first: if this process dies half way, the next attempt must still know which files were not
        # recorded.
        self._remember(SnapshotCache({**files, **walked.files}, frozenset(named)))
        failpoints.hit_failpoint("snapshot.planned")
        try:
            apply_restore(self._repository, str(self.folder), todo)
        except OSError as error:
            raise StoreUnavailable(
                f"{self.folder} could not be restored completely ({error}): fix this, then revert again"
            ) from error
        kept = {path: file for path, file in walked.files.items() if wanted.get(path) == (file.mode, file.name)}
        self._remember(SnapshotCache({**files, **kept}, frozenset(named)))

    def _changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        if before == after:
            return ()
        pair = (self._repository.check_tree(before), self._repository.check_tree(after))
        raw = self._repository.diff("--raw", "-z", *pair).split(b"\0")[:-1]
        kinds = {path: status[-1:] for status, path in zip(raw[::2], raw[1::2], strict=True)}
        listed = sorted(kinds)[:CHANGES]
        selected = listed if len(kinds) > CHANGES else []
        while sum(map(len, selected)) > ASKED_BYTES:
            selected = selected[: len(selected) // 2]
        counts: dict[bytes, tuple[int, int]] = {}
        for line in self._repository.diff("--numstat", "-z", *pair, "--", *selected).split(b"\0")[:-1]:
            added, removed, path = line.split(b"\t", 2)
            if added != b"-":  # which stands for a binary file
                counts[path] = (int(added), int(removed))
        return tuple(FileChange(decode_path(path), _kind(kinds[path]), *counts.get(path, (0, 0))) for path in listed)

    def _diff(self, before: str, after: str, path: str) -> str:
        known = self._repository.check_tree
        raw = self._repository.diff("--name-only", "-z", known(before), known(after)).split(b"\0")[:-1]
        paths = [name for name in raw if decode_path(name) == path]
        if not paths:
            return ""
        data, is_whole = self._repository.patch(before, after, paths, DIFF_BYTES)
        return data.decode("utf-8", "replace") + ("" if is_whole else CUT)

    def _rules_of(self, tree: str) -> RuleSet:
        return _rules_in(self._repository.list_tree(tree))

    def _walk(
        self, memory: SnapshotCache, wanted: Collection[bytes] = (), rules: Sequence[RuleSet] = (None,)
    ) -> WalkResult:
        now = time.time_ns()
        try:
            return walk_folder(self._repository, str(self.folder), memory.files, now, memory.left, wanted, rules)
        except OSError as error:
            raise StoreUnavailable(f"no snapshot of {self.folder} could be taken: {error}") from error

    def _alone(self, work: Callable[[], T]) -> T:
        # In the thread, not around it: a cancelled caller releases the lock only when the work is done.
        self.store_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _lock(self.store_dir / "lock"):
            claim_folder(self.folder, self.store_dir)
            return work()

    def _remembered(self) -> SnapshotCache:
        try:
            return msgspec.msgpack.decode((self.store_dir / "memory").read_bytes(), type=SnapshotCache)
        except (OSError, msgspec.MsgspecError, ValueError):
            return SnapshotCache()

    def _remember(self, memory: SnapshotCache) -> None:
        handle, unfinished = tempfile.mkstemp(prefix="memory-", dir=self.store_dir)
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.msgpack.encode(memory))
        os.replace(unfinished, self.store_dir / "memory")


def _listing(files: dict[bytes, RecordedFile]) -> dict[bytes, tuple[int, str]]:
    return {path: (file.mode, file.name) for path, file in files.items()}


def _rules_in(listing: Listing) -> RuleSet:
    paths = (path for path, (mode, _) in listing.items() if path.rpartition(b"/")[2] == RULES and mode != LINK)
    return {path: listing[path][1] for path in paths}


def _kind(status: bytes) -> Literal["added", "modified", "deleted"]:
    return "added" if status == b"A" else "deleted" if status == b"D" else "modified"


@contextmanager
def _lock(path: Path) -> Generator[None]:
    """Hold an exclusive lock; the system releases it for a process that dies."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise StoreUnavailable(
                        f"another process has locked {path} for {LOCK_SECONDS:.0f} s; try again"
                    ) from None
                time.sleep(0.01)
        yield
    finally:
        os.close(handle)
