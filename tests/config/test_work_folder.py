"""The folder that turns record: the root of the repository, whoever stands where in it, and no root of somebody else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from everturn.config.schema import Config, FilesTable, ShellTable, ToolsTable
from everturn.config.work_folder import configured_folder, work_folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "src" / "deep").mkdir(parents=True)
    return root


def test_everywhere_in_a_repository_it_is_the_root(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (project, project / "src", project / "src" / "deep"):
        assert work_folder(folder) == str(project.resolve())
    monkeypatch.chdir(project / "src")
    assert work_folder() == str(project.resolve())


def test_outside_of_one_it_is_the_folder_itself_and_a_link_is_what_it_points_to(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert work_folder(other) == str(other.resolve())
    link = tmp_path / "link"
    link.symlink_to(project / "src", target_is_directory=True)
    assert work_folder(link) == str(project.resolve())


def test_a_worktree_and_a_repository_inside_another_are_their_own(project: Path) -> None:
    inner = project / "vendor"
    inner.mkdir()
    (inner / ".git").write_text("gitdir: ../.git/modules/vendor\n")
    assert work_folder(inner) == str(inner.resolve())


def test_a_root_of_another_user_does_not_count(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 987_654, raising=False)
    assert work_folder(project / "src") == str((project / "src").resolve())


def test_a_server_works_in_the_folder_of_its_tools(project: Path) -> None:
    root = str(project.resolve())
    for tools in (
        ToolsTable(files=f"{project}/src:ro"),
        ToolsTable(files=FilesTable(f"{project}")),
        ToolsTable(shell=f"{project}:rw"),
        ToolsTable(shell=ShellTable(folder=f"{project}/src")),
    ):
        assert configured_folder(Config(tools=tools)) == root
    assert configured_folder(Config()) == ""
    assert configured_folder(Config(tools=ToolsTable(shell=True))) == ""
