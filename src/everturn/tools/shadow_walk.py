"""A folder → the files in it that are recorded, and those that are not, with the reason.

Every folder is opened beneath its parent and never through a link, so that whatever is swapped meanwhile, nothing
outside is read. Git is only asked which names the `.gitignore` files mean: those that are there, or those of a tree.
They are recorded themselves, even if they name themselves, since later walks go by what was recorded of them.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Final, Literal

from msgspec import Struct

from everturn.errors import CommandRefused
from everturn.tools.shadow_git import EXECUTABLE, LINK, PLAIN, Repository, read_object
from everturn.tools.shadow_large import stand_in
from everturn.tools.shadow_process import Talk
from everturn.tools.shadow_rules import RULES, Rules

FILE_BYTES = 2 * 2**20  # a larger file is not recorded
GROWN_BYTES = 32 * 2**20  # of a file that was recorded before it grew; of a larger one, only that it is there
RULES_BYTES = 2**20  # of a `.gitignore`
FILES = 100_000
DEPTH = 128  # of folders
RACY = 2 * 10**9  # nanoseconds; what changed so shortly before it was read may change again and look the same
UNFINISHED = re.compile(rb"\.everturn-[0-9a-f]{16}\.tmp")  # a file that a restore had begun to write
Reason = Literal["ignored", "left", "large", "special", "unreadable", "deep", "git", "unfinished"]
Stamp = tuple[int, int, int, int]  # size, mtime, ctime, inode; all 0: look again
RuleSet = Mapping[bytes, str] | None  # path -> blob of a `.gitignore`
UNSURE: Final[Stamp] = (0, 0, 0, 0)


class File(Struct, frozen=True, array_like=True):
    """A file that is recorded."""

    mode: int
    name: str  # of its blob
    stamp: Stamp = UNSURE


class Found(Struct):
    """What there is in a folder. A folder that is skipped stands for everything in it."""

    files: dict[bytes, File] = {}
    skipped: dict[bytes, Reason] = {}
    folders: set[bytes] = set()


class Walk:
    """One walk. `known` files are recorded although they are ignored or large by now; what is in `left` is not, until it
    is gone. `into` are folders to look into even if they are ignored; `rules` are the files of rules that count, in any
    number of sets; None are those that are there.
    """

    def __init__(
        self,
        repository: Repository,
        folder: str,
        known: Mapping[bytes, File],
        left: Collection[bytes],
        into: Collection[bytes],
        rules: Sequence[RuleSet],
        now: int,
        ending: ExitStack,
    ) -> None:
        self.repository, self.folder, self.now = repository, folder, now
        self.known, self.left, self.into = known, left, into
        self.found = Found()
        self._rules = [(Rules(repository, ending, number), one) for number, one in enumerate(rules)]
        self._ending = ending
        self._contents: Talk | None = None

    def visit(self, handle: int, prefix: bytes, depth: int) -> None:
        """Look at everything in an open folder."""
        with os.scandir(handle) as scanned:
            entries = sorted((os.fsencode(entry.name), entry) for entry in scanned)
        seen: list[tuple[bytes, os.stat_result]] = []
        for name, entry in entries:
            try:
                seen.append((name, entry.stat(follow_symlinks=False)))
            except OSError:
                continue  # it is gone
        for name, status in seen:
            if name == RULES:
                self._check_rules(prefix + name, status)
        folders = [prefix + name for name, status in seen if stat.S_ISDIR(status.st_mode)]
        ignored: set[bytes] = set()
        for rules, recorded in self._rules:
            if text := self._text(handle, prefix, dict(seen).get(RULES), recorded):
                rules.put(prefix, text)
            ignored |= rules.ignored([prefix + name for name, _ in seen], folders)
        for name, status in seen:
            self._look(handle, prefix + name, name, status, prefix + name in ignored, depth)

    def _text(self, handle: int, prefix: bytes, status: os.stat_result | None, recorded: RuleSet) -> bytes:
        """The rules that count for a folder."""
        path = prefix + RULES
        if recorded is not None:
            if (name := recorded.get(path)) is None:
                return b""
            if self._contents is None:
                self._contents = self._ending.enter_context(self.repository.contents())
            return read_object(self._contents, name)
        # What is not recorded does not count: a walk by the tree that this one makes would not know of it.
        is_kept = path in self.known or not (self._is_skipped(path) or path in self.left)
        if status is None or not stat.S_ISREG(status.st_mode) or not is_kept:
            return b""
        try:
            return read(handle, RULES, status, RULES_BYTES)
        except OSError:
            return b""

    def _check_rules(self, path: bytes, status: os.stat_result) -> None:
        is_odd = stat.S_IFMT(status.st_mode) not in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)
        if is_odd or status.st_size > RULES_BYTES:
            raise CommandRefused(
                f"{path.decode(errors='replace')!r} in {os.path.basename(self.folder)!r} is no file of rules (it is too large, or no file "
                "at all), so it is not known what to record: remove it"
            )

    def _look(self, at: int, path: bytes, name: bytes, status: os.stat_result, ignored: bool, depth: int) -> None:
        is_folder = stat.S_ISDIR(status.st_mode)
        if reason := self._reason(path, name, status, ignored):
            self.found.skipped[path] = reason
            if not (is_folder and reason in ("ignored", "left") and path in self.into):
                return
        if not is_folder:
            if not reason:
                self._keep(at, path, name, status)
            return
        if depth == DEPTH:
            self.found.skipped[path] = "deep"
            return
        try:
            handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        except OSError:
            self.found.skipped[path] = "unreadable"
            return
        try:
            self.found.folders.add(path)
            self.visit(handle, path + b"/", depth + 1)
        finally:
            os.close(handle)

    def _reason(self, path: bytes, name: bytes, status: os.stat_result, ignored: bool) -> Reason | None:
        kind = stat.S_IFMT(status.st_mode)
        if name.lower() == b".git":
            return "git"
        if UNFINISHED.fullmatch(name):
            return "unfinished"
        if kind == stat.S_IFDIR or path not in self.known:
            if ignored and (name != RULES or kind != stat.S_IFREG or self._is_skipped(path)):
                return "ignored"
            if path in self.left or _is_beneath(path, self.left):
                return "left"
        if kind not in (stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK):
            return "special"
        is_large = kind == stat.S_IFREG and status.st_size > FILE_BYTES
        return "large" if is_large and path not in self.known else None

    def _is_skipped(self, path: bytes) -> bool:
        """Whether the folder it is in is not recorded."""
        return path.rpartition(b"/")[0] in self.found.skipped

    def _keep(self, at: int, path: bytes, name: bytes, status: os.stat_result) -> None:
        stamp, old = _stamp(status), self.known.get(path)
        if old is not None and old.stamp == stamp and old.mode == _mode(status):
            self.found.files[path] = old
        else:
            if max(status.st_mtime_ns, status.st_ctime_ns) > self.now - RACY:
                stamp = UNSURE
            try:
                blob = self._write(at, name, status, FILE_BYTES if old is None else GROWN_BYTES)
            except OSError:
                self.found.skipped[path] = "unreadable"
                return
            if not blob and old is None:
                self.found.skipped[path] = "large"
                return
            self.found.files[path] = File(_mode(status), blob or stand_in(self.repository, status), stamp)
        if len(self.found.files) > FILES:
            raise CommandRefused(
                f"{os.path.basename(self.folder)!r} has more than {FILES} files to be recorded: name those that need no snapshot in its "
                ".gitignore, or take snapshots of a smaller folder"
            )

    def _write(self, at: int, name: bytes, status: os.stat_result, limit: int) -> str:
        """Keep a content; "" if it is too long."""
        if stat.S_ISREG(status.st_mode) and status.st_size > limit:
            return ""
        data = read(at, name, status, limit)
        return self.repository.write(b"blob", data) if len(data) <= limit else ""


def walk(
    repository: Repository,
    folder: str,
    known: Mapping[bytes, File],
    now: int,
    left: Collection[bytes] = (),
    wanted: Collection[bytes] = (),
    rules: Sequence[RuleSet] = (None,),
) -> Found:
    """Look through a folder, and keep the content of what is recorded; `wanted` files are looked for even if ignored."""
    into = {above for path in (*known, *wanted) for above in parents(path)}
    into.update(wanted)  # a folder may stand where a file is wanted
    with ExitStack() as ending:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        ending.callback(os.close, handle)
        one = Walk(repository, folder, known, left, into, rules, now, ending)
        one.visit(handle, b"", 0)
    return one.found


def read(at: int, name: bytes, status: os.stat_result, limit: int) -> bytes:
    """The content of a file, or a byte more than the limit; or where a link leads, which is not followed."""
    if stat.S_ISLNK(status.st_mode):
        return os.fsencode(os.readlink(name, dir_fd=at))
    # Not to wait for a pipe that stands there by now, nor to read from it.
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is no file any more")
        return file.read(limit + 1)


def parents(path: bytes) -> Iterator[bytes]:
    """The folders above a path, the nearest first."""
    while (cut := path.rfind(b"/")) > 0:
        path = path[:cut]
        yield path


def _is_beneath(path: bytes, folders: Collection[bytes]) -> bool:
    return bool(folders) and any(above in folders for above in parents(path))


def _stamp(status: os.stat_result) -> Stamp:
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _mode(status: os.stat_result) -> int:
    if stat.S_ISLNK(status.st_mode):
        return LINK
    return EXECUTABLE if status.st_mode & stat.S_IXUSR else PLAIN
