"""Repository of a folder, opened for commits: which parts of `.git` a sandboxed command may write.

The problem: a commit writes files directly in `.git` (`index.lock`, `COMMIT_EDITMSG`), so `.git` itself must be
writable; and git runs what its configuration and hooks say, so those must not be. Rejected: to mount only `index` and
`refs` (git replaces them by renaming, which a mount prevents), and to commit on behalf of the command outside of the
sandbox (filters and hooks of the repository would run there).

The invariant: in a writable `.git`, everything that existed and is not among `WRITTEN_BY_COMMITS` is mounted read-only,
the configuration reads as empty, and what a command adds beside them is moved to the quarantine afterwards, and so is
every link: git would follow it out of the repository. Other repositories, and a `.git` that is a file, stay read-only.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from everturn.sandbox.hidden_paths import HiddenPaths, open_in_folder

GIT: Final = ".git"
WRITTEN_BY_COMMITS: Final = frozenset(
    (
        *("index", "HEAD", "ORIG_HEAD", "COMMIT_EDITMSG", "packed-refs", "objects", "refs", "logs"),
        *("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "AUTO_MERGE", "SQUASH_MSG"),
        *("rebase-merge", "rebase-apply", "sequencer", "REBASE_HEAD"),
    )
)
"""The entries of `.git` that staging, committing and switching branches write, and nothing that git obeys."""

LOCK: Final = ".lock"  # of these entries, beside them
READ_ONLY_BELOW: Final = ("objects/info",)  # `alternates` names other repositories
LINK_FREE: Final = ("refs", "logs")  # git writes through these
MAX_ENTRIES: Final = 200_000


def open_git_folder(folder: int, kept: HiddenPaths) -> HiddenPaths:
    """Return the protected paths for a command that may commit; unchanged if `.git` is not a folder."""
    if GIT not in kept.read_only or not _is_folder(folder, GIT):
        return kept
    entries = [name for name in _names(folder, GIT) if not _is_written(name)]
    below = [path for path in READ_ONLY_BELOW if _is_folder(folder, f"{GIT}/{path}")]
    covered = {*kept.hidden_files, *kept.hidden_folders, *kept.empty_files}
    fixed = [f"{GIT}/{name}" for name in (*entries, *below) if f"{GIT}/{name}" not in covered]
    read_only = sorted({*(path for path in kept.read_only if path != GIT), *fixed})
    return replace(kept, read_only=tuple(read_only), pinned=tuple(sorted({*kept.pinned, GIT})))


def find_git_intruders(folder: int) -> set[str]:
    """Return the paths in `.git` that no commit writes, and all links among those that it does."""
    if not _is_folder(folder, GIT):
        return set()
    found = {f"{GIT}/{name}" for name in _names(folder, GIT) if not _is_written(name) or _is_link(folder, name)}
    for name in _names(folder, f"{GIT}/objects"):
        if name == "info" or _is_link(folder, f"objects/{name}"):
            found |= _files_below(folder, f"{GIT}/objects/info") if name == "info" else {f"{GIT}/objects/{name}"}
    for top in LINK_FREE:
        found |= {path for path, is_link in _walk(folder, f"{GIT}/{top}") if is_link}
    return found


def _files_below(folder: int, path: str) -> set[str]:
    return {f"{path}/{name}" for name in _names(folder, path) if name != "packs"}


def _is_written(name: str) -> bool:
    return name in WRITTEN_BY_COMMITS or name.removesuffix(LOCK) in WRITTEN_BY_COMMITS


def _is_link(folder: int, name: str) -> bool:
    try:
        parent = open_in_folder(folder, f"{GIT}/{name}".rpartition("/")[0])
    except OSError:
        return False
    try:
        return stat.S_ISLNK(os.stat(name.rpartition("/")[2], dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        return False
    finally:
        os.close(parent)


def _names(folder: int, path: str) -> list[str]:
    try:
        opened = open_in_folder(folder, path)
    except OSError:
        return []
    try:
        return sorted(os.listdir(opened))
    finally:
        os.close(opened)


def _is_folder(folder: int, path: str) -> bool:
    try:
        os.close(open_in_folder(folder, path))
    except OSError:
        return False
    return True


def _walk(folder: int, top: str) -> Iterator[tuple[str, bool]]:
    waiting, seen = [top], 0
    while waiting and seen < MAX_ENTRIES:
        at = waiting.pop()
        try:
            opened = open_in_folder(folder, at)
        except OSError:
            continue
        try:
            with os.scandir(opened) as entries:
                for entry in entries:
                    seen += 1
                    path = f"{at}/{entry.name}"
                    yield path, entry.is_symlink()
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
        finally:
            os.close(opened)
