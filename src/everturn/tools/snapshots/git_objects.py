"""Git objects of the snapshot repository: writes blobs and trees directly, and reads everything through git.

This module knows nothing of the folder that the files come from.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import cast

from everturn.errors import CommandRefused, ConfigError, StoreUnavailable
from everturn.tools.snapshots.git_process import NO_GIT, OLDEST, GitConversation, GitProcess, git_error

EXECUTABLE, PLAIN, LINK, FOLDER = 0o100755, 0o100644, 0o120000, 0o040000
_TREE = re.compile("[0-9a-f]{64}")
Listing = dict[bytes, tuple[int, str]]  # path -> mode and hash


class ObjectRepository:
    """A bare repository with SHA-256 names, which have no known collisions."""

    def __init__(self, home: Path) -> None:
        self.home, self._git = home, GitProcess(home)
        if not (home / "HEAD").exists():
            self._check_version()
            new_home = Path(tempfile.mkdtemp(prefix="new-", dir=home.parent))
            self._git.check(
                "init", "--bare", "--quiet", "--object-format=sha256", "--template=", str(new_home), home=new_home
            )
            try:
                new_home.rename(home)
            except OSError:
                shutil.rmtree(new_home)  # another process was first
                if not (home / "HEAD").exists():
                    raise

    def _check_version(self) -> None:
        output = self._git.check("version", home=self.home.parent).decode(errors="replace").strip()
        version = re.search(r"(\d+)\.(\d+)", output)
        if version is None or (int(version[1]), int(version[2])) < OLDEST:
            raise ConfigError(NO_GIT.format(found=output or "one that does not say its version"))

    def write(self, kind: bytes, data: bytes) -> str:
        """Store an object, and return its name."""
        whole = b"%s %d\0%s" % (kind, len(data), data)
        name = hashlib.sha256(whole).hexdigest()
        path = self.home / "objects" / name[:2] / name[2:]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            handle, unfinished = tempfile.mkstemp(prefix="tmp_obj_", dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(zlib.compress(whole, 1))
            os.replace(unfinished, path)
        return name

    def write_tree(self, files: Mapping[bytes, tuple[int, str]]) -> str:
        """Store a tree of files, and return its name."""
        top: dict[bytes, object] = {}
        for path, entry in files.items():
            *folders, name = path.split(b"/")
            at = top
            for folder in folders:
                at = cast("dict[bytes, object]", at.setdefault(folder, {}))
            at[name] = entry
        return self._write_folder(top)

    def _write_folder(self, entries: dict[bytes, object]) -> str:
        lines: list[tuple[bytes, bytes]] = []
        for name, entry in entries.items():
            if isinstance(entry, dict):
                mode, of, key = FOLDER, self._write_folder(cast("dict[bytes, object]", entry)), name + b"/"
            else:
                (mode, of), key = cast("tuple[int, str]", entry), name
            lines.append((key, b"%o %s\0%s" % (mode, name, bytes.fromhex(of))))
        return self.write(b"tree", b"".join(line for _, line in sorted(lines)))

    def list_tree(self, tree: str) -> Listing:
        """The files of a tree."""
        listing: Listing = {}
        for line in self._git.check("ls-tree", "-r", "-z", "--full-tree", self.check_tree(tree)).split(b"\0")[:-1]:
            attributes, path = line.split(b"\t", 1)
            mode, _, name = attributes.split(b" ")
            listing[path] = (int(mode, 8), name.decode())
        return listing

    def check_tree(self, tree: str) -> str:
        """The tree itself, if it is one of the repository's.

        Raises:
            CommandRefused: it is not.
        """
        if not _TREE.fullmatch(tree) or self._git.run("cat-file", "-t", tree)[1] != b"tree\n":
            raise CommandRefused(f"there is no tree {tree[:80]!r} among the snapshots; nothing was changed")
        return tree

    def missing(self, names: Iterable[str]) -> list[str]:
        """The names of the objects that are not in the repository."""
        missing_names: list[str] = []
        with self._git.converse("cat-file", "--batch-check") as talk:
            for name in names:
                talk.ask(name.encode() + b"\n")
                if talk.read_fields(1, b"\n")[0].endswith(b" missing"):
                    missing_names.append(name)
        return missing_names

    def open_cat_file(self) -> AbstractContextManager[GitConversation]:
        """A running git that reads objects, for `read_object`."""
        return self._git.converse("cat-file", "--batch")

    def open_check_ignore(self, folder: str) -> AbstractContextManager[GitConversation]:
        """A running git that gets paths, and answers for each (source, line, pattern, path) by which rule it is
        ignored.
        """
        return self._git.converse("check-ignore", "--no-index", "--stdin", "-z", "-v", "-n", work_tree=folder)

    def diff(self, *args: str | bytes) -> bytes:
        """The output of `git diff-tree`, without external diff programs."""
        return self._git.check("diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", *args)

    def patch(self, before: str, after: str, paths: Iterable[bytes], limit: int) -> tuple[bytes, bool]:
        """The beginning of a patch, and whether that is all of it."""
        args = ("diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
        code, data, errors = self._git.run(
            *args, self.check_tree(before), self.check_tree(after), "--", *paths, limit=limit
        )
        if code and len(data) < limit:
            raise StoreUnavailable(git_error(errors))
        return data, code == 0


def read_object(talk: GitConversation, name: str) -> bytes:
    """The content of an object."""
    talk.ask(name.encode() + b"\n")
    header = talk.read_fields(1, b"\n")[0].split(b" ")
    if len(header) != 3:
        raise StoreUnavailable(f"object {name} disappeared from the snapshots")
    return talk.read(int(header[2]) + 1)[:-1]
