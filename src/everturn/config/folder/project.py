"""Project folder: the root of the git repository around a folder, or the folder itself; and the name of its agent."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final

from msgspec import Struct

from everturn.errors import ConfigError

DEEPEST: Final = 64  # parents that are looked at
NAME_LENGTH: Final = 40  # characters of the folder's name in the name of its agent
_AGENT_HASH: Final = re.compile(r"-[0-9a-f]{6}$")
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]+")


class Project(Struct, frozen=True):
    """A folder that an assistant works in. `current` is where `everturn` was started: the root, or below it."""

    root: Path
    current: Path
    is_git: bool = False

    @property
    def agent(self) -> str:
        """The name of its agent: that of the folder, and a hash of its path."""
        name = _NOT_IN_NAMES.sub("-", self.root.name).strip("-")[:NAME_LENGTH] or "folder"
        name = name if name[0].isalpha() or name[0] == "_" else f"_{name}"
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()
        return f"{name}-{digest[:6]}"

    @property
    def label(self) -> str:
        """Its path for people: below the home folder with a `~`."""
        home = os.path.expanduser("~")
        text = str(self.root)
        return f"~{text.removeprefix(home)}" if home != "/" and (text == home or text.startswith(f"{home}/")) else text

    @property
    def breadth(self) -> str:
        """Why this folder is a bad choice: "home", "root", or "" if it is not."""
        if self.root == Path("/"):
            return "root"
        return "home" if self.root == Path(os.path.expanduser("~")).resolve() else ""


def display_agent_name(agent: str) -> str:
    """What people call an agent: that of a folder by the folder, without the hash."""
    return _AGENT_HASH.sub("", agent)


def find_project(folder: str | os.PathLike[str]) -> Project:
    """Find the project around a folder.

    A repository of another user, and one that is the home folder or around it, is not taken: the folder itself is.

    Raises:
        ConfigError: there is no such folder, or it cannot be entered.
    """
    try:
        current = Path(folder).resolve(strict=True)
        if not current.is_dir():
            raise ConfigError(f"{current} is not a folder; start `everturn` in one")
    except OSError as error:
        raise ConfigError(f"{folder} cannot be opened: {error.strerror or error}; `cd` to another folder") from None
    home = Path(os.path.expanduser("~")).resolve()
    for parent in (current, *list(current.parents)[:DEEPEST]):
        if parent == home or parent in home.parents:
            break
        if os.path.lexists(parent / ".git"):
            return Project(parent, current, is_git=True) if _is_own(parent) else Project(current, current)
    return Project(current, current)


def _is_own(folder: Path) -> bool:
    """Whether a folder and its `.git` belong to this user: as git does, the settings of others are not obeyed."""
    if not hasattr(os, "geteuid"):
        return True
    try:
        return all(os.lstat(path).st_uid == os.geteuid() for path in (folder, folder / ".git"))
    except OSError:
        return False
