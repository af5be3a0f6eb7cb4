"""`everturn doctor` in a folder: whether it is trusted, what the assistant uses of it, and what it skips and why."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from everturn.cli.doctor import folder
from everturn.cli.doctor.checks import DoctorCheck
from everturn.config.folder.project import find_project
from everturn.config.folder.trust import FolderTrust
from everturn.config.load import load_config

SKILL = "---\nname: pdf\ndescription: reads PDFs\n---\nRead them.\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("STATE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "shop"
    (root / ".claude/skills/pdf").mkdir(parents=True)
    (root / ".claude/skills/pdf/SKILL.md").write_text(SKILL)
    (root / ".claude/skills/bad").mkdir()
    (root / ".claude/skills/bad/SKILL.md").write_text("no description\n")
    (root / "AGENTS.md").write_text("Be brief.\n")
    monkeypatch.chdir(root)
    return root


def found(project: Path, text: str = "") -> list[DoctorCheck]:
    config = project.parent / "everturn.toml"
    config.write_text(text)
    return folder.check_folder(load_config(str(config), {}), os.environ)


def test_a_folder_that_nobody_trusts_is_a_note_and_its_files_are_not_read(project: Path) -> None:
    (check,) = found(project)
    assert (check.state, check.fix) == ("note", "`everturn` asks once")
    assert "~/shop is not trusted yet" in check.detail


def test_new_files_wait_for_an_answer_and_those_that_are_skipped_say_why(project: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    trust, waiting, skipped = found(project)
    assert (trust.state, trust.detail) == ("ok", "~/shop, a git repository")
    assert (waiting.name, waiting.state) == ("to be trusted", "note")
    assert "AGENTS.md, .claude/skills/pdf" in waiting.detail
    assert (skipped.name, skipped.state) == ("skipped", "note")
    assert ".claude/skills/bad: it has no description" in skipped.detail


def test_files_that_are_trusted_are_counted_until_they_change(project: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    trust, current_project = FolderTrust(), find_project(project)
    trust.answer(
        current_project,
        [*trust.unanswered(current_project), *trust.unanswered_extensions(current_project)],
        is_trusted=True,
    )
    checks = {check.name: check.detail for check in found(project)}
    assert (checks["instructions"], checks["extensions"]) == ("AGENTS.md", "1 skill")
    assert "to be trusted" not in checks

    (project / "AGENTS.md").write_text("Be longer.\n")
    checks = {check.name: check.detail for check in found(project)}
    assert "instructions" not in checks
    assert checks["to be trusted"].endswith("AGENTS.md")


def test_hostile_names_cannot_draw_on_the_terminal(project: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    for n in range(12):
        (project / f".claude/skills/x\x1b[2J{n}").mkdir()
        (project / f".claude/skills/x\x1b[2J{n}/SKILL.md").write_text("nothing\n")
    checks = found(project)
    assert checks[-1].detail.endswith("more files")
    assert all(check.detail.isprintable() for check in checks)


def test_a_configuration_without_the_folder_says_so(project: Path) -> None:
    (check,) = found(project, "[assistant]\nfolder = false\n")
    assert (check.state, "folder = false" in check.detail) == ("absent", True)
