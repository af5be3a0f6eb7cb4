"""Placeholders for large files: what represents a recorded file that grew too large, and where it is moved by a
restore.

The tree records that the file exists, its size and its modification time; its content stays in the folder. A restore
that needs something else in its place moves it to a name that says so, and a restore that needs it again moves it back
from there.
"""

from __future__ import annotations

import os
from pathlib import Path

from everturn.tools.snapshots.git_objects import ObjectRepository


def write_placeholder(repository: ObjectRepository, status: os.stat_result) -> str:
    """The name of the placeholder of a file; it is the same after the file was moved."""
    text = f"{status.st_size} bytes that are not kept here: file {status.st_ino}, changed at {status.st_mtime_ns}\n"
    name = repository.write(b"blob", text.encode())
    _home(repository).mkdir(exist_ok=True)
    (_home(repository) / name).touch()
    return name


def list_placeholders(repository: ObjectRepository) -> frozenset[str]:
    """The names of all placeholders. They are listed apart from the objects, so that a file with the same text is not
    mistaken for one.
    """
    try:
        return frozenset(os.listdir(_home(repository)))
    except FileNotFoundError:
        return frozenset()


def moved_away_path(path: bytes, name: str) -> bytes:
    """The path to which a large file is moved when a restore needs its place."""
    return path + b".everturn-aside-" + name[:8].encode()


def _home(repository: ObjectRepository) -> Path:
    return repository.home.parent / "large"
