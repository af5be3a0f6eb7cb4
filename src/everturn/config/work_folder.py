"""Work folder: the folder that a process works in, as turns record it and grants for a folder compare it.

It is the root of the repository around it, so that a grant does not depend on where in it somebody stands.
"""

from __future__ import annotations

import os
from pathlib import Path

from everturn.config.schema import Config

MARKER = ".git"  # a directory, or in a worktree and a submodule a file


def work_folder(folder: str | os.PathLike[str] = ".") -> str:
    """The root of the repository around a folder, without symlinks; the folder itself, if there is none.

    A root that belongs to another user does not count: whoever makes a `.git` in /tmp would make all folders there one.
    """
    path = Path(os.path.realpath(folder))
    owner = getattr(os, "getuid", lambda: None)()
    for above in (path, *path.parents):
        try:
            found = (above / MARKER).lstat()
            around = above.lstat()
        except OSError:
            continue
        if owner is None or found.st_uid == around.st_uid == owner:
            return str(above)
    return str(path)


def configured_folder(config: Config) -> str:
    """The folder that the tools of a configuration work in; "" if it names none."""
    files, shell = config.tools.files, config.tools.shell
    named = (
        files if isinstance(files, str) else files.folder,
        shell if isinstance(shell, str) else "" if isinstance(shell, bool) else shell.folder,
    )
    for value, suffix in zip(named, (":ro", ":rw"), strict=True):
        if value:
            return work_folder(os.path.expanduser(value.removesuffix(suffix)))
    return ""
