"""What a command makes that other programs obey is moved away before any of them can: shown with the real git."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.errors import ToolError
from everturn.sandbox.bubblewrap_runner import UID
from everturn.sandbox.hidden_paths import is_repository
from everturn.tools.code.shell import run_shell
from everturn.tools.files.protected import PROTECTED, UNPROTECTED, ProtectedPaths

pytestmark = pytest.mark.live
CONTEXT = ToolContext(session="s", turn="t", call="c", key="k", progress=lambda text: None)


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    (folder / "a.txt").write_text("a")
    (folder / "docs").mkdir()
    (folder / "docs/b.txt").write_text("b")
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", f"{UID}:{UID}", str(folder)], check=True)
    yield folder
    subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=True)
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def bare(path: Path, folder: Path) -> None:
    """A bare repository that belongs to whom the folder does."""
    owner = folder.stat()
    subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True)
    subprocess.run(["chown", "-R", f"{owner.st_uid}:{owner.st_gid}", str(folder)], check=True)


async def use(folder: Path, command: str, protect: ProtectedPaths = PROTECTED) -> Output:
    return await run_shell(folder, writable=True, protect=protect).run({"command": command}, CONTEXT)


def obeys(folder: Path, beneath: str = ".") -> bool:
    """Whether the git of the host runs what the settings in a folder say."""
    canary = folder.with_suffix(".canary")
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "CANARY": str(canary), "GIT_CONFIG_COUNT": "1"}
    environment |= {"GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}  # as if it were ours
    subprocess.run(["git", "status"], cwd=folder / beneath, env=environment, check=False, capture_output=True)
    was_there = canary.exists()
    canary.unlink(missing_ok=True)
    return was_there


SETTINGS = r"printf '[core]\nrepositoryformatversion = 0\nworktree = ..\nfsmonitor = touch $CANARY #\n' >"
BARE = f"mkdir -p docs/objects docs/refs; echo 'ref: refs/heads/main' > docs/HEAD; {SETTINGS} docs/config"
REPOSITORIES = {
    "bare": (BARE, "docs", ["docs/HEAD", "docs/config"]),
    "common": (
        f"mkdir -p docs/c/objects docs/c/refs; echo c > docs/commondir; echo 'ref: refs/heads/main' > docs/HEAD; {SETTINGS} docs/c/config",
        "docs",
        ["docs/HEAD", "docs/commondir"],
    ),
    "new": (f"git init -q new; {SETTINGS} new/.git/config", "new", ["new/.git"]),
    "pointer": (f"git init -q --bare x; {SETTINGS} x/config; mkdir y; echo 'gitdir: ../x' > y/.git", "y", ["x/HEAD", "x/config", "x/hooks", "y/.git"]),
    "closed": (f"git init -q new; {SETTINGS} new/.git/config; chmod 0 new/.git", "new", ["new/.git"]),
}  # fmt: skip


@pytest.mark.parametrize(("command", "beneath", "names"), REPOSITORIES.values(), ids=REPOSITORIES)
async def test_a_repository_that_a_command_makes_is_not_obeyed_by_git(
    folder: Path, command: str, beneath: str, names: list[str]
) -> None:
    output = await use(folder, command)
    assert (output.metadata or {})["quarantined"] == names
    assert str(output.title).startswith(f"[quarantined: {', '.join(names[:3])}")  # what a person sees of a call
    if (folder / beneath).exists():
        assert not obeys(folder, beneath)
    assert "other programs take that as their orders" in output.text
    assert (folder / "docs/b.txt").read_text() == "b"
    assert "[stderr]" not in output.text


@pytest.mark.parametrize("kind", ["bare", "new", "pointer"])
async def test_git_would_have_obeyed_it(folder: Path, kind: str) -> None:
    command, beneath, _ = REPOSITORIES[kind]
    await use(folder, command, UNPROTECTED)
    assert obeys(folder, beneath)


async def test_what_is_in_quarantine_can_be_put_back_and_is_not_obeyed_there(folder: Path) -> None:
    output = await use(folder, f"git init -q new; {SETTINGS} new/.git/config; echo x > CLAUDE.md; echo y > kept.txt")
    metadata = output.metadata or {}
    place = folder / str(metadata["quarantine"])
    assert place.parent == folder / ".everturn-quarantine"
    listed = json.loads((place / "what.json").read_text())
    assert listed["moved"] == {"1": "CLAUDE.md", "2": "new/.git"}
    assert "git init" in listed["why"]
    assert (place / "1").read_text() == "x\n"
    assert (place / "2").stat().st_mode & 0o777 == 0
    assert (folder / "kept.txt").read_text() == "y\n"
    assert not (folder / "CLAUDE.md").exists()
    (place / "2").chmod(0o700)
    (place / "2").rename(folder / "new/.git")
    assert obeys(folder, "new")  # it is what it was


async def test_neither_a_shell_nor_file_tools_see_the_quarantine(folder: Path) -> None:
    await use(folder, "echo x > AGENTS.md")
    output = await use(folder, "cat .everturn-quarantine/*/1; ls .everturn-quarantine; mv .everturn-quarantine q; true")
    assert "x\n" not in output.text
    assert not (folder / "q").exists()
    assert PROTECTED.matching_pattern(".everturn-quarantine/1-a/1", writing=False)


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("mkdir .vscode; echo '{}' > .vscode/tasks.json", [".vscode"]),
        ("echo 'touch x' > .envrc; mkdir -p .husky", [".envrc", ".husky"]),
        ("mkdir -p sub/.github/workflows; echo x > sub/.github/workflows/ci.yml", ["sub/.github/workflows"]),
        ("ln -s a.txt CLAUDE.md", ["CLAUDE.md"]),
        ("ln -s /etc .everturn-quarantine; echo x > AGENTS.md", [".everturn-quarantine", "AGENTS.md"]),
        ("mkdir -p .everturn-quarantine/1; chmod 0 .everturn-quarantine; echo x > AGENTS.md", ["AGENTS.md"]),
        ("for i in $(seq 1 510); do mkdir -p d/$i; echo x > d/$i/.mcp.json; done", None),
        (f"mkdir -p {'/'.join('d' * 120)}/.git", None),
    ],
)
async def test_whatever_is_made_of_the_kind_is_moved_and_the_next_command_runs(
    folder: Path, command: str, names: list[str] | None
) -> None:
    output = await use(folder, command)
    moved = (output.metadata or {})["quarantined"]
    assert moved == names if names is not None else moved
    assert "not_quarantined" not in (output.metadata or {})
    assert (await use(folder, "cat a.txt")).text == "a"


async def test_a_bare_repository_that_is_there_can_be_read_and_not_changed(folder: Path) -> None:
    bare(folder / "store", folder)
    output = await use(
        folder, "cat store/HEAD; echo x >> store/config; echo x > store/hooks/post-checkout; rm -r store"
    )
    assert "ref: refs/heads" in output.text
    assert output.text.count("Read-only file system") >= 2
    assert "quarantined" not in (output.metadata or {})
    opened = PROTECTED.excluding("store")
    output = await use(folder, "echo '# x' >> store/config && echo done", opened)
    assert output.text == "done"


async def test_a_folder_that_is_itself_a_bare_repository_keeps_its_settings(folder: Path) -> None:
    bare(folder, folder)
    shutil.rmtree(folder / "hooks")
    output = await use(folder, "echo x >> config; mkdir hooks; echo x > hooks/post-checkout; echo fine > new.txt")
    assert "Read-only file system" in output.text
    assert (output.metadata or {})["quarantined"] == ["hooks"]
    assert (folder / "new.txt").read_text() == "fine\n"


async def test_a_file_that_is_only_changed_is_not_moved(folder: Path) -> None:
    output = await use(folder, "echo b >> a.txt; mkdir objects; mkdir refs; echo x > config")
    assert "quarantined" not in (output.metadata or {})


@pytest.mark.parametrize(
    ("names", "is_one"),
    [
        ({"HEAD", "objects", "refs"}, True), ({"head", "OBJECTS", "Refs", "x"}, True), ({"HEAD", "commondir"}, True),
        ({"HEAD", "objects"}, False), ({"objects", "refs", "config"}, False), (set[str](), False),
    ],
)  # fmt: skip
def test_a_repository_is_known_by_its_parts(names: set[str], is_one: bool) -> None:
    assert is_repository(names) is is_one


async def test_a_quarantine_that_cannot_be_made_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from everturn.sandbox import quarantine

    def refuse(*_: object) -> int:
        raise ToolError("files cannot be moved to quarantine")

    monkeypatch.setattr(quarantine, "_root", refuse)
    output = await use(folder, "echo x > AGENTS.md")
    assert "files cannot be moved to quarantine" in output.text
