"""A repository that a sandboxed command may commit to: git works, and what git obeys stays as it was."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.sandbox.bubblewrap_runner import UID
from everturn.tools.code.shell import GitAccess, run_shell

pytestmark = pytest.mark.live
CONTEXT = ToolContext(session="s", turn="t", call="c", key="k", progress=lambda text: None)
AUTHOR = {f"GIT_{role}_{key}": "ada" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
CONFIG = "[core]\n\trepositoryformatversion = 0\n[alias]\n\tmine = status\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    (folder / ".git/config").write_text(CONFIG)
    (folder / "a.txt").write_text("a")
    subprocess.run(["git", "init", "-q", str(folder / "other")], check=True)
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", f"{UID}:{UID}", str(folder)], check=True)
    yield folder
    subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=True)
    subprocess.run(["rm", "-rf", str(folder)], check=True)


async def use(folder: Path, command: str, is_write: bool = True) -> Output:
    tool = run_shell(folder, writable=True, git=GitAccess(lambda text: is_write, AUTHOR))
    return await tool.run({"command": command}, CONTEXT)


def log(folder: Path) -> str:
    words = ["git", "-c", "safe.directory=*", "log", "--format=%an %s"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False).stdout


async def test_a_command_that_may_commits_and_another_does_not(folder: Path) -> None:
    await use(folder, "git add a.txt && git commit -qm one")
    assert log(folder) == "ada one\n"
    refused = await use(folder, "echo b > a.txt; git commit -qam two", is_write=False)
    assert "Read-only file system" in refused.text
    assert log(folder) == "ada one\n"
    await use(folder, "git switch -qc side && git commit -qam three && git tag v1 && git switch -q main")
    assert (folder / ".git/refs/tags/v1").exists()


@pytest.mark.parametrize(
    "command",
    [
        "echo '[core] fsmonitor = evil' > .git/config",
        "git config core.fsmonitor evil",
        "rm .git/config; echo evil > .git/config",
        "mv .git/config .git/config2",
        "echo evil > .git/hooks/pre-commit",
        "echo evil > .git/info/attributes",
        "mkdir -p .git/modules/x && echo evil > .git/modules/x/config",
        "echo ../evil > .git/commondir",
        "echo evil > .git/config.worktree",
        "mkdir -p .git/worktrees/x && echo evil > .git/worktrees/x/commondir",
        "echo /evil > .git/objects/info/alternates",
        "mv .git .git2 && mkdir .git && echo evil > .git/config",
        "echo evil > other/.git/config",
        "echo evil > other/.git/hooks/pre-commit",
        "rm -f .git/index; ln -s /tmp/evil .git/index",
        "rm -f .git/HEAD; ln -s /tmp/evil .git/HEAD",
        "ln -s /tmp/evil .git/refs/heads/evil",
        "mkdir -p .git/logs/refs && ln -s /tmp/evil .git/logs/refs/x",
        "ln -s /tmp/evil .git/objects/zz",
    ],
)
async def test_what_git_obeys_cannot_be_changed(folder: Path, command: str) -> None:
    before = {path: path.read_text() for name in (".git", "other/.git") for path in [folder / name / "config"]}
    hooks = {path.name for path in (folder / ".git/hooks").glob("*")}
    await use(folder, f"git add a.txt; {command}")
    assert {path: path.read_text() for path in before} == before
    assert {path.name for path in (folder / ".git/hooks").glob("*")} == hooks
    for name in ("commondir", "config.worktree", "config2", "modules", "worktrees", "objects/info/alternates"):
        assert not (folder / ".git" / name).exists(), name
    assert not (folder / "other/.git/hooks/pre-commit").exists()
    assert not [path for path in (folder / ".git").rglob("*") if path.is_symlink()]
    attributes = folder / ".git/info/attributes"
    assert not attributes.exists() or "evil" not in attributes.read_text()
