"""Ignore rules: evaluates the texts of `.gitignore` files with git.

Git runs on a folder that holds only these texts and empty folders: the caller decides which rules count, and not the
content of the folder that they are about.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from everturn.tools.snapshots.git_objects import ObjectRepository
from everturn.tools.snapshots.git_process import GitConversation

RULES = b".gitignore"
MAX_QUERY_BYTES = 30_000  # per question; a pipe holds twice that


class IgnoreRules:
    """The ignore rules of one walk; the rules of a folder are added before any question about it."""

    def __init__(self, repository: ObjectRepository, ending: ExitStack, number: int) -> None:
        self._repository, self._ending = repository, ending
        self._top = os.fsencode(repository.home.parent / f"rules-{number}")
        self._git: GitConversation | None = None

    def add_rules(self, prefix: bytes, text: bytes) -> None:
        """Add the rules of a folder: "" or a path with a trailing slash."""
        if self._git is None:
            shutil.rmtree(self._top, ignore_errors=True)  # left over from a process that died
            os.makedirs(self._top, mode=0o700)
            self._ending.callback(shutil.rmtree, self._top, ignore_errors=True)
            self._git = self._ending.enter_context(self._repository.open_check_ignore(os.fsdecode(self._top)))
        with _short_enough():
            self._make(prefix)
            with open(os.path.join(self._top, prefix + RULES), "wb") as file:
                file.write(text)

    def ignored(self, paths: list[bytes], folders: Iterable[bytes]) -> set[bytes]:
        """Those of these paths, all in one folder, that are ignored; `folders` are those of them that are folders."""
        ignored_paths: set[bytes] = set()
        if self._git is None:
            return ignored_paths
        for folder in folders:
            with _short_enough():
                self._make(folder)
        for portion in _portions(paths):
            self._git.ask(b"".join(b"./%s\0" % path for path in portion))  # a leading colon would be pathspec magic
            answers = self._git.read_fields(4 * len(portion), b"\0")  # of each: source, line, pattern, path
            for path, pattern in zip(portion, answers[2::4], strict=True):
                if pattern and not pattern.startswith(b"!"):
                    ignored_paths.add(path)
        return ignored_paths

    def _make(self, folder: bytes) -> None:
        with suppress(FileExistsError):
            os.makedirs(os.path.join(self._top, folder), exist_ok=True)


@contextmanager
def _short_enough() -> Generator[None]:
    """Suppress the error for a path that is too long for the system; git matches no rule for it either."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise


def _portions(paths: list[bytes]) -> Iterator[list[bytes]]:
    portion: list[bytes] = []
    size = 0
    for path in paths:
        if portion and size + len(path) >= MAX_QUERY_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(path)
        size += len(path) + 3
    if portion:
        yield portion
