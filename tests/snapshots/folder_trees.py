"""A folder and a tree, as somebody sees them who does not use ours: by walking, and by asking git."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

Disk = dict[bytes, tuple[str, bytes]]
"""path -> (kind, content): `file`, `program` or `link`."""


def on_disk(folder: Path) -> Disk:
    """Everything that is in a folder, whoever ignores it."""
    found: Disk = {}
    top = os.fsencode(folder)
    for at, folders, files in os.walk(top):
        for name in (*files, *folders):
            path = os.path.join(at, name)
            short = os.path.relpath(path, top)
            if os.path.islink(path):
                found[short] = ("link", os.readlink(path))
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    found[short] = ("program" if os.stat(path).st_mode & 0o100 else "file", file.read())
    return found


@lru_cache(256)
def in_tree(store: Path, tree: str) -> Disk:
    """What git says is in a tree."""
    found: Disk = {}
    kinds = {b"100644": "file", b"100755": "program", b"120000": "link"}
    listed = git(store / "git", "ls-tree", "-r", "-z", tree).split(b"\0")[:-1]
    names = [line.split(b"\t", 1)[0].split(b" ")[2] for line in listed]
    output = git(store / "git", "cat-file", "--batch", stdin=b"".join(name + b"\n" for name in names))
    for line in listed:
        attributes, path = line.split(b"\t", 1)
        head, output = output.split(b"\n", 1)
        size = int(head.split(b" ")[2])
        found[path], output = (kinds[attributes.split(b" ")[0]], output[:size]), output[size + 1 :]
    return found


def git(home: Path, *args: str, stdin: bytes = b"", folder: Path | None = None, code: tuple[int, ...] = (0,)) -> bytes:
    """Ask git."""
    env = {"PATH": os.environ["PATH"], "GIT_DIR": str(home), "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    if folder is not None:
        env["GIT_WORK_TREE"] = str(folder)
    done = subprocess.run(["git", *args], input=stdin, env=env, capture_output=True, check=False, cwd=folder)
    assert done.returncode in code, done.stderr
    return done.stdout


def new_repository(at: Path) -> None:
    """Make a folder a repository."""
    at.mkdir(exist_ok=True)
    subprocess.run(["git", "init", "-q", str(at)], check=True)


def commit(at: Path, name: str) -> None:
    """Put a file into a repository."""
    (at / name).write_text("first\n", encoding="utf-8")
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com")
    subprocess.run(["git", "-C", str(at), "add", name], check=True)
    subprocess.run(["git", "-C", str(at), *identity, "commit", "-q", "-m", "first"], check=True)


def names(folder: Path) -> list[str]:
    """What is in a folder itself."""
    return sorted(os.listdir(folder))


def hold(lock: Path) -> subprocess.Popen[bytes]:
    """A process that has a lock, and keeps it until it is killed."""
    code = "import fcntl, sys; file = open(sys.argv[1]); fcntl.flock(file, 2); print(flush=True); sys.stdin.read()"
    line = [sys.executable, "-c", code, str(lock)]
    holder = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    return holder
