"""Folder walk for snapshots: finds the files that are recorded, and those that are not, with the reason.

Every folder is opened relative to its parent and never through a link, so that nothing outside is read, whatever is
replaced meanwhile. Git only evaluates the `.gitignore` rules: the current ones, or those of a tree. The `.gitignore`
files are recorded themselves, even if they name themselves, since later walks use the recorded rules.
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
from everturn.tools.snapshots.git_objects import EXECUTABLE, LINK, PLAIN, ObjectRepository, read_object
from everturn.tools.snapshots.git_process import GitConversation
from everturn.tools.snapshots.gitignore import RULES, IgnoreRules
from everturn.tools.snapshots.large_files import write_placeholder

FILE_BYTES = 2 * 2**20  # a larger file is not recorded
GROWN_BYTES = 32 * 2**20  # of a file that was recorded before it grew; a larger one gets a placeholder
RULES_BYTES = 2**20  # of a `.gitignore`
FILES = 100_000
DEPTH = 128  # of folders
RACY_NANOSECONDS = (
    2 * 10**9
)  # nanoseconds; a file changed so shortly before it was read may change again with the same stamp
UNFINISHED = re.compile(rb"\.everturn-[0-9a-f]{16}\.tmp")  # a temporary file of a restore
SkipReason = Literal["ignored", "left", "large", "special", "unreadable", "deep", "git", "unfinished"]
FileStamp = tuple[int, int, int, int]  # size, mtime, ctime, inode; all 0: read the file again
RuleSet = Mapping[bytes, str] | None  # path -> blob of a `.gitignore`
UNKNOWN_STAMP: Final[FileStamp] = (0, 0, 0, 0)


class RecordedFile(Struct, frozen=True, array_like=True):
    """A file that is recorded."""

    mode: int
    name: str  # of its blob
    stamp: FileStamp = UNKNOWN_STAMP


class WalkResult(Struct):
    """The content of a folder. A skipped folder stands for everything in it."""

    files: dict[bytes, RecordedFile] = {}
    skipped: dict[bytes, SkipReason] = {}
    folders: set[bytes] = set()


class FolderWalk:
    """One walk. `known` files are recorded although they are ignored or large by now; files in `left` are not, until
    they are removed. `into` are folders to enter even if they are ignored; `rules` are the sets of `.gitignore`
    files that count; None is the set of the current ones.
    """

    def __init__(
        self,
        repository: ObjectRepository,
        folder: str,
        known: Mapping[bytes, RecordedFile],
        left: Collection[bytes],
        into: Collection[bytes],
        rules: Sequence[RuleSet],
        now: int,
        ending: ExitStack,
    ) -> None:
        self.repository, self.folder, self.now = repository, folder, now
        self.known, self.left, self.enter_ignored = known, left, into
        self.found = WalkResult()
        self._rules = [(IgnoreRules(repository, ending, number), rule_set) for number, rule_set in enumerate(rules)]
        self._ending = ending
        self._contents: GitConversation | None = None

    def visit(self, handle: int, prefix: bytes, depth: int) -> None:
        """Process everything in an open folder."""
        with os.scandir(handle) as scanned:
            entries = sorted((os.fsencode(entry.name), entry) for entry in scanned)
        seen: list[tuple[bytes, os.stat_result]] = []
        for name, entry in entries:
            try:
                seen.append((name, entry.stat(follow_symlinks=False)))
            except OSError:
                continue  # removed meanwhile
        for name, status in seen:
            if name == RULES:
                self._check_rules(prefix + name, status)
        folders = [prefix + name for name, status in seen if stat.S_ISDIR(status.st_mode)]
        ignored: set[bytes] = set()
        for rules, recorded in self._rules:
            if text := self._text(handle, prefix, dict(seen).get(RULES), recorded):
                rules.add_rules(prefix, text)
            ignored |= rules.ignored([prefix + name for name, _ in seen], folders)
        for name, status in seen:
            self._look(handle, prefix + name, name, status, prefix + name in ignored, depth)

    def _text(self, handle: int, prefix: bytes, status: os.stat_result | None, recorded: RuleSet) -> bytes:
        """The rules that apply to a folder."""
        path = prefix + RULES
        if recorded is not None:
            if (name := recorded.get(path)) is None:
                return b""
            if self._contents is None:
                self._contents = self._ending.enter_context(self.repository.open_cat_file())
            return read_object(self._contents, name)
        # A file that is not recorded does not count: a walk by the rules of the resulting tree would not know
        # it.
        is_kept = path in self.known or not (self._is_skipped(path) or path in self.left)
        if status is None or not stat.S_ISREG(status.st_mode) or not is_kept:
            return b""
        try:
            return read_content(handle, RULES, status, RULES_BYTES)
        except OSError:
            return b""

    def _check_rules(self, path: bytes, status: os.stat_result) -> None:
        is_odd = stat.S_IFMT(status.st_mode) not in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)
        if is_odd or status.st_size > RULES_BYTES:
            raise CommandRefused(
                f"{path.decode(errors='replace')!r} in {os.path.basename(self.folder)!r} is not a valid "
                ".gitignore file (it is too large, or not a file), so the files to record are not known: remove "
                "it"
            )

    def _look(self, at: int, path: bytes, name: bytes, status: os.stat_result, ignored: bool, depth: int) -> None:
        is_folder = stat.S_ISDIR(status.st_mode)
        if reason := self._reason(path, name, status, ignored):
            self.found.skipped[path] = reason
            if not (is_folder and reason in ("ignored", "left") and path in self.enter_ignored):
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

    def _reason(self, path: bytes, name: bytes, status: os.stat_result, ignored: bool) -> SkipReason | None:
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
        """Whether the folder of a path is not recorded."""
        return path.rpartition(b"/")[0] in self.found.skipped

    def _keep(self, at: int, path: bytes, name: bytes, status: os.stat_result) -> None:
        stamp, old = _stamp(status), self.known.get(path)
        if old is not None and old.stamp == stamp and old.mode == _mode(status):
            self.found.files[path] = old
        else:
            if max(status.st_mtime_ns, status.st_ctime_ns) > self.now - RACY_NANOSECONDS:
                stamp = UNKNOWN_STAMP
            try:
                blob = self._write(at, name, status, FILE_BYTES if old is None else GROWN_BYTES)
            except OSError:
                self.found.skipped[path] = "unreadable"
                return
            if not blob and old is None:
                self.found.skipped[path] = "large"
                return
            self.found.files[path] = RecordedFile(
                _mode(status), blob or write_placeholder(self.repository, status), stamp
            )
        if len(self.found.files) > FILES:
            raise CommandRefused(
                f"{os.path.basename(self.folder)!r} has more than {FILES} files to record: list files that need "
                "no snapshot in its .gitignore, or choose a smaller folder"
            )

    def _write(self, at: int, name: bytes, status: os.stat_result, limit: int) -> str:
        """Store the content of a file; "" if it is too long."""
        if stat.S_ISREG(status.st_mode) and status.st_size > limit:
            return ""
        data = read_content(at, name, status, limit)
        return self.repository.write(b"blob", data) if len(data) <= limit else ""


def walk_folder(
    repository: ObjectRepository,
    folder: str,
    known: Mapping[bytes, RecordedFile],
    now: int,
    left: Collection[bytes] = (),
    wanted: Collection[bytes] = (),
    rules: Sequence[RuleSet] = (None,),
) -> WalkResult:
    """Walk a folder, and store the content of the recorded files; `wanted` files are looked for even if they are
    ignored.
    """
    into = {above for path in (*known, *wanted) for above in parent_folders(path)}
    into.update(wanted)  # a folder may be where a file is wanted
    with ExitStack() as ending:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        ending.callback(os.close, handle)
        folder_walk = FolderWalk(repository, folder, known, left, into, rules, now, ending)
        folder_walk.visit(handle, b"", 0)
    return folder_walk.found


def read_content(at: int, name: bytes, status: os.stat_result, limit: int) -> bytes:
    """The content of a file, or a byte more than the limit; for a link, its target, which is not followed."""
    if stat.S_ISLNK(status.st_mode):
        return os.fsencode(os.readlink(name, dir_fd=at))
    # Do not block on a pipe that has replaced the file meanwhile, nor read from it.
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is no longer a file")
        return file.read(limit + 1)


def parent_folders(path: bytes) -> Iterator[bytes]:
    """The parent folders of a path, the nearest first."""
    while (cut := path.rfind(b"/")) > 0:
        path = path[:cut]
        yield path


def _is_beneath(path: bytes, folders: Collection[bytes]) -> bool:
    return bool(folders) and any(above in folders for above in parent_folders(path))


def _stamp(status: os.stat_result) -> FileStamp:
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _mode(status: os.stat_result) -> int:
    if stat.S_ISLNK(status.st_mode):
        return LINK
    return EXECUTABLE if status.st_mode & stat.S_IXUSR else PLAIN
