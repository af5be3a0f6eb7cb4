"""Texts of `.gitignore` files → which names they mean, as git understands them.

Git is shown a folder that holds these texts and other folders, and nothing else: which rules count is decided by whoever
puts them here, and not by what stands in the folder they are about.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from everturn.tools.shadow_git import Repository
from everturn.tools.shadow_process import Talk

RULES = b".gitignore"
ASKED_BYTES = 30_000  # at a time; a pipe holds twice that


class Rules:
    """The rules of one walk: put before anything is asked about the folder that they stand in."""

    def __init__(self, repository: Repository, ending: ExitStack, number: int) -> None:
        self._repository, self._ending = repository, ending
        self._top = os.fsencode(repository.home.parent / f"rules-{number}")
        self._git: Talk | None = None

    def put(self, prefix: bytes, text: bytes) -> None:
        """Let a text count for a folder: "" or a path with a slash behind it."""
        if self._git is None:
            shutil.rmtree(self._top, ignore_errors=True)  # of somebody who died
            os.makedirs(self._top, mode=0o700)
            self._ending.callback(shutil.rmtree, self._top, ignore_errors=True)
            self._git = self._ending.enter_context(self._repository.ignoring(os.fsdecode(self._top)))
        with _short_enough():
            self._make(prefix)
            with open(os.path.join(self._top, prefix + RULES), "wb") as file:
                file.write(text)

    def ignored(self, paths: list[bytes], folders: Iterable[bytes]) -> set[bytes]:
        """Those of these paths, all in one folder, that are ignored; `folders` are those that are no files."""
        found: set[bytes] = set()
        if self._git is None:
            return found
        for folder in folders:
            with _short_enough():
                self._make(folder)
        for some in _portions(paths):
            self._git.ask(b"".join(b"./%s\0" % path for path in some))  # a colon in front would be magic
            told = self._git.fields(4 * len(some), b"\0")  # of each: source, line, pattern, path
            for path, pattern in zip(some, told[2::4], strict=True):
                if pattern and not pattern.startswith(b"!"):
                    found.add(path)
        return found

    def _make(self, folder: bytes) -> None:
        with suppress(FileExistsError):
            os.makedirs(os.path.join(self._top, folder), exist_ok=True)


@contextmanager
def _short_enough() -> Generator[None]:
    """Of a path that is too long for the system git says nothing either."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise


def _portions(paths: list[bytes]) -> Iterator[list[bytes]]:
    some: list[bytes] = []
    size = 0
    for path in paths:
        if some and size + len(path) >= ASKED_BYTES:
            yield some
            some, size = [], 0
        some.append(path)
        size += len(path) + 3
    if some:
        yield some
