"""A folder that a shell is given → what in it is hidden from it, and what it can only read: found, and said to bubblewrap.

No link is followed. What is found is bound by what was opened, not by its name, and before the command begins the kernel is
asked whether all of it is in place: somebody else may have moved it meanwhile.
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

Kind = Literal["", "hidden", "fixed"]
Judge = Callable[[str], tuple[Kind, int]]
"""(a path beneath the folder) → how it is kept, and how many of the folders it is in must keep their names for that; -1: all."""

MOST_ENTRIES: Final = 300_000
MOST_KEPT: Final = 500
DEEPEST: Final = 100
OBEYED: Final = frozenset(("HEAD", "config", "config.worktree", "commondir", "hooks", "modules", "worktrees"))
"""What git obeys of a repository, where the folder itself is one and cannot be kept as a whole."""

FURNISHED: Final = 5.0  # seconds in which all mounts are made
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOUNTED: Final = re.compile(rb"^\S+ \S+ \S+ \S+ (\S+) ", re.MULTILINE)


class Kept(Struct, frozen=True):
    """What is kept in a folder, by paths, those above first."""

    hidden_files: tuple[str, ...] = ()
    hidden_folders: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()  # hidden in what is fixed: it reads as empty, so that git still works
    fixed: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()  # folders that keep their names
    repositories: frozenset[str] = frozenset()  # those of the fixed ones that git obeys whatever they are called

    @property
    def all(self) -> frozenset[str]:
        """What a command cannot change."""
        return frozenset((*self.hidden_files, *self.hidden_folders, *self.emptied, *self.fixed))


def find(folder: int, judge: Judge, *, writable: bool, links: list[str] | None = None) -> Kept:
    """Go through an open folder. A folder that git takes for a repository without a name of its own (a bare one) is kept
    as if it were called `.git`.

    `links` is for after a run: it is given the links, and there is no bound, for what cannot be kept is moved away.

    Raises:
        ToolError: there is too much in it, or a link in the place of something that is kept.
    """
    found: dict[str, list[str]] = {name: [] for name in ("files", "folders", "emptied", "fixed")}
    pinned: set[str] = set()
    closed: list[str] = []
    kept = 0
    repositories: list[str] = []
    bound = MOST_ENTRIES if links is None else sys.maxsize // 2
    for path, entry, is_fixed in _walk(folder, lambda path: judge(path)[0], closed, repositories, bound):
        kind, pins = judge(path)
        if not kind or (kind == "fixed" and (is_fixed or not writable)):
            continue
        if entry.is_symlink():
            if links is not None:
                links.append(path)
            elif writable and not is_fixed:
                raise ToolError(
                    f"{path!r} is protected, and is a symbolic link, which cannot be kept as it is: put a file in its place, "
                    f"or give the shell a folder without it, or let go of it with protect=PROTECTED.but({path!r})"
                )
            continue
        kept += 1
        if kept > MOST_KEPT and links is None:
            raise ToolError(
                f"the shell was not run: more than {MOST_KEPT} files and folders in its folder are protected; give it a "
                "smaller folder, or protect less"
            )
        is_folder = entry.is_dir(follow_symlinks=False)
        where = "fixed" if kind == "fixed" else "folders" if is_folder else "emptied" if is_fixed else "files"
        found[where].append(path)
        above = path.split("/")[:-1]
        if writable and not is_fixed:
            first = 0 if pins < 0 else max(0, len(above) - pins)
            pinned.update("/".join(above[: size + 1]) for size in range(first, len(above)))
    if writable:
        found["fixed"] += repositories
    folders = sorted((*found["folders"], *closed))
    fixed = tuple(sorted(found["fixed"]))
    return Kept(
        tuple(found["files"]),
        tuple(folders),
        tuple(found["emptied"]),
        fixed,
        tuple(sorted(pinned)),
        frozenset(repositories),
    )


def _walk(
    folder: int, judge: Callable[[str], Kind], closed: list[str], repositories: list[str], bound: int
) -> Generator[tuple[str, os.DirEntry[str], bool]]:
    """All that is in it but for what is in hidden folders, and whether it is in a fixed one.

    `closed` are folders that are too deep or cannot be read: a command that owns one could let itself in, so they are hidden. `repositories` are bare ones; of the folder itself, what
    git obeys in it.
    """
    waiting: list[tuple[str, bool]] = [("", False)]
    seen = 0
    while waiting:
        at, is_fixed = waiting.pop()
        try:
            here = open_beneath(folder, at)
        except (FileNotFoundError, NotADirectoryError):  # gone since
            continue
        except OSError as error:
            if not at:
                raise ToolError(f"the shell was not run: its folder cannot be read ({error.strerror})") from None
            closed.append(at)
            continue
        try:
            with os.scandir(here) as entries:
                listed = list(itertools.islice(entries, max(0, bound - seen) + 1))
                seen += len(listed)
                if seen > bound or (len(closed) > MOST_KEPT and bound == MOST_ENTRIES):
                    raise ToolError(
                        f"the shell was not run: its folder has more than {MOST_ENTRIES:,} entries, and what is "
                        "protected among them cannot be found in time; give it a smaller folder"
                    )
                if not is_fixed and is_repository(entry.name for entry in listed):
                    is_kept = judge(f"{at}/.git" if at else ".git") != ""
                    is_fixed = is_kept and at != ""
                    if is_kept:
                        repositories += [at] if at else [one.name for one in listed if one.name in OBEYED]
                for entry in listed:
                    path = f"{at}/{entry.name}" if at else entry.name
                    yield path, entry, is_fixed
                    if entry.is_dir(follow_symlinks=False) and (kind := judge(path)) != "hidden":
                        if path.count("/") < DEEPEST:
                            waiting.append((path, is_fixed or kind == "fixed"))
                        else:
                            closed.append(path)
        finally:
            os.close(here)


def is_repository(names: Iterable[str]) -> bool:
    """Whether git takes a folder with these names in it for a repository, and obeys the settings in it."""
    there = {name.lower() for name in names}
    return "head" in there and (there >= {"objects", "refs"} or "commondir" in there)


def open_beneath(folder: int, path: str, flags: int = _DIRECTORY) -> int:
    """Open something beneath an open folder, through no link."""
    here = os.open(".", _DIRECTORY, dir_fd=folder)
    parts = path.split("/") if path else []
    for index, part in enumerate(parts):
        try:
            there = os.open(part, flags if index == len(parts) - 1 else _DIRECTORY, dir_fd=here)
        finally:
            os.close(here)
        here = there
    return here


def words(kept: Kept, work: str, opened: Callable[[str], int], empty: Callable[[], int]) -> list[str]:
    """The options that keep it, for behind those that show the folder; `opened` gives a number for a path."""
    said: list[tuple[str, list[str]]] = []
    said += [(path, ["--bind-fd", str(opened(path))]) for path in kept.pinned]
    said += [(path, ["--ro-bind-fd", str(opened(path))]) for path in kept.fixed]
    said += [(path, ["--ro-bind", "/dev/null"]) for path in kept.hidden_files]  # nodev: to open it is not permitted
    said += [(path, ["--ro-bind-data", str(empty())]) for path in kept.emptied]
    said += [(path, ["--perms", "0000", "--size", "4096", "--tmpfs"]) for path in kept.hidden_folders]
    made = [word for path, how in sorted(said, key=lambda one: one[0].split("/")) for word in (*how, f"{work}/{path}")]
    return made + [word for path in kept.hidden_folders for word in ("--remount-ro", f"{work}/{path}")]


def check_mounted(process: int, kept: Kept, work: str) -> None:
    """See that all of it is where it should be, before the command begins: what is a mount cannot be moved by it.

    Raises:
        ToolError: it is not, for somebody moved something meanwhile.
        ProcessLookupError: the sandbox is gone.
    """
    wanted = {f"{work}/{path}" for path in (*kept.all, *kept.pinned)}
    until = time.monotonic() + FURNISHED
    while wanted:
        wanted -= _mounts(process)
        if wanted and time.monotonic() > until:
            name = min(wanted).removeprefix(f"{work}/")
            raise ToolError(f"the shell was not run: {name!r}, which is protected, was moved meanwhile; try again")
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
def can_keep() -> bool:
    """Whether this bubblewrap binds what is open."""
    path = shutil.which("bwrap")
    if path is None:
        return False
    said = subprocess.run([path, "--help"], capture_output=True, timeout=5, check=False, env={})
    return b"--ro-bind-fd" in said.stdout + said.stderr
