"""Whatever is done to a folder, a restore gives back what a tree holds, touches nothing else, and can be taken back."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.snapshots.folder_trees import Disk, git, in_tree, on_disk

from everturn.errors import CommandRefused
from everturn.tools.snapshots.store import FolderSnapshots

NAMES = ["a", "b", "d", "x.log", "é", "sp ace", "new\nline", "-dash", ":(top)x", "back\\slash", "[ab]*", "git~1"]
ODD = [
    ".gitattributes",
    ".gitmodules",
    os.fsdecode(b"\xff\xfe"),
    "e\u0301",
    "CON",
    '"quoted"\t',
    ".everturn-1.tmp",
    "!x",
]
RULES = ["*.log", "d/", "/a", "!x.log", "*", "b/**", "é", "**/a", "\\!x", "[ab]", "a/b", "!a/", "# none", "d/*\n!d/a"]
CONTENTS = [
    b"",
    b"one\n",
    b"two\n",
    b"crlf\r\n",
    b"\0bin\xff",
    b"$Id$\n",
    b"* text=auto ident eol=crlf\n",
    b"x" * 5_000,
]

names = st.sampled_from(NAMES[:5]) | st.sampled_from(NAMES + ODD)
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
edits = st.one_of(
    st.tuples(st.just("write"), paths, st.sampled_from(CONTENTS)),
    st.tuples(st.just("write"), paths, st.sampled_from(CONTENTS)),
    st.tuples(st.just("chmod"), paths, st.booleans()),
    st.tuples(st.just("link"), paths, st.sampled_from(["a", "..", "/etc", "../outside", "nowhere", "d"])),
    st.tuples(st.just("remove"), paths, st.none()),
    st.tuples(st.just("mkdir"), paths, st.none()),
    st.tuples(st.just("rename"), paths, paths),
    st.tuples(st.just("ignore"), st.sampled_from(["", "d/", "a/"]), st.lists(st.sampled_from(RULES), max_size=3)),
)
Story = list[tuple[list[tuple[str, str, Any]], int]]
rounds = st.lists(st.tuples(st.lists(edits, max_size=6), st.integers(0, 9)), min_size=1, max_size=5)


def edit(folder: Path, kind: str, path: str, how: Any) -> None:
    """Do one thing to the folder; what stands in the way gives way."""
    at = folder / path
    if kind == "remove":
        remove(folder, path)
    elif kind == "chmod":
        if _is_there(folder, path) and at.is_file() and not at.is_symlink():
            at.chmod(0o755 if how else 0o644)
    elif kind == "rename":
        source = at
        if _is_there(folder, path) and not f"{how}/".startswith(f"{path}/") and not f"{path}/".startswith(f"{how}/"):
            room(folder, str(how))
            if os.path.lexists(source):
                os.rename(source, folder / str(how))
    elif kind == "ignore":
        room(folder, f"{path}.gitignore")
        (folder / f"{path}.gitignore").write_text("".join(f"{rule}\n" for rule in how), encoding="utf-8")
    else:
        room(folder, path)
        if kind == "write":
            at.write_bytes(how)
        elif kind == "link":
            at.symlink_to(str(how))
        else:
            at.mkdir()


def _is_there(folder: Path, path: str) -> bool:
    above = [folder / Path(*Path(path).parts[:count]) for count in range(1, len(Path(path).parts))]
    return all(part.is_dir() and not part.is_symlink() for part in above) and os.path.lexists(folder / path)


def room(folder: Path, path: str) -> None:
    *above, _ = Path(path).parts
    at = folder
    for part in above:
        at = at / part
        if at.is_symlink() or not at.is_dir():
            at.unlink(missing_ok=True)
            at.mkdir()
    remove(folder, path)


def remove(folder: Path, path: str) -> None:
    at = folder / path
    if not _is_there(folder, path):
        return
    if at.is_dir() and not at.is_symlink():
        shutil.rmtree(at)
    else:
        at.unlink()


def clash(first: bytes, other: bytes) -> bool:
    """Whether two files cannot both be there."""
    return (first + b"/").startswith(other + b"/") or (other + b"/").startswith(first + b"/")


def not_ignored(home: Path, folder: Path, rules: Disk) -> set[bytes]:
    """What is to be recorded by those rules, as git sees it in a copy; the files of rules are, unless they lie in a folder
    that is ignored."""
    copy = home.with_name("copy")
    shutil.copytree(folder, copy, symlinks=True)
    own = [path for path in on_disk(copy) if os.path.basename(path) == b".gitignore"]
    for path in own:
        (copy / os.fsdecode(path)).unlink()
    for path, (_, text) in rules.items():
        at = copy / os.fsdecode(path)
        if os.path.basename(path) == b".gitignore" and at.parent.is_dir() and not at.parent.is_symlink():
            at.write_bytes(text)
    listed = set(git(home, "ls-files", "-o", "-z", "--exclude-standard", folder=copy).split(b"\0"))
    found = {path for path in listed - {b""} if os.path.basename(path) != b".gitignore"}
    for path in own:
        if not is_ignored(home, copy, os.path.dirname(path)):
            found.add(path)
    shutil.rmtree(copy)
    return found


def is_ignored(home: Path, folder: Path, path: bytes) -> bool:
    query = b"./" + path + b"\0"
    output = git(
        home, "check-ignore", "--no-index", "--stdin", "-z", "-v", "-n", stdin=query, folder=folder, code=(0, 1)
    )
    pattern = output.split(b"\0")[2]
    return bool(path and pattern and not pattern.startswith(b"!"))


async def live(top: Path, story: Story) -> None:
    folder, store, home = top / "folder", top / "store", top / "other"
    folder.mkdir()
    (top / "outside").mkdir()
    (top / "outside" / "kept").write_text("kept", encoding="utf-8")
    git(home, "init", "-q", "--bare", str(home))
    shadow = FolderSnapshots(folder, store)
    trees: list[str] = [await shadow.record()]
    recorded: set[bytes] = set()
    has_restored = False
    for steps, back in story:
        for kind, path, how in steps:
            edit(folder, kind, path, how)
        disk, rules = on_disk(folder), trees[back // 3 % len(trees)] if back % 3 else ""
        now = await shadow.record(rules)
        tracked = in_tree(store, now)
        assert {path: disk.get(path) for path in tracked} == tracked, "a tree holds what there is"
        if not has_restored:
            effective = in_tree(store, rules) if rules else disk
            assert set(tracked) == not_ignored(home, folder, effective) | (recorded & set(disk))
        assert await shadow.record(rules or now) == now, "by the same rules it is the same"
        trees.append(now)
        wanted = trees[back % len(trees)]
        now = await shadow.record_before(wanted)
        trees.append(now)
        tracked = in_tree(store, now)
        recorded = set(tracked)
        note(f"restore {back % len(trees)} of {len(trees)}")
        if await restored(shadow, folder, store, wanted, disk, tracked):
            has_restored = True
            assert await shadow.record() == wanted
            if back % 2:
                await shadow.restore(now)
                assert on_disk(folder) == disk, "un-reverted, everything is as it was, ignored files too"
                assert await shadow.record() == now
    assert on_disk(top / "outside") == {b"kept": ("file", b"kept")}


async def restored(shadow: FolderSnapshots, folder: Path, store: Path, tree: str, disk: Disk, tracked: Disk) -> bool:
    wanted = in_tree(store, tree)
    others = {path: content for path, content in disk.items() if path not in tracked}
    is_in_the_way = any(clash(path, other) for path in wanted for other in others)
    if is_in_the_way:
        with pytest.raises(CommandRefused):
            await shadow.restore(tree)
        assert on_disk(folder) == disk, "what is refused changes nothing"
        return False
    await shadow.restore(tree)
    assert on_disk(folder) == {**others, **wanted}
    return True


def tell(story: Story) -> None:
    with tempfile.TemporaryDirectory() as top:
        asyncio.run(live(Path(top), story))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rounds)
def test_a_restore_gives_back_the_exact_tree_and_leaves_the_rest_alone(story: Story) -> None:
    tell(story)


@pytest.mark.long
@pytest.mark.timeout(600)
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rounds)
def test_it_does_so_whatever_is_done(story: Story) -> None:
    tell(story)
