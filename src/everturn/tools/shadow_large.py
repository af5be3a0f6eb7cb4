"""A recorded file that grew too large to be kept → what stands for it in a tree, and where it goes when it is reverted.

A tree says that it is there, how large it is and when it was changed; its content stays in the folder. A restore that
wants something else in its place moves it aside, under a name that says so, and one that wants it again takes it from
there.
"""

from __future__ import annotations

import os
from pathlib import Path

from everturn.tools.shadow_git import Repository


def stand_in(repository: Repository, status: os.stat_result) -> str:
    """The name of what stands for a file; it is the same after the file was moved."""
    said = f"{status.st_size} bytes that are not kept here: file {status.st_ino}, changed at {status.st_mtime_ns}\n"
    name = repository.write(b"blob", said.encode())
    _home(repository).mkdir(exist_ok=True)
    (_home(repository) / name).touch()
    return name


def stand_ins(repository: Repository) -> frozenset[str]:
    """All of them. They are noted apart from the objects: whoever writes such words into a file does not make one."""
    try:
        return frozenset(os.listdir(_home(repository)))
    except FileNotFoundError:
        return frozenset()


def aside(path: bytes, name: str) -> bytes:
    """Where a file goes that cannot stay in its place."""
    return path + b".everturn-aside-" + name[:8].encode()


def _home(repository: Repository) -> Path:
    return repository.home.parent / "large"
