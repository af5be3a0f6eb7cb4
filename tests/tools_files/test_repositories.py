"""The file tools make no repository of git's, whatever it is called, and write to none."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
from pathlib import Path

import pytest
from tests.tools_files.fake_app import Desk, folder_desk, virtual_desk

from everturn.errors import BadArguments
from everturn.tools.files import PROTECTED, UNPROTECTED

SETTINGS = "[core]\n\trepositoryformatversion = 0\n\tworktree = ..\n\tfsmonitor = touch $CANARY #\n"
BARE = {"docs/HEAD": "ref: refs/heads/main\n", "docs/config": SETTINGS, "docs/objects/a": "", "docs/refs/a": ""}


def obeys(folder: Path) -> bool:
    """Whether git runs what the settings in a folder say."""
    canary = folder / "canary"
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "CANARY": str(canary)}
    subprocess.run(["git", "status"], cwd=folder, env=environment, check=False, capture_output=True)
    return canary.exists()


@pytest.fixture(params=["folder", "virtual"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    return folder_desk(tmp_path) if request.param == "folder" else virtual_desk()


@pytest.mark.parametrize("order", list(itertools.permutations(BARE))[::4])
async def test_the_last_part_of_a_bare_repository_is_refused(tmp_path: Path, order: tuple[str, ...]) -> None:
    desk = folder_desk(tmp_path)
    refused: list[str] = []
    for path in order:
        try:
            await desk.text("write_file", path=path, content=BARE[path])
        except BadArguments:
            refused.append(path)
    assert len(refused) == 1
    assert not (tmp_path / refused[0]).exists()
    assert not obeys(tmp_path / "docs")


async def test_git_would_have_obeyed_it(tmp_path: Path) -> None:
    desk = folder_desk(tmp_path, protect=UNPROTECTED)
    for path, text in BARE.items():
        await desk.text("write_file", path=path, content=text)
    assert obeys(tmp_path / "docs")


async def test_of_parts_that_are_written_at_once_one_is_refused(tmp_path: Path) -> None:
    desk = folder_desk(tmp_path)
    calls = [desk.call("write_file", path=path, content=text) for path, text in BARE.items()]
    came = await asyncio.gather(*calls, return_exceptions=True)
    assert any(isinstance(outcome, BadArguments) for outcome in came)
    assert not obeys(tmp_path / "docs")


async def test_a_person_is_not_asked_about_what_is_refused(desk: Desk) -> None:
    for path in ("docs/objects/a", "docs/refs/a"):
        await desk.put(path, "")
    with pytest.raises(BadArguments, match="would be a git repository"):
        await desk.preview("write_file", path="docs/HEAD", content="x")
    with pytest.raises(BadArguments, match="would be a git repository"):
        await desk.text("write_file", path="docs/head", content="x")  # a disk may not tell them apart
    await desk.text("write_file", path="docs/config", content="x")


@pytest.mark.parametrize("names", [("HEAD", "objects/a", "refs/a"), ("HEAD", "commondir")])
async def test_nothing_is_written_in_a_repository_that_is_there(desk: Desk, names: tuple[str, ...]) -> None:
    for name in names:
        await desk.put(f"store/{name}", "x")
    await desk.put("store/config", "old")
    for path in ("store/config", "store/hooks/post-checkout", "store/deep/er/x"):
        with pytest.raises(BadArguments, match="store"):
            await desk.text("write_file", path=path, content="new")
    with pytest.raises(BadArguments, match="store"):
        await desk.text("edit_file", path="store/config", old_text="old", new_text="new")
    assert await desk.get("store/config") == b"old"
    assert "old" in await desk.text("read_file", path="store/config")
    await desk.text("write_file", path="beside", content="new")


async def test_who_opens_git_opens_bare_repositories(tmp_path: Path) -> None:
    for protect in (PROTECTED.excluding("**/.git"), PROTECTED.excluding("docs")):
        desk = folder_desk(tmp_path, protect=protect)
        for path, text in BARE.items():
            await desk.text("write_file", path=path, content=text)
