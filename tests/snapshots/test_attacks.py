"""Who works in a folder can neither hide from its snapshots what they do there, nor make it impossible to take back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.snapshots.folder_trees import in_tree, names, on_disk

from everturn.core.parts import FileChange
from everturn.errors import CommandRefused, ConfigError
from everturn.tools.snapshots import walk
from everturn.tools.snapshots.store import FolderSnapshots

MIB = 2**20


@pytest.fixture
def shadow(folder: Path, tmp_path: Path) -> FolderSnapshots:
    return FolderSnapshots(folder, tmp_path / "store")


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


async def listed(shadow: FolderSnapshots, before: str, after: str) -> list[tuple[str, str]]:
    return [(change.path, change.kind) for change in await shadow.changes(before, after)]


async def test_a_rule_of_ones_own_hides_nothing_and_is_listed_itself(folder: Path, shadow: FolderSnapshots) -> None:
    write(folder, base="1")
    base = await shadow.record()
    write(folder, **{".gitignore": "*\n"})
    first = await shadow.record(base)
    write(folder, evil="1")
    (folder / "sub").mkdir()
    write(folder / "sub", evil="1", **{".gitignore": "*\n"})
    two = await shadow.record(base)
    assert await listed(shadow, base, first) == [(".gitignore", "added")]
    assert await listed(shadow, first, two) == [("evil", "added"), ("sub/.gitignore", "added"), ("sub/evil", "added")]
    assert await shadow.record() == two, "what was recorded stays so when the rule counts"
    assert await shadow.record_before(base) == two
    await shadow.restore(base)
    assert names(folder) == ["base"]


async def test_a_rule_counts_from_the_next_time_on_that_what_there_is_counts(
    folder: Path, shadow: FolderSnapshots
) -> None:
    base = await shadow.record()
    write(folder, **{".gitignore": "*.log\n"})
    await shadow.record(base)
    new_base = await shadow.record()
    write(folder, **{"x.log": "1", "y": "1"})
    assert await listed(shadow, new_base, await shadow.record(new_base)) == [("y", "added")]


@pytest.mark.parametrize("how", ["removed", "changed", "a folder"])
async def test_rules_that_are_taken_away_count_until_then_and_what_they_named_is_not_reverted(
    folder: Path, shadow: FolderSnapshots, how: str
) -> None:
    write(folder, **{".gitignore": "secret\nbuild/\n", "secret": "precious"})
    (folder / "build").mkdir()
    write(folder / "build", out="precious")
    base = await shadow.record()
    (folder / ".gitignore").unlink()
    if how == "changed":
        write(folder, **{".gitignore": "!secret\n"})
    elif how == "a folder":
        (folder / ".gitignore").mkdir()
    disk, after = on_disk(folder), await shadow.record(base)
    assert await listed(shadow, base, after) == [(".gitignore", "modified" if how == "changed" else "deleted")]
    assert await shadow.record_before(base) == after
    await shadow.restore(base)
    assert on_disk(folder) == {**disk, **in_tree(shadow.store_dir, base)}
    assert await shadow.record() == base
    await shadow.restore(after)
    assert on_disk(folder) == disk
    assert await shadow.record() == after


async def test_rules_that_name_themselves_are_recorded_and_nothing_seems_to_change(
    folder: Path, shadow: FolderSnapshots
) -> None:
    (folder / "cache" / "deep").mkdir(parents=True)
    write(folder / "cache", **{".gitignore": "*\n", "x": "1"})
    write(folder / "cache" / "deep", **{".gitignore": "*\n", "x": "1"})
    base = await shadow.record()
    assert set(in_tree(shadow.store_dir, base)) == {b"cache/.gitignore"}
    write(folder / "cache", x="2", y="2")
    assert await shadow.record(base) == base


async def test_rules_in_a_folder_that_is_ignored_are_not_recorded_and_count_no_more_when_they_are_left(
    folder: Path, shadow: FolderSnapshots
) -> None:
    (folder / "d").mkdir()
    write(folder / "d", known="1")
    first = await shadow.record()
    write(folder, **{".gitignore": "d/\nbuild/\n"})
    (folder / "build").mkdir()
    for name in ("d", "build"):
        write(folder / name, **{".gitignore": "y*\n", "y": "1"})
    second = await shadow.record()
    assert set(in_tree(shadow.store_dir, second)) == {b".gitignore", b"d/known"}
    await shadow.restore(first)
    assert await shadow.record() == first
    write(folder / "d", yy="1")
    base = await shadow.record()
    assert set(in_tree(shadow.store_dir, base)) == {b"d/known", b"d/yy"}
    assert await shadow.record(base) == base


async def test_a_folder_that_was_ignored_is_not_when_it_is_a_file_now(folder: Path, shadow: FolderSnapshots) -> None:
    (folder / "d").mkdir()
    write(folder / "d", **{".gitignore": "x\n"})
    await shadow.record()
    write(folder, **{".gitignore": "d/\n"})
    base = await shadow.record()
    (folder / "d" / ".gitignore").unlink()
    (folder / "d").rmdir()
    write(folder, d="1")
    assert await listed(shadow, base, await shadow.record(base)) == [("d", "added"), ("d/.gitignore", "deleted")]


async def test_rules_of_a_tree_that_was_never_recorded_are_refused(shadow: FolderSnapshots) -> None:
    with pytest.raises(CommandRefused, match="no tree"):
        await shadow.record("0" * 64)


async def test_a_recorded_file_that_grows_is_modified_and_goes_back_and_forth(
    folder: Path, shadow: FolderSnapshots
) -> None:
    write(folder, base="1\n", other="1\n")
    before = await shadow.record()
    write(folder, base="x\n" * (3 * MIB // 2), other="2\n")
    (folder / "new").write_bytes(b"x" * 3 * MIB)
    disk, after = on_disk(folder), await shadow.record(before)
    assert await shadow.changes(before, after) == (
        FileChange("base", "modified"),
        FileChange("other", "modified", 1, 1),
    )
    await shadow.restore(before)
    assert on_disk(folder) == {**in_tree(shadow.store_dir, before), b"new": disk[b"new"]}
    await shadow.restore(after)
    assert on_disk(folder) == disk
    assert await shadow.record() == after


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "FILE_BYTES", 100)
    monkeypatch.setattr(walk, "GROWN_BYTES", 1000)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("is_there_before", [True, False])
async def test_what_grew_too_large_to_be_kept_is_moved_away_by_a_revert_and_comes_back_from_there(
    folder: Path, shadow: FolderSnapshots, is_there_before: bool
) -> None:
    empty = await shadow.record()
    (folder / "sub").mkdir()
    write(folder / "sub", base="1")
    small = await shadow.record()
    before = small if is_there_before else empty
    write(folder / "sub", base="x" * 2000)
    (folder / "sub" / "base").chmod(0o755)
    disk, after = on_disk(folder), await shadow.record(small)
    assert await listed(shadow, small, after) == [("sub/base", "modified")]
    await shadow.restore(before)
    [put] = [path for path in on_disk(folder) if b"everturn-aside" in path]
    assert on_disk(folder) == {**in_tree(shadow.store_dir, before), put: disk[b"sub/base"]}
    assert await shadow.record() == before
    await shadow.restore(before)
    await shadow.restore(after)
    assert on_disk(folder) == disk
    assert await shadow.record() == after
    (folder / "sub" / "base").chmod(0o644)
    await shadow.restore(after)
    assert on_disk(folder) == disk
    await shadow.restore(before)
    os.unlink(folder / os.fsdecode(put))
    expected = on_disk(folder)
    with pytest.raises(CommandRefused, match="'sub/base' was too large then"):
        await shadow.restore(after)
    assert on_disk(folder) == expected


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("case", ["beneath", "taken"])
async def test_what_grew_too_large_and_has_nowhere_to_go_makes_a_revert_refuse(
    folder: Path, shadow: FolderSnapshots, case: str
) -> None:
    write(folder, file="1")
    before = await shadow.record()
    at = folder / "file"
    if case == "beneath":
        at.unlink()
        at.mkdir()
        at = at / "in"
        at.write_text("1", encoding="utf-8")
        await shadow.record()
    write(at.parent, **{at.name: "x" * 2000})
    await shadow.record()
    if case == "taken":
        await shadow.restore(before)
        [put] = [path for path in names(folder) if "aside" in path]
        os.rename(folder / put, at)
        write(folder, **{put: "mine"})
    disk = on_disk(folder)
    with pytest.raises(CommandRefused, match="move it away"):
        await shadow.restore(before)
    assert on_disk(folder) == disk


@pytest.mark.usefixtures("small")
async def test_a_file_with_the_words_that_stand_for_a_large_one_is_only_a_file(
    folder: Path, shadow: FolderSnapshots, tmp_path: Path
) -> None:
    write(folder, base="1")
    await shadow.record()
    write(folder, base="x" * 2000)
    [(_, words)] = in_tree(shadow.store_dir, await shadow.record()).values()
    other = tmp_path / "other"
    other.mkdir()
    (other / "base").write_bytes(words)
    beside = FolderSnapshots(other, tmp_path / "another store")
    tree = await beside.record()
    (other / "base").unlink()
    await beside.restore(tree)
    assert (other / "base").read_bytes() == words


async def test_a_store_is_of_one_folder(folder: Path, shadow: FolderSnapshots, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    early = FolderSnapshots(other, shadow.store_dir)
    write(folder, old="1")
    write(other, new="1")
    tree = await shadow.record()
    for operation in (early.record(), early.restore(tree), early.record_before(tree), early.check_unused()):
        with pytest.raises(ConfigError, match=rf"the snapshots of {folder}, .*choose another store_dir"):
            await operation
    with pytest.raises(ConfigError, match=f"the snapshots of {folder}"):
        FolderSnapshots(other, shadow.store_dir)
    assert names(other) == ["new"]
    assert await FolderSnapshots(folder, shadow.store_dir).record() == tree


async def test_a_folder_that_was_moved_keeps_its_store_and_what_is_remembered(
    folder: Path, shadow: FolderSnapshots, tmp_path: Path
) -> None:
    write(folder, trace="1")
    await shadow.record()
    write(folder, **{".gitignore": "trace\n"})
    tree = await shadow.record()
    os.rename(folder, tmp_path / "moved")
    moved = FolderSnapshots(tmp_path / "moved", shadow.store_dir)
    assert await moved.record() == tree
    os.mkdir(folder)
    with pytest.raises(ConfigError, match=f"the snapshots of {tmp_path / 'moved'}"):
        FolderSnapshots(folder, shadow.store_dir)


async def test_a_folder_that_is_made_anew_in_its_place_is_the_same(
    folder: Path, shadow: FolderSnapshots, tmp_path: Path
) -> None:
    write(folder, file="1")
    tree = await shadow.record()
    os.rename(folder, tmp_path / "away")
    os.mkdir(folder)
    await FolderSnapshots(folder, shadow.store_dir).restore(tree)
    assert names(folder) == ["file"]


async def test_a_store_that_does_not_say_what_it_is_of_is_not_used(folder: Path, shadow: FolderSnapshots) -> None:
    await shadow.record()
    (shadow.store_dir / "folder").write_bytes(b"\xc1 garbage")
    with pytest.raises(ConfigError, match="remove that file"):
        FolderSnapshots(folder, shadow.store_dir)
