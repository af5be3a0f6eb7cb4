"""Hidden and read-only paths: finds the protected paths of the folder that a shell gets, and mounts them for
bubblewrap.

No link is followed. A path is mounted by its open file, not by its name, and before the command starts the mounts are
verified with the kernel: another program may have moved something meanwhile.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable
from functools import cache
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from everturn.errors import ToolError

Protection = Literal["", "hidden", "fixed"]
PathPolicy = Callable[[str], tuple[Protection, int]]
"""Classifies a path relative to the folder: its kind of protection, and how many of its parent folders must keep their
names for that; -1: all.
"""

MOST_ENTRIES: Final = 300_000
MAX_PROTECTED: Final = 500
DEEPEST: Final = 100
GIT_CONTROL_FILES: Final = frozenset(
    ("HEAD", "config", "config.worktree", "commondir", "hooks", "modules", "worktrees")
)
"""The entries of a repository that git obeys, for where the folder itself is a repository and cannot be fixed as a
whole.
"""

MOUNT_TIMEOUT: Final = 5.0  # seconds in which all mounts must be made
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOUNTED: Final = re.compile(rb"^\S+ \S+ \S+ \S+ (\S+) ", re.MULTILINE)


class HiddenPaths(Struct, frozen=True):
    """The protected paths of a folder, parents first."""

    hidden_files: tuple[str, ...] = ()
    hidden_folders: tuple[str, ...] = ()
    empty_files: tuple[str, ...] = ()  # hidden within a fixed path: it reads as empty, so that git still works
    read_only: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()  # folders that must keep their names
    repositories: frozenset[str] = frozenset()  # those of the fixed ones that git obeys whatever they are called

    @property
    def unchangeable(self) -> frozenset[str]:
        """The paths that a command cannot change."""
        return frozenset((*self.hidden_files, *self.hidden_folders, *self.empty_files, *self.read_only))


def find_hidden_paths(
    folder: int, path_policy: PathPolicy, *, writable: bool, links: list[str] | None = None
) -> HiddenPaths:
    """Walk an open folder. A folder that git takes for a repository (a bare one) is protected as if it were called
    `.git`.

    `links` is for after a run: it receives the links, and there is no limit, because unprotected findings are moved
    away.

    Raises:
        ToolError: there are too many entries, or a link is in the place of a protected path.
    """
    paths: dict[str, list[str]] = {name: [] for name in ("files", "folders", "emptied", "fixed")}
    pinned: set[str] = set()
    closed: list[str] = []
    kept = 0
    repositories: list[str] = []
    bound = MOST_ENTRIES if links is None else sys.maxsize // 2
    for path, entry, is_fixed in _walk(folder, lambda path: path_policy(path)[0], closed, repositories, bound):
        kind, pins = path_policy(path)
        if not kind or (kind == "fixed" and (is_fixed or not writable)):
            continue
        if entry.is_symlink():
            if links is not None:
                links.append(path)
            elif writable and not is_fixed:
                raise ToolError(
                    f"{path!r} is protected, and is a symbolic link, which cannot be hidden: replace it with a "
                    f"file, choose a folder without it, or allow it with protect=PROTECTED.but({path!r})"
                )
            continue
        kept += 1
        if kept > MAX_PROTECTED and links is None:
            raise ToolError(
                f"the shell was not run: more than {MAX_PROTECTED} files and folders in its folder are protected; "
                "choose a smaller folder, or protect less"
            )
        is_folder = entry.is_dir(follow_symlinks=False)
        where = "fixed" if kind == "fixed" else "folders" if is_folder else "emptied" if is_fixed else "files"
        paths[where].append(path)
        above = path.split("/")[:-1]
        if writable and not is_fixed:
            first = 0 if pins < 0 else max(0, len(above) - pins)
            pinned.update("/".join(above[: size + 1]) for size in range(first, len(above)))
    if writable:
        paths["fixed"] += repositories
    folders = sorted((*paths["folders"], *closed))
    fixed = tuple(sorted(paths["fixed"]))
    return HiddenPaths(
        tuple(paths["files"]),
        tuple(folders),
        tuple(paths["emptied"]),
        fixed,
        tuple(sorted(pinned)),
        frozenset(repositories),
    )


def _walk(
    folder: int, path_policy: Callable[[str], Protection], closed: list[str], repositories: list[str], bound: int
) -> Generator[tuple[str, os.DirEntry[str], bool]]:
    """All entries except those in hidden folders, and whether each is in a fixed one.

    `closed` receives folders that are too deep or cannot be read: a command that owns one could make it readable, so
    they are hidden. `repositories` receives bare ones; of the folder itself, the entries that git obeys.
    """
    waiting: list[tuple[str, bool]] = [("", False)]
    seen = 0
    while waiting:
        at, is_fixed = waiting.pop()
        try:
            directory = open_in_folder(folder, at)
        except (FileNotFoundError, NotADirectoryError):  # removed meanwhile
            continue
        except OSError as error:
            if not at:
                raise ToolError(f"the shell was not run: its folder cannot be read ({error.strerror})") from None
            closed.append(at)
            continue
        try:
            with os.scandir(directory) as entries:
                listed = list(itertools.islice(entries, max(0, bound - seen) + 1))
                seen += len(listed)
                if seen > bound or (len(closed) > MAX_PROTECTED and bound == MOST_ENTRIES):
                    raise ToolError(
                        f"the shell was not run: its folder has more than {MOST_ENTRIES:,} entries, too many to "
                        "find the protected ones in time; choose a smaller folder"
                    )
                if not is_fixed and is_repository(entry.name for entry in listed):
                    is_kept = path_policy(f"{at}/.git" if at else ".git") != ""
                    is_fixed = is_kept and at != ""
                    if is_kept:
                        repositories += [at] if at else [item.name for item in listed if item.name in GIT_CONTROL_FILES]
                for entry in listed:
                    path = f"{at}/{entry.name}" if at else entry.name
                    yield path, entry, is_fixed
                    if entry.is_dir(follow_symlinks=False) and (kind := path_policy(path)) != "hidden":
                        if path.count("/") < DEEPEST:
                            waiting.append((path, is_fixed or kind == "fixed"))
                        else:
                            closed.append(path)
        finally:
            os.close(directory)


def is_repository(names: Iterable[str]) -> bool:
    """Whether git takes a folder with these entries for a repository, and obeys the settings in it."""
    lowercase = {name.lower() for name in names}
    return "head" in lowercase and (lowercase >= {"objects", "refs"} or "commondir" in lowercase)


def open_in_folder(folder: int, path: str, flags: int = _DIRECTORY) -> int:
    """Open a path below an open folder, without following links."""
    current = os.open(".", _DIRECTORY, dir_fd=folder)
    parts = path.split("/") if path else []
    for index, part in enumerate(parts):
        try:
            child = os.open(part, flags if index == len(parts) - 1 else _DIRECTORY, dir_fd=current)
        finally:
            os.close(current)
        current = child
    return current


def mount_options(kept: HiddenPaths, work: str, opened: Callable[[str], int], empty: Callable[[], int]) -> list[str]:
    """The options that protect the paths, to follow those that mount the folder; `opened` returns a descriptor for a
    path.
    """
    mounts: list[tuple[str, list[str]]] = []
    mounts += [(path, ["--bind-fd", str(opened(path))]) for path in kept.pinned]
    mounts += [(path, ["--ro-bind-fd", str(opened(path))]) for path in kept.read_only]
    mounts += [(path, ["--ro-bind", "/dev/null"]) for path in kept.hidden_files]  # nodev: opening it is not permitted
    mounts += [(path, ["--ro-bind-data", str(empty())]) for path in kept.empty_files]
    mounts += [(path, ["--perms", "0000", "--size", "4096", "--tmpfs"]) for path in kept.hidden_folders]
    options = [
        word for path, how in sorted(mounts, key=lambda mount: mount[0].split("/")) for word in (*how, f"{work}/{path}")
    ]
    return options + [word for path in kept.hidden_folders for word in ("--remount-ro", f"{work}/{path}")]


def check_mounted(process: int, kept: HiddenPaths, work: str) -> None:
    """Check that all mounts are in place, before the command starts: a mount cannot be moved by it.

    Raises:
        ToolError: a mount is missing, because another program moved something meanwhile.
        ProcessLookupError: the sandbox has ended.
    """
    wanted = {f"{work}/{path}" for path in (*kept.unchangeable, *kept.pinned)}
    until = time.monotonic() + MOUNT_TIMEOUT
    while wanted:
        wanted -= _mounts(process)
        if wanted and time.monotonic() > until:
            name = min(wanted).removeprefix(f"{work}/")
            raise ToolError(
                f"the shell was not run: {name!r}, which is protected, was moved in the meantime; try again"
            )
        if wanted:
            time.sleep(0.002)


def _mounts(process: int) -> set[str]:
    try:
        listed = Path("/proc", str(process), "mountinfo").read_bytes()
    except OSError:
        raise ProcessLookupError from None
    plain = (re.sub(rb"\\([0-7]{3})", lambda octal: bytes((int(octal[1], 8),)), at) for at in _MOUNTED.findall(listed))
    return {os.fsdecode(at) for at in plain}


@cache
def can_mount_descriptors() -> bool:
    """Whether this bubblewrap can mount open files (`--ro-bind-fd`)."""
    path = shutil.which("bwrap")
    if path is None:
        return False
    output = subprocess.run([path, "--help"], capture_output=True, timeout=5, check=False, env={})
    return b"--ro-bind-fd" in output.stdout + output.stderr
