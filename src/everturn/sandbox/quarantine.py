"""Quarantine: protected paths that a command created are moved away until a person has looked.

They go into `.everturn-quarantine` of the same folder, under numbers instead of their names; `what.json` beside them says
where each was. A moved folder is closed (mode 0). File tools and shells see nothing of it.
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
from everturn.sandbox.keeping import open_beneath

ROOT: Final = ".everturn-quarantine"
LIST: Final = "what.json"
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Quarantined(Struct, frozen=True):
    """What was moved, in this order; where to, beneath the folder; and what could not be moved."""

    moved: tuple[str, ...] = ()
    place: str = ""
    left: tuple[str, ...] = ()


def move_away(folder: int, paths: Sequence[str], why: str) -> Quarantined:
    """Move paths beneath an open folder; `why` is written down beside them."""
    paths = [path for path in paths if path != ROOT or not _is_folder(folder, ROOT)]  # what is in there is away already
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
            except (FileNotFoundError, NotADirectoryError):  # there is none, or another run was quicker
                continue
            except OSError:
                left.append(path)
                continue
            moved.append(path)
        said = {"moved": {str(number): path for number, path in enumerate(moved, 1)}, "why": why}
        with open(os.open(LIST, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=place), "wb") as file:
            file.write(json.format(json.encode(said)))
    return Quarantined(tuple(moved), f"{ROOT}/{name}", tuple(left))


def _root(folder: int, owned: contextlib.ExitStack) -> tuple[int, str]:
    """The place of all that was moved; and the name to which something that a command put there instead was moved aside."""
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
        raise ToolError(f"nothing can be put in quarantine in {ROOT}: {error.strerror}") from None
    owned.callback(os.close, root)
    with contextlib.suppress(OSError):  # git need not tell of it
        with open(os.open(".gitignore", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=root), "wb") as file:
            file.write(b"*\n")
    return root, aside


def _move(folder: int, path: str, place: int, name: str) -> None:
    above, _, last = path.rpartition("/")
    parent = open_beneath(folder, above)
    try:
        if _is_folder(parent, last):
            _open_up(parent, last)  # a folder that is closed cannot be moved elsewhere
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
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            os.chmod(f"/proc/self/fd/{handle}", 0o700)
    finally:
        os.close(handle)
