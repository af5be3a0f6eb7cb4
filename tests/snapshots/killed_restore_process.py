"""A restore that is killed at its first fault point, at its second, and so on; each time it is gone on with, and judged.

    python -m tests.snapshots.killed_restore_process SCRATCH        prints how often it died

A program of its own, since it forks: the process of the tests has threads.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path

from tests.snapshots.folder_trees import Disk, in_tree, on_disk

from everturn import failpoints
from everturn.tools.snapshots import walk
from everturn.tools.snapshots.store import FolderSnapshots


def first(folder: Path) -> None:
    for name, text in {
        "a": "1",
        "b/c": "2",
        "b/d/e": "3",
        "file": "4",
        "sub/x.log": "5",
        "same": "6",
        "b/grows": "7",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text * 1000, encoding="utf-8")
    (folder / "a").chmod(0o755)
    (folder / "link").symlink_to("b/c")


def second(folder: Path) -> None:
    shutil.rmtree(folder / "sub")
    (folder / "sub").symlink_to("/etc")
    (folder / "file").unlink()
    (folder / "file" / "in" / "deep").mkdir(parents=True)
    (folder / "b" / "c").unlink()
    (folder / "b" / "c").mkdir()
    (folder / "b" / "c" / "new").write_text("7", encoding="utf-8")
    (folder / "a").write_text("8", encoding="utf-8")
    (folder / "added").write_text("9", encoding="utf-8")
    (folder / ".gitignore").write_text("*.log\nbuild/\n", encoding="utf-8")
    (folder / "build").mkdir()
    (folder / "build" / "out").write_text("precious", encoding="utf-8")
    (folder / "my.log").write_text("precious", encoding="utf-8")
    (folder / "b" / "grows").write_text("precious" * 1000, encoding="utf-8")


def die_at(count: int) -> None:
    left = count

    def plan(point: str) -> None:
        nonlocal left
        if point.startswith("snapshot."):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    failpoints.install_plan(plan)


def dies(shadow: FolderSnapshots, tree: str, count: int) -> bool:
    child = os.fork()
    if child == 0:
        die_at(count)
        asyncio.run(shadow.restore(tree))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or status == 0, status
    return os.WIFSIGNALED(status)


def check_recovery(scratch: Path, count: int, twice: int, with_record: bool) -> bool:
    """Whether it died. `twice`: the one that goes on dies as well; `with_record`: somebody looks in between."""
    folder, store = scratch / "folder", scratch / "store"
    folder.mkdir(parents=True)
    shadow = FolderSnapshots(folder, store)
    first(folder)
    wanted = asyncio.run(shadow.record())
    second(folder)
    disk, now = on_disk(folder), asyncio.run(shadow.record())
    others: Disk = {path: content for path, content in disk.items() if path not in in_tree(store, now)}
    assert others.keys() == {b"build/out", b"my.log"}
    died = dies(shadow, wanted, count)
    if twice:
        dies(shadow, wanted, twice)
    if with_record:
        asyncio.run(shadow.record())
    asyncio.run(shadow.restore(wanted))
    [aside] = [path for path in on_disk(folder) if b"everturn-aside" in path]
    assert on_disk(folder) == {**others, **in_tree(store, wanted), aside: disk[b"b/grows"]}, f"after death {count}"
    assert asyncio.run(shadow.record()) == wanted, f"after death {count}"
    dies(shadow, now, count)
    asyncio.run(shadow.restore(now))
    assert on_disk(folder) == disk, f"after death {count}"
    shutil.rmtree(scratch)
    return died


def main() -> None:
    walk.FILE_BYTES, walk.GROWN_BYTES = 2000, 4000
    scratch, count = Path(sys.argv[1]), 1
    while check_recovery(scratch / str(count), count, twice=(count % 3) * 2, with_record=count % 4 == 3):
        count += 1
    print(count - 1)


if __name__ == "__main__":
    main()
