"""Bytes → objects of a git repository of our own, and back: blobs and trees are written here, the rest is asked of git.

It knows nothing of the folder that they come from.
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
from everturn.tools.shadow_process import NO_GIT, OLDEST, Git, Talk, failed

EXECUTABLE, PLAIN, LINK, FOLDER = 0o100755, 0o100644, 0o120000, 0o040000
_TREE = re.compile("[0-9a-f]{64}")
Listing = dict[bytes, tuple[int, str]]  # a path, and its mode and hash


class Repository:
    """A bare repository with SHA-256 names: two contents that somebody made to have one name do not exist."""

    def __init__(self, home: Path) -> None:
        self.home, self._git = home, Git(home)
        if not (home / "HEAD").exists():
            self._check_version()
            made = Path(tempfile.mkdtemp(prefix="new-", dir=home.parent))
            self._git.check("init", "--bare", "--quiet", "--object-format=sha256", "--template=", str(made), home=made)
            try:
                made.rename(home)
            except OSError:
                shutil.rmtree(made)  # somebody else was first
                if not (home / "HEAD").exists():
                    raise

    def _check_version(self) -> None:
        said = self._git.check("version", home=self.home.parent).decode(errors="replace").strip()
        version = re.search(r"(\d+)\.(\d+)", said)
        if version is None or (int(version[1]), int(version[2])) < OLDEST:
            raise ConfigError(NO_GIT.format(found=said or "one that does not say its version"))

    def write(self, kind: bytes, data: bytes) -> str:
        """Keep an object; its name."""
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
        """Keep a tree of files; its name."""
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
        found: Listing = {}
        for line in self._git.check("ls-tree", "-r", "-z", "--full-tree", self.known(tree)).split(b"\0")[:-1]:
            what, path = line.split(b"\t", 1)
            mode, _, name = what.split(b" ")
            found[path] = (int(mode, 8), name.decode())
        return found

    def known(self, tree: str) -> str:
        """This tree, if it is one of ours.

        Raises:
            CommandRefused: it is not.
        """
        if not _TREE.fullmatch(tree) or self._git.run("cat-file", "-t", tree)[1] != b"tree\n":
            raise CommandRefused(f"there is no tree {tree[:80]!r} among the snapshots; nothing was changed")
        return tree

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those of these objects that are not here."""
        found: list[str] = []
        with self._git.talk("cat-file", "--batch-check") as talk:
            for name in names:
                talk.ask(name.encode() + b"\n")
                if talk.fields(1, b"\n")[0].endswith(b" missing"):
                    found.append(name)
        return found

    def contents(self) -> AbstractContextManager[Talk]:
        """A git to read objects from, with `read_object`."""
        return self._git.talk("cat-file", "--batch")

    def ignoring(self, folder: str) -> AbstractContextManager[Talk]:
        """A git that is told paths, and says of each (source, line, pattern, path) by what it is ignored."""
        return self._git.talk("check-ignore", "--no-index", "--stdin", "-z", "-v", "-n", work_tree=folder)

    def diff(self, *args: str | bytes) -> bytes:
        """What differs between two trees, told by git's own comparison alone."""
        return self._git.check("diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", *args)

    def patch(self, before: str, after: str, paths: Iterable[bytes], limit: int) -> tuple[bytes, bool]:
        """The beginning of a patch, and whether that is all of it."""
        args = ("diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
        code, data, said = self._git.run(*args, self.known(before), self.known(after), "--", *paths, limit=limit)
        if code and len(data) < limit:
            raise StoreUnavailable(failed(said))
        return data, code == 0


def read_object(talk: Talk, name: str) -> bytes:
    """The content of an object."""
    talk.ask(name.encode() + b"\n")
    said = talk.fields(1, b"\n")[0].split(b" ")
    if len(said) != 3:
        raise StoreUnavailable(f"object {name} is missing from the snapshots; it was there a moment ago")
    return talk.read(int(said[2]) + 1)[:-1]
