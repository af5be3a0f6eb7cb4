"""What is recorded of a folder and what is not, how changes are told, and that a hostile folder gets nothing done."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
from pathlib import Path

import pytest
from tests.snapshots.folder_trees import commit, git, hold, in_tree, names, new_repository, on_disk

from everturn.core.parts import FileChange
from everturn.errors import CommandRefused, ConfigError, StoreUnavailable
from everturn.tools.snapshots import git_process
from everturn.tools.snapshots import store as shadow_module
from everturn.tools.snapshots.git_objects import ObjectRepository
from everturn.tools.snapshots.store import CUT, DIFF_BYTES, FolderSnapshots
from everturn.tools.snapshots.walk import RACY_NANOSECONDS, UNKNOWN_STAMP, walk_folder


@pytest.fixture
def shadow(folder: Path, tmp_path: Path) -> FolderSnapshots:
    return FolderSnapshots(folder, tmp_path / "store")


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


async def paths(shadow: FolderSnapshots) -> set[str]:
    return {os.fsdecode(path) for path in in_tree(shadow.store_dir, await shadow.record())}


async def test_what_git_ignores_what_is_large_and_what_is_no_file_is_not_recorded_and_left_alone(
    folder: Path, shadow: FolderSnapshots
) -> None:
    write(folder, kept="1")
    before = await shadow.record()
    write(folder, kept="2", noise="n")
    (folder / ".gitignore").write_text("noise\nbuild/\n", encoding="utf-8")
    (folder / "build").mkdir()
    write(folder / "build", out="o")
    (folder / "large").write_bytes(b"x" * (2 * 2**20 + 1))
    (folder / "just").write_bytes(b"x" * 2 * 2**20)
    os.mkfifo(folder / "pipe")
    os.mknod(folder / "socket", stat.S_IFSOCK | 0o600)
    assert await paths(shadow) == {".gitignore", "kept", "just"}
    await shadow.restore(before)
    assert names(folder) == ["build", "kept", "large", "noise", "pipe", "socket"]
    assert await shadow.record() == before, "what nobody had recorded is not, now that the rules are gone"


async def test_rules_mean_what_git_means_by_them(folder: Path, shadow: FolderSnapshots) -> None:
    (folder / ".gitignore").write_text("*.log\n!keep.log\n/top\nonly/\n\\!odd\nsub/*\n!sub/in\n", encoding="utf-8")
    for name in (
        "a.log",
        "keep.log",
        "top",
        "d/top",
        "d/only",
        "only/x",
        "!odd",
        ":(top)top",
        ":!x",
        "sub/out",
        "sub/in",
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name, encoding="utf-8")
    (folder / "d" / ".gitignore").write_text("!a.log\n", encoding="utf-8")
    (folder / "d" / "a.log").write_text("again", encoding="utf-8")
    assert await paths(shadow) == {
        *(".gitignore", "keep.log", "d/top", "d/only", "sub/in", "d/.gitignore", "d/a.log", ":(top)top", ":!x"),
    }


async def test_what_was_left_by_a_restore_is_recorded_again_once_it_was_gone(
    folder: Path, shadow: FolderSnapshots
) -> None:
    before = await shadow.record()
    (folder / ".gitignore").write_text("noise\n", encoding="utf-8")
    write(folder, noise="n")
    await shadow.restore(before)
    assert await paths(shadow) == set()
    (folder / "noise").unlink()
    assert await paths(shadow) == set()
    write(folder, noise="new")
    assert await paths(shadow) == {"noise"}


async def test_what_was_recorded_stays_so_although_a_rule_names_it_later(folder: Path, shadow: FolderSnapshots) -> None:
    write(folder, trace="1")
    first = await shadow.record()
    (folder / ".gitignore").write_text("trace\n", encoding="utf-8")
    write(folder, trace="2")
    second = await shadow.record()
    await shadow.restore(first)
    await shadow.restore(second)
    assert (folder / "trace").read_text(encoding="utf-8") == "2"


@pytest.mark.parametrize("case", ["large", "pipe", "ignored", "inside", "above"])
async def test_a_restore_that_would_lose_something_is_refused_and_changes_nothing(
    folder: Path, shadow: FolderSnapshots, case: str
) -> None:
    write(folder, other="1")
    (folder / "sub").mkdir()
    write(folder / "sub", file="1") if case == "above" else write(folder, file="1")
    before = await shadow.record()
    (folder / ("sub/file" if case == "above" else "file")).unlink()
    await shadow.record()
    write(folder, other="2")
    if case == "large":
        (folder / "file").write_bytes(b"x" * (3 * 2**20))
    elif case == "pipe":
        os.mkfifo(folder / "file")
    elif case == "ignored":
        (folder / ".gitignore").write_text("file\n", encoding="utf-8")
        write(folder, file="precious")
    elif case == "inside":
        (folder / "file").mkdir()
        (folder / "file" / "large").write_bytes(b"x" * (3 * 2**20))
    else:
        (folder / "sub").rmdir()
        os.mkfifo(folder / "sub")
    disk = on_disk(folder)
    with pytest.raises(CommandRefused, match="move it away"):
        await shadow.restore(before)
    assert on_disk(folder) == disk


async def test_the_files_of_a_repository_in_the_folder_are_covered_and_its_git_folder_is_not_touched(
    folder: Path, shadow: FolderSnapshots
) -> None:
    for at in (folder, folder / "inner"):
        new_repository(at)
        write(at, code="1")
    (folder / "worktree").mkdir()
    write(folder / "worktree", code="1", **{".git": "gitdir: /nowhere"})
    before = await shadow.record()
    assert await paths(shadow) == {"code", "inner/code", "worktree/code"}
    git_files = {path: content for path, content in on_disk(folder).items() if b".git" in path.split(b"/")}
    write(folder / "inner", code="2", more="3")
    await shadow.restore(before)
    assert await shadow.record() == before
    assert {path: content for path, content in on_disk(folder).items() if b".git" in path.split(b"/")} == git_files


async def test_a_hostile_folder_runs_nothing(
    folder: Path, shadow: FolderSnapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = tmp_path / "canary"
    program = tmp_path / "evil"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {canary}\ncat\n', encoding="utf-8")
    program.chmod(0o755)
    config = "\n".join(
        (
            f"[core]\nfsmonitor = {program}\nhooksPath = {tmp_path}\nsshCommand = {program}\npager = {program}",
            f"attributesFile = {folder}/attributes\neditor = {program}",
            f'[filter "evil"]\nclean = {program}\nsmudge = {program}\nprocess = {program}\nrequired = true',
            f'[diff "evil"]\ncommand = {program}\ntextconv = {program}\n[diff]\nexternal = {program}',
            f"[alias]\ndiff-tree = !{program}\n[include]\npath = {folder}/attributes\n",
        )
    )
    for at in (folder, folder / "inner"):
        new_repository(at)
        commit(at, "file")
        (at / ".git" / "config").write_text(config, encoding="utf-8")
        for hook in ("post-index-change", "post-checkout", "pre-auto-gc", "reference-transaction"):
            (at / ".git" / "hooks" / hook).write_text(program.read_text(encoding="utf-8"), encoding="utf-8")
            (at / ".git" / "hooks" / hook).chmod(0o755)
        write(at, **{".gitattributes": "* filter=evil diff=evil text eol=crlf ident working-tree-encoding=UTF-16\n"})
        write(
            at,
            **{
                ".gitignore": "*.log\n",
                "file": "$Id$ line\n",
                ".gitmodules": f'[submodule "x"]\nupdate = !{program}\n',
            },
        )
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text(config, encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "home" / ".gitconfig"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(program))
    monkeypatch.setenv("GIT_DIR", str(folder / ".git"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(folder))
    monkeypatch.setenv("GIT_TRACE", str(canary))
    disk = on_disk(folder)
    before = await shadow.record()
    write(folder, file="$Id$ other\r\n")
    after = await shadow.record()
    assert await shadow.changes(before, after) == (FileChange("file", "modified", 1, 1),)
    assert "+$Id$ other" in await shadow.diff(before, after, "file")
    await shadow.restore(before)
    assert on_disk(folder) == disk, "byte for byte, whatever the attributes say"
    assert not canary.exists()


def test_the_canary_of_a_hostile_folder_does_sing_for_a_git_that_is_let_in(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "evil"
    program.write_text(f"#!/bin/sh\necho ran >> {tmp_path}/canary\ncat\n", encoding="utf-8")
    program.chmod(0o755)
    new_repository(folder)
    (folder / ".git" / "config").write_text(f'[filter "evil"]\nclean = {program}\n', encoding="utf-8")
    write(folder, **{".gitattributes": "* filter=evil\n", "file": "x"})
    subprocess.run(["git", "-C", str(folder), "add", "file"], check=True, capture_output=True)
    assert (tmp_path / "canary").exists()


async def test_a_link_in_the_place_of_a_folder_leads_nobody_outside(
    folder: Path, shadow: FolderSnapshots, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    write(outside, file="theirs", other="theirs")
    (folder / "sub").mkdir()
    write(folder / "sub", file="ours")
    before = await shadow.record()
    (folder / "sub" / "file").unlink()
    (folder / "sub").rmdir()
    (folder / "sub").symlink_to(outside)
    after = await shadow.record()
    assert in_tree(shadow.store_dir, after) == {b"sub": ("link", os.fsencode(outside))}
    await shadow.restore(before)
    assert on_disk(folder) == {b"sub/file": ("file", b"ours")}
    await shadow.restore(after)
    assert on_disk(outside) == {b"file": ("file", b"theirs"), b"other": ("file", b"theirs")}


@pytest.mark.parametrize("removes", [True, False])
async def test_a_link_that_is_put_there_in_the_middle_of_a_restore_leads_nobody_outside(
    folder: Path, shadow: FolderSnapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removes: bool
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    write(outside, file="theirs")
    empty = await shadow.record()
    (folder / "sub").mkdir()
    write(folder / "sub", file="ours")
    full = await shadow.record()
    if not removes:
        await shadow.restore(empty)

    def swap(point: str) -> None:
        if point == "snapshot.planned":
            if (folder / "sub").exists():
                (folder / "sub").rename(tmp_path / "moved")
            (folder / "sub").symlink_to(outside)

    monkeypatch.setattr("everturn.failpoints._plan", swap)
    with pytest.raises(StoreUnavailable, match="revert again"):
        await shadow.restore(empty if removes else full)
    assert on_disk(outside) == {b"file": ("file", b"theirs")}


async def test_a_file_with_a_second_name_outside_is_replaced_and_not_written_to(
    folder: Path, shadow: FolderSnapshots, tmp_path: Path
) -> None:
    write(folder, file="1", mode="1")
    before = await shadow.record()
    write(tmp_path, theirs="2", mode="1")
    (tmp_path / "mode").chmod(0o755)
    for name, theirs in (("file", "theirs"), ("mode", "mode")):
        (folder / name).unlink()
        (folder / name).hardlink_to(tmp_path / theirs)
    await shadow.restore(before)
    assert (tmp_path / "theirs").read_text(encoding="utf-8") == "2"
    assert stat.S_IMODE((tmp_path / "mode").stat().st_mode) == 0o755


async def test_who_may_read_a_file_stays_as_it_was_when_its_content_goes_back(
    folder: Path, shadow: FolderSnapshots
) -> None:
    write(folder, secret="1", tool="1")
    (folder / "tool").chmod(0o750)
    before = await shadow.record()
    write(folder, secret="2", tool="2")
    (folder / "secret").chmod(0o600)
    (folder / "tool").chmod(0o640)
    await shadow.restore(before)
    modes = {name: stat.S_IMODE((folder / name).stat().st_mode) for name in names(folder)}
    assert modes == {"secret": 0o600, "tool": 0o750}
    assert await shadow.record() == before


async def test_whether_a_file_is_a_program_goes_back_too(folder: Path, shadow: FolderSnapshots) -> None:
    write(folder, one="1", two="1")
    (folder / "one").chmod(0o755)
    before = await shadow.record()
    (folder / "one").chmod(0o644)
    (folder / "two").chmod(0o755)
    assert await shadow.record() != before
    await shadow.restore(before)
    assert on_disk(folder) == {b"one": ("program", b"1"), b"two": ("file", b"1")}


async def test_a_folder_that_is_gone_is_reported(folder: Path, shadow: FolderSnapshots) -> None:
    os.rmdir(folder)
    with pytest.raises(StoreUnavailable, match="no snapshot of"):
        await shadow.record()


async def test_folders_that_a_restore_empties_go_and_empty_ones_in_the_way_of_a_file_too(
    folder: Path, shadow: FolderSnapshots
) -> None:
    write(folder, place="1")
    (folder / "empty").mkdir()
    before = await shadow.record()
    (folder / "place").unlink()
    (folder / "place" / "a" / "b").mkdir(parents=True)
    (folder / "new" / "deep").mkdir(parents=True)
    write(folder / "new" / "deep", file="1")
    await shadow.restore(before)
    assert names(folder) == ["empty", "place"]


async def test_changes_are_reported_with_their_lines_and_five_hundred_at_most(
    folder: Path, shadow: FolderSnapshots
) -> None:
    write(folder, gone="1\n2\n", more="1\n", kind="1")
    before = await shadow.record()
    (folder / "gone").unlink()
    write(folder, more="1\n2\n3\n", new="1\n")
    (folder / "bytes").write_bytes(b"\0\1")
    (folder / "kind").unlink()
    (folder / "kind").symlink_to("new")
    (folder / os.fsdecode(b"odd\xff\n")).write_text("1\n", encoding="utf-8")
    after = await shadow.record()
    assert await shadow.changes(before, after) == (
        FileChange("bytes", "added"),
        FileChange("gone", "deleted", 0, 2),
        FileChange("kind", "modified", 1, 1),
        FileChange("more", "modified", 2, 0),
        FileChange("new", "added", 1, 0),
        FileChange("odd\\xff\n", "added", 1, 0),
    )
    assert "+1" in await shadow.diff(before, after, "odd\\xff\n")
    assert await shadow.diff(before, after, "nothing") == ""
    for number in range(600):
        write(folder, **{f"many{number:03}": "1\n"})
    many = await shadow.changes(after, await shadow.record())
    assert len(many) == 500
    assert {(change.kind, change.added) for change in many} == {("added", 1)}


async def test_a_long_diff_is_cut(folder: Path, shadow: FolderSnapshots) -> None:
    before = await shadow.record()
    write(folder, file="line\n" * 100_000)
    diff = await shadow.diff(before, await shadow.record(), "file")
    assert diff.endswith(CUT)
    assert len(diff) == DIFF_BYTES + len(CUT)


@pytest.mark.parametrize("tree", ["", "HEAD", "--help", "0" * 64, "../x", "0" * 40])
async def test_a_tree_that_was_never_recorded_is_refused(shadow: FolderSnapshots, tree: str) -> None:
    known = await shadow.record()
    for operation in (shadow.restore(tree), shadow.changes(known, tree), shadow.diff(tree, known, "x")):
        with pytest.raises(CommandRefused, match="no tree"):
            await operation


async def test_a_restore_whose_files_are_gone_from_the_store_changes_nothing(
    folder: Path, shadow: FolderSnapshots
) -> None:
    write(folder, file="1", other="1")
    before = await shadow.record()
    name = git(shadow.store_dir / "git", "rev-parse", f"{before}:file").decode().strip()
    write(folder, file="2", other="2")
    await shadow.record()
    (shadow.store_dir / "git" / "objects" / name[:2] / name[2:]).unlink()
    with pytest.raises(CommandRefused, match="missing from the snapshots"):
        await shadow.restore(before)
    assert on_disk(folder) == {b"file": ("file", b"2"), b"other": ("file", b"2")}


async def test_what_is_written_is_a_repository_without_a_fault(folder: Path, shadow: FolderSnapshots) -> None:
    for name in ("a", "a.b", "a0"):
        (folder / name / "in").mkdir(parents=True)
        write(folder / name / "in", file=name)
    write(folder, **{"a-": "1", "b": "2"})
    tree = await shadow.record()
    git(shadow.store_dir / "git", "fsck", "--strict", "--full", tree)


async def test_a_pipe_for_a_gitignore_is_reported_at_once_and_not_waited_for(
    folder: Path, shadow: FolderSnapshots
) -> None:
    os.mkfifo(folder / ".gitignore")
    with pytest.raises(CommandRefused, match="remove it"):
        await shadow.record()


async def test_records_and_restores_at_the_same_time_wait_for_one_another(folder: Path, tmp_path: Path) -> None:
    write(folder, file="1")
    shadows = [FolderSnapshots(folder, tmp_path / "store") for _ in range(4)]
    first = await shadows[0].record()
    write(folder, file="2", more="2")
    two = await shadows[1].record()
    seen = await asyncio.gather(
        *(shadow.restore(tree) for shadow in shadows for tree in (first, two)), *(shadow.record() for shadow in shadows)
    )
    assert {tree for tree in seen if tree is not None} <= {first, two}


async def test_a_lock_that_is_held_for_too_long_is_an_error(
    shadow: FolderSnapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shadow.record()
    monkeypatch.setattr(shadow_module, "LOCK_SECONDS", 0.05)
    with hold(shadow.store_dir / "lock") as holder:
        with pytest.raises(StoreUnavailable, match="held"):
            await shadow.record()
        holder.kill()
    await shadow.record()


async def test_a_damaged_memory_is_done_without(folder: Path, shadow: FolderSnapshots) -> None:
    write(folder, file="1")
    tree = await shadow.record()
    (shadow.store_dir / "memory").write_bytes(b"\xc1 garbage")
    assert await shadow.record() == tree


def test_a_file_that_has_just_changed_is_read_again_the_next_time(folder: Path, tmp_path: Path) -> None:
    repository = ObjectRepository(tmp_path / "git")
    write(folder, file="1")
    changed = (folder / "file").stat().st_ctime_ns
    assert (
        walk_folder(repository, str(folder), {}, changed + RACY_NANOSECONDS - 1).files[b"file"].stamp == UNKNOWN_STAMP
    )
    sure = walk_folder(repository, str(folder), {}, changed + RACY_NANOSECONDS)
    assert sure.files[b"file"].stamp != UNKNOWN_STAMP
    (folder / "file").write_text("2", encoding="utf-8")
    assert (
        walk_folder(repository, str(folder), sure.files, changed + RACY_NANOSECONDS).files[b"file"].name
        != sure.files[b"file"].name
    )


def test_snapshots_are_kept_outside_of_what_they_are_of(folder: Path, tmp_path: Path) -> None:
    for store in (folder / "store", folder, tmp_path):
        with pytest.raises(ConfigError, match="outside"):
            FolderSnapshots(folder, store)
    with pytest.raises(ConfigError, match="no such folder"):
        FolderSnapshots(tmp_path / "nowhere", tmp_path / "store")


async def test_without_git_it_is_said_what_to_install(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "bin"
    old.mkdir()
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(old))
        with pytest.raises(ConfigError, match="install"):
            FolderSnapshots(folder, tmp_path / "store")
        (old / "git").write_text("#!/bin/sh\necho git version 2.20.1\n", encoding="utf-8")
        (old / "git").chmod(0o755)
        with pytest.raises(ConfigError, match=r"2\.20\.1"):
            await FolderSnapshots(folder, tmp_path / "store").record()


async def test_a_git_that_hangs_is_killed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\nexec sleep 1000\n", encoding="utf-8")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(git_process, "GIT_SECONDS", 0.1)
    with pytest.raises(StoreUnavailable, match="took too long"):
        await FolderSnapshots(folder, tmp_path / "store").record()
