"""A process that dies between any two system calls of a write: the file is the old one or the new one, and the same call
again makes it the new one, once.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

# Forks a child for every call that could be the last; in a process of its own, for a fork wants no threads beside it.
DYING = """
import asyncio, json, os, sys
from pathlib import Path
from everturn.tools.files.edits import apply_edit
from everturn.tools.files.folder import Folder

root, path, before, old, new = sys.argv[1:]
target, is_edit = Path(root, path), bool(old)

def make(data):
    return apply_edit(data.decode(), old, new).text.encode() if is_edit else new.encode()

def dying(last):
    left = last
    def wrapped(function):
        def call(*args, **more):
            nonlocal left
            left -= 1
            if left < 0:
                os._exit(9)
            return function(*args, **more)
        return call
    for name in ("open", "close", "mkdir", "stat", "fstat", "fchmod", "fchown", "fsync", "rename", "unlink", "scandir"):
        setattr(os, name, wrapped(getattr(os, name)))

rows = []
for last in range(100):
    if target.exists():
        target.unlink()
    if is_edit:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(before)
    child = os.fork()
    if child == 0:
        folder = Folder(root)
        dying(last)
        folder._change(path, make)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    crashed = target.read_text() if target.exists() else None
    Folder(root)._change(path, make)
    rows.append([code, crashed, target.read_text()])
    if code == 0:
        break
print(json.dumps(rows))
"""


@pytest.mark.parametrize(
    ("path", "before", "old", "new", "after"),
    [
        ("a.txt", "one\ntwo\n", "one", "one\nand a half", "one\nand a half\ntwo\n"),
        ("deep/er/b.txt", "", "", "new\n", "new\n"),
    ],
    ids=["edit", "write"],
)
async def test_a_write_survives_a_death_at_every_call(
    tmp_path: Path, path: str, before: str, old: str, new: str, after: str
) -> None:
    command = [sys.executable, "-c", DYING, str(tmp_path), path, before, old, new]
    ran = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=50, check=False)
    assert ran.returncode == 0, ran.stderr
    rows = msgspec.json.decode(ran.stdout, type=list[tuple[int, str | None, str]])
    assert [code for code, _, _ in rows] == [9] * (len(rows) - 1) + [0]
    assert len(rows) > 10
    assert {crashed for _, crashed, _ in rows} == {before or None, after}  # some died before the rename, some behind it
    assert {repeated for _, _, repeated in rows} == {after}
