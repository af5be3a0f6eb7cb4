"""Quarantine: moves protected files that a command created away until a person has looked at them.

They go into `.everturn-quarantine` of the same folder, under numbers instead of their names; `what.json` beside them
lists their original paths. A moved folder is closed (mode 0). File tools and shells cannot see it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, json

from everturn.errors import ToolError
from everturn.sandbox.hidden_paths import open_in_folder

ROOT: Final = ".everturn-quarantine"
LIST: Final = "what.json"
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Quarantined(Struct, frozen=True):
    """What was moved, in this order; where to, relative to the folder; and what could not be moved."""

    moved: tuple[str, ...] = ()
    folder: str = ""
    not_moved: tuple[str, ...] = ()


def move_to_quarantine(folder: int, paths: Sequence[str], why: str) -> Quarantined:
    """Move paths below an open folder; `why` is recorded beside them."""
    # Its content is in quarantine already
    paths = [path for path in paths if path != ROOT or not _is_folder(folder, ROOT)]
    if not paths:
        return Quarantined()
    moved: list[str] = []
    left: list[str] = []
    with contextlib.ExitStack() as owned:
        root, aside = _root(folder, owned)
        name = f"{int(time.time())}-{secrets.token_hex(4)}"
        os.mkdir(name, 0o700, dir_fd=root)
        place = os.open(name, _DIRECTORY, dir_fd=root)
        owned.callback(os.close, place)
        for path in paths:
            try:
                _move(folder, aside if path == ROOT else path, place, str(len(moved) + 1))
            except (FileNotFoundError, NotADirectoryError):  # it does not exist, or another run was quicker
                continue
            except OSError:
                left.append(path)
                continue
            moved.append(path)
        record = {"moved": {str(number): path for number, path in enumerate(moved, 1)}, "why": why}
        with open(os.open(LIST, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=place), "wb") as file:
            file.write(json.format(json.encode(record)))
    return Quarantined(tuple(moved), f"{ROOT}/{name}", tuple(left))


def _root(folder: int, owned: contextlib.ExitStack) -> tuple[int, str]:
    """The quarantine folder; and the name to which something was moved that a command had put in its place."""
    aside = f"{ROOT}-{secrets.token_hex(4)}"
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(ROOT, 0o700, dir_fd=folder)
        if not _is_folder(folder, ROOT):
            os.rename(ROOT, aside, src_dir_fd=folder, dst_dir_fd=folder)
            os.mkdir(ROOT, 0o700, dir_fd=folder)
        _open_up(folder, ROOT)
        root = os.open(ROOT, _DIRECTORY, dir_fd=folder)
    except OSError as error:
        raise ToolError(f"files cannot be moved to quarantine in {ROOT}: {error.strerror}") from None
    owned.callback(os.close, root)
    with contextlib.suppress(OSError):  # so that git does not list it
        with open(os.open(".gitignore", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=root), "wb") as file:
            file.write(b"*\n")
    return root, aside


def _move(folder: int, path: str, place: int, name: str) -> None:
    above, _, last = path.rpartition("/")
    parent = open_in_folder(folder, above)
    try:
        if _is_folder(parent, last):
            _open_up(parent, last)  # a folder with mode 0 cannot be moved
        os.rename(last, name, src_dir_fd=parent, dst_dir_fd=place)
    finally:
        os.close(parent)
    if _is_folder(place, name):
        moved = os.open(name, _DIRECTORY, dir_fd=place)
        try:
            os.fchmod(moved, 0)
        finally:
            os.close(moved)


def _is_folder(parent: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _open_up(parent: int, name: str) -> None:
    if not hasattr(os, "O_PATH"):  # macOS, whose kernel changes a mode without following a link
        if _is_folder(parent, name):
            os.chmod(name, 0o700, dir_fd=parent, follow_symlinks=False)
        return
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            os.chmod(f"/proc/self/fd/{handle}", 0o700)
    finally:
        os.close(handle)
