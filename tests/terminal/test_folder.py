"""Line mode in a folder: the same agent, skills and commands as the full screen has."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.extension_files import write_project
from tests.helpers.folder_model import FolderModel, folder_model

from everturn.cli.args.commands import make_parser
from everturn.cli.commands import plain_chat
from everturn.config.folder.project import find_project
from everturn.config.folder.trust import FolderTrust
from everturn.terminal.tui.folder import FolderStart

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def model() -> Iterator[FolderModel]:
    with folder_model() as fake_model:
        yield fake_model


@pytest.fixture
def project(tmp_path: Path, model: FolderModel, monkeypatch: pytest.MonkeyPatch) -> Path:
    home, folder = tmp_path / "home", tmp_path / "shop"
    for path in (home, folder):
        path.mkdir()
    for name in ("STATE", "DATA", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    monkeypatch.setenv("HOME", str(home))
    for name in ("EVERTURN_MODEL", "EVERTURN_CONFIG", "EVERTURN_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    (folder / "price.py").write_text("def total(a, b):\n    return a - b\n")
    write_project(folder)
    trust = FolderTrust()
    trust.answer(find_project(folder), trust.unanswered_extensions(find_project(folder)), is_trusted=True)
    monkeypatch.chdir(folder)
    model.config(home)
    return folder


def chat(lines: str, monkeypatch: pytest.MonkeyPatch, start: FolderStart | None) -> int:
    """`everturn chat --plain` with these lines as its input."""
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    options = make_parser().parse_args(["chat", "--plain"])
    options.start = start
    return plain_chat.chat(options)


def test_a_folder_has_its_tools_skills_and_commands_in_line_mode(
    project: Path, model: FolderModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model.says(("read_file", {"path": "price.py"}), "It subtracts.", ("load_skill", {"name": "pdf"}), "Fixed.")
    assert chat("what does it do?\n/fix-issue 12\n", monkeypatch, FolderStart(str(project))) == 0
    shown = capsys.readouterr().out
    assert "It subtracts." in shown
    assert "Fixed." in shown
    assert {"write_file", "load_skill", "agent_planner"} <= set(model.tools)
    assert str(project) in model.system
    assert "return a - b" in model.results[0]
    assert "PDF Processing Guide" in model.results[1]
    assert "Fix issue #12 following our standards." in str(model.requests[-1]["messages"])


def test_the_mode_holds_in_line_mode(
    project: Path, model: FolderModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model.says("A plan.")
    assert chat("plan it\n", monkeypatch, FolderStart(str(project), "plan")) == 0
    assert not {"write_file", "edit_file"} & set(model.tools)
    assert "Plan mode" in model.system


def test_without_a_folder_it_is_a_chat_without_tools(
    project: Path, model: FolderModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model.says("Hello.")
    assert chat("hi\n", monkeypatch, None) == 0
    assert model.tools == []
    assert "pdf" not in model.system
