"""A folder → trees of what was in it, and back: recorded, compared and restored, in a repository outside of it.

What is recorded: files of at most 2 MiB and links (as links), executable or not. What is not: what the folder's own
`.gitignore` files name, anything called `.git`, larger and special files, and folders without files. What was recorded
stays so until it is gone, even if a rule names it later or it grows: to 32 MiB with its content, beyond that only that it
is there. The files of repositories inside the folder are recorded like any others. A restore gives back what is recorded
exactly, and leaves alone what is not; what would be lost by it makes it refuse.
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

from everturn import faults
from everturn.core.parts import FileChange
from everturn.errors import CommandRefused, ConfigError, StoreUnavailable
from everturn.tools.shadow_folder import check_folder, claim_folder
from everturn.tools.shadow_git import LINK, Listing, Repository
from everturn.tools.shadow_large import stand_ins
from everturn.tools.shadow_process import find_git
from everturn.tools.shadow_restore import carry_out, plan, shown
from everturn.tools.shadow_rules import RULES
from everturn.tools.shadow_users import Users
from everturn.tools.shadow_walk import File, Found, RuleSet, walk

CHANGES = 500  # that are listed
DIFF_BYTES = 64 * 1024
ASKED_BYTES = 100_000  # of paths on a command line
LOCK_SECONDS = 120.0
CUT = "\n… the rest of this diff is not shown\n"
T = TypeVar("T")


class Memory(Struct, frozen=True, omit_defaults=True):
    """What is remembered from one time to the next; without it everything is read anew."""

    files: dict[bytes, File] = {}
    left: frozenset[bytes] = frozenset()  # not recorded: a restore took away the `.gitignore` that named them


class Shadow:
    """The snapshots of one folder. Any number of these, in any number of processes, may share a `store_dir`."""

    def __init__(self, folder: str | os.PathLike[str], store_dir: str | os.PathLike[str]) -> None:
        self.folder, self.store_dir = Path(folder).resolve(), Path(store_dir).resolve()
        if not self.folder.is_dir():
            raise ConfigError(f"snapshots of {self.folder}: there is no such folder; make it first")
        if self.store_dir.is_relative_to(self.folder) or self.folder.is_relative_to(self.store_dir):
            raise ConfigError(f"snapshots of {self.folder} must be kept outside of it, and not in {self.store_dir}")
        check_folder(self.folder, self.store_dir)
        find_git()
        self.users = Users(self.store_dir / "busy")

    @cached_property
    def _repository(self) -> Repository:
        self.store_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Repository(self.store_dir / "git")

    async def record(self, rules: str = "") -> str:
        """The tree of what is in the folder now.

        What the `.gitignore` files name is left out: those of the tree `rules`, or those that are there now. Who works in
        the folder and may not hide anything is recorded by the rules of the time before.

        Raises:
            CommandRefused: there is no such tree, or there is too much to record.
        """
        return await asyncio.to_thread(self._alone, lambda: self._record([self._rules_of(rules) if rules else None]))

    async def record_before(self, tree: str) -> str:
        """The tree of what is in the folder now, to be recorded before that one is restored.

        What its `.gitignore` files name is left out too: if they are gone by now, a restore would remove it.
        """
        return await asyncio.to_thread(self._alone, lambda: self._record([None, self._rules_of(tree)]))

    async def restore(self, tree: str) -> None:
        """Make the folder what it was.

        Raises:
            CommandRefused: there is no such tree, somebody works in the folder, or something would be lost; nothing was
                changed.
        """
        await asyncio.to_thread(self._alone, lambda: self._restore_unused(tree))

    async def check_unused(self) -> None:
        """Refuse what cannot be done while somebody works in the folder.

        Raises:
            CommandRefused: somebody does.
        """
        await asyncio.to_thread(self._alone, self._check_unused)

    def _check_unused(self) -> None:
        with self.users.shut_out(self.folder):
            pass

    def _restore_unused(self, tree: str) -> None:
        with self.users.shut_out(self.folder):
            self._restore(tree)

    async def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """What became of files between two trees; the first 500."""
        return await asyncio.to_thread(self._changes, before, after)

    async def diff(self, before: str, after: str, path: str) -> str:
        """How one file, as `changes` names it, differs between two trees; no more than 64 KiB of it."""
        return await asyncio.to_thread(self._diff, before, after, path)

    def _record(self, rules: Sequence[RuleSet]) -> str:
        memory = self._remembered()
        found = self._walk(memory, rules=rules)
        left = frozenset(path for path in memory.left if found.skipped.get(path) == "left")
        new = Memory(found.files, left)
        if new != memory:
            self._remember(new)
        return self._repository.write_tree(_listing(found.files))

    def _restore(self, tree: str) -> None:
        wanted = self._repository.list_tree(tree)
        memory = self._remembered()
        found = self._walk(memory, wanted, [None, _rules_in(wanted)])
        todo = plan(found, wanted, stand_ins(self._repository))
        if missing := self._repository.missing({name for _, _, name in todo.write}):
            raise CommandRefused(
                f"{len(missing)} files of tree {tree} are gone from the snapshots; nothing was changed"
            )
        named = {path for path, why in found.skipped.items() if why in ("ignored", "left")} - found.folders
        files = {path: File(mode, name) for path, (mode, name) in wanted.items()}
        # Written first: if this dies half way, whoever goes on must still know what was nobody's to touch.
        self._remember(Memory({**files, **found.files}, frozenset(named)))
        faults.hit("shadow.planned")
        try:
            carry_out(self._repository, str(self.folder), todo)
        except OSError as error:
            raise StoreUnavailable(
                f"{self.folder} could not be restored to its end ({error}): see to that, then revert again"
            ) from error
        kept = {path: file for path, file in found.files.items() if wanted.get(path) == (file.mode, file.name)}
        self._remember(Memory({**files, **kept}, frozenset(named)))

    def _changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        if before == after:
            return ()
        pair = (self._repository.known(before), self._repository.known(after))
        raw = self._repository.diff("--raw", "-z", *pair).split(b"\0")[:-1]
        kinds = {path: what[-1:] for what, path in zip(raw[::2], raw[1::2], strict=True)}
        listed = sorted(kinds)[:CHANGES]
        asked = listed if len(kinds) > CHANGES else []
        while sum(map(len, asked)) > ASKED_BYTES:
            asked = asked[: len(asked) // 2]
        counts: dict[bytes, tuple[int, int]] = {}
        for line in self._repository.diff("--numstat", "-z", *pair, "--", *asked).split(b"\0")[:-1]:
            added, removed, path = line.split(b"\t", 2)
            if added != b"-":  # which stands for what has no lines
                counts[path] = (int(added), int(removed))
        return tuple(FileChange(shown(path), _kind(kinds[path]), *counts.get(path, (0, 0))) for path in listed)

    def _diff(self, before: str, after: str, path: str) -> str:
        known = self._repository.known
        raw = self._repository.diff("--name-only", "-z", known(before), known(after)).split(b"\0")[:-1]
        paths = [name for name in raw if shown(name) == path]
        if not paths:
            return ""
        data, is_whole = self._repository.patch(before, after, paths, DIFF_BYTES)
        return data.decode("utf-8", "replace") + ("" if is_whole else CUT)

    def _rules_of(self, tree: str) -> RuleSet:
        return _rules_in(self._repository.list_tree(tree))

    def _walk(self, memory: Memory, wanted: Collection[bytes] = (), rules: Sequence[RuleSet] = (None,)) -> Found:
        now = time.time_ns()
        try:
            return walk(self._repository, str(self.folder), memory.files, now, memory.left, wanted, rules)
        except OSError as error:
            raise StoreUnavailable(f"no snapshot of {self.folder} could be taken: {error}") from error

    def _alone(self, work: Callable[[], T]) -> T:
        # In the thread, not around it: a caller that is cancelled lets go of the lock only when the work is done.
        self.store_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _lock(self.store_dir / "lock"):
            claim_folder(self.folder, self.store_dir)
            return work()

    def _remembered(self) -> Memory:
        try:
            return msgspec.msgpack.decode((self.store_dir / "memory").read_bytes(), type=Memory)
        except (OSError, msgspec.MsgspecError, ValueError):
            return Memory()

    def _remember(self, memory: Memory) -> None:
        handle, unfinished = tempfile.mkstemp(prefix="memory-", dir=self.store_dir)
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.msgpack.encode(memory))
        os.replace(unfinished, self.store_dir / "memory")


def _listing(files: dict[bytes, File]) -> dict[bytes, tuple[int, str]]:
    return {path: (file.mode, file.name) for path, file in files.items()}


def _rules_in(listing: Listing) -> RuleSet:
    found = (path for path, (mode, _) in listing.items() if path.rpartition(b"/")[2] == RULES and mode != LINK)
    return {path: listing[path][1] for path in found}


def _kind(status: bytes) -> Literal["added", "modified", "deleted"]:
    return "added" if status == b"A" else "deleted" if status == b"D" else "modified"


@contextmanager
def _lock(path: Path) -> Generator[None]:
    """Be the only one; the system lets go of it for a process that dies."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise StoreUnavailable(f"somebody has held {path} for {LOCK_SECONDS:.0f} s; try again") from None
                time.sleep(0.01)
        yield
    finally:
        os.close(handle)
