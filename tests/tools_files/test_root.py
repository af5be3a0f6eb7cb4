"""The root is opened once: what somebody puts in its place is not it."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from everturn.errors import ConfigError, ToolError
from everturn.tools.files import openat
from everturn.tools.files.folder import Folder


@pytest.fixture(params=[True, False], ids=["in one call", "step by step"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    if request.param and not openat.has_openat2():
        pytest.skip("there is no openat2 here")
    root, outside = tmp_path / "root", tmp_path / "outside"
    for directory in (root, outside):
        directory.mkdir()
        (directory / "hosts").write_text(f"{directory.name}\n")
    return Folder(root, in_one=request.param)


def texts(folder: Path) -> set[str]:
    return {path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", ["link", "folder", "nothing"])
async def test_nothing_is_read_or_written_where_something_else_is_in_the_place_of_the_root(
    folder: Folder, tmp_path: Path, kind: str
) -> None:
    root = tmp_path / "root"
    root.rename(tmp_path / "old")
    if kind == "link":
        root.symlink_to(tmp_path / "outside")
    elif kind == "folder":
        (tmp_path / "outside").rename(root)
    for work in (
        folder.read("hosts"),
        folder.list("."),
        folder.stat("hosts"),
        folder.stat("."),
        folder.change("hosts", lambda _: b"written"),
        folder.change("a/new", lambda _: b"written"),
    ):
        with pytest.raises(ToolError, match=r"removed or replaced.*tell the user"):
            await work
    assert texts(tmp_path) == {"root\n", "outside\n"}
    if kind != "folder":
        if kind == "link":
            root.unlink()
        (tmp_path / "old").rename(root)
        assert await folder.read("hosts") == b"root\n"


async def test_what_is_opened_is_inside_the_root_even_if_it_is_swapped_after_the_look(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = folder._check_place

    def look_then_swap() -> None:
        look()
        (tmp_path / "root").rename(tmp_path / "old")
        (tmp_path / "root").symlink_to(tmp_path / "outside")

    monkeypatch.setattr(folder, "_check_place", look_then_swap)
    assert await folder.read("hosts") == b"root\n"


def test_a_link_to_a_folder_is_resolved_once_when_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert Folder(tmp_path / "link").root == str(tmp_path / "real")
    with pytest.raises(ConfigError, match="is not a folder"):
        Folder(tmp_path / "absent")


def test_a_folder_that_nobody_uses_any_more_is_closed(tmp_path: Path) -> None:
    def opened() -> int:
        links = (os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd"))
        return sum(os.path.lexists(link) and os.path.realpath(link) == str(tmp_path) for link in links)

    folder = Folder(tmp_path)
    assert opened() == 1
    del folder
    gc.collect()
    assert opened() == 0
