"""What is protected in a folder stays so in a shell: hidden, or as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.errors import ConfigError, ToolError
from everturn.sandbox import bubblewrap_runner, hidden_paths
from everturn.sandbox.bubblewrap import Bubblewrap
from everturn.sandbox.bubblewrap_runner import UID
from everturn.sandbox.hidden_paths import DEEPEST, HiddenPaths, find_hidden_paths
from everturn.tools.code.path_policy import make_path_policy
from everturn.tools.code.shell import RunShell, run_shell
from everturn.tools.files.protected import PROTECTED, SECRETS, UNPROTECTED, WRITE_PROTECTED, ProtectedPaths

CONTEXT = ToolContext(session="s", turn="t", call="c", key="k", progress=lambda text: None)
FILES = {
    "a.txt": "a",
    ".env": "canary",
    "sub/.ENV.local": "canary",
    "sub/key.pem": "canary",
    ".ssh/config": "canary",
    ".git/config": "canary",
    ".git/hooks/pre-commit.sample": "sample",
    ".docker/config.json": "canary",
    ".docker/other": "other",
    "AGENTS.md": "orders",
    ".github/workflows/ci.yml": "orders",
}


@pytest.fixture
def folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))  # what is beneath tmp_path is root's alone
    folder.chmod(0o755)
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    yield folder
    subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=True)
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def found(folder: Path, protect: ProtectedPaths = PROTECTED, *, writable: bool = True) -> HiddenPaths:
    handle = os.open(folder, os.O_RDONLY)
    try:
        return find_hidden_paths(handle, make_path_policy(protect), writable=writable)
    finally:
        os.close(handle)


def test_what_is_protected_is_found_with_the_folders_that_must_keep_their_names(folder: Path) -> None:
    protected = found(folder)
    assert sorted(protected.hidden_files) == [".docker/config.json", ".env", "sub/.ENV.local", "sub/key.pem"]
    assert protected.hidden_folders == (".ssh",)
    assert protected.empty_files == (".git/config",)
    assert protected.read_only == (".git", ".github/workflows", "AGENTS.md")
    assert protected.pinned == (".docker", ".github")


def test_in_a_folder_for_reading_only_secrets_are_kept(folder: Path) -> None:
    protected = found(folder, writable=False)
    assert sorted(protected.hidden_files) == [".docker/config.json", ".env", "sub/.ENV.local", "sub/key.pem"]
    assert (protected.hidden_folders, protected.empty_files, protected.read_only, protected.pinned) == (
        (".ssh",),
        (".git/config",),
        (),
        (),
    )


def test_what_is_let_go_of_is_not_kept_and_a_path_from_the_root_pins_all_above_it(folder: Path) -> None:
    protected = found(folder, PROTECTED.excluding("**/.env", ".git").adding(secrets=["sub/deep/x"]))
    assert ".env" not in protected.unchangeable
    assert ".git" not in protected.unchangeable
    (folder / "sub/deep").mkdir()
    (folder / "sub/deep/x").touch()
    protected = found(folder, UNPROTECTED.adding(secrets=["sub/deep/x"]))
    assert (protected.hidden_files, protected.pinned) == (("sub/deep/x",), ("sub", "sub/deep"))


@pytest.mark.parametrize("pattern", [*SECRETS, *WRITE_PROTECTED])
def test_the_quick_judge_knows_every_pattern(pattern: str) -> None:
    path = pattern.removeprefix("**/").replace("*", "x").replace("?", "1")
    path_policy = make_path_policy(PROTECTED)
    for variant in (path, f"a/b/{path}", path.upper(), path.replace("k", "\u212a")):
        expected = PROTECTED.matching_pattern(variant, writing=False), PROTECTED.matching_pattern(variant, writing=True)
        assert path_policy(variant)[0] == ("hidden" if expected[0] else "fixed" if expected[1] else "")
        assert path_policy(variant)[0]


def test_a_link_in_the_place_of_what_is_protected_is_refused_where_it_could_be_replaced(folder: Path) -> None:
    (folder / "CLAUDE.md").symlink_to("AGENTS.md")
    (folder / "elsewhere").symlink_to("/etc")
    assert "CLAUDE.md" not in found(folder, writable=False).unchangeable
    with pytest.raises(
        ToolError, match=r"'CLAUDE.md' is protected, and is a symbolic link.*PROTECTED.but\('CLAUDE.md'\)"
    ):
        found(folder)
    assert "elsewhere/ssl" not in found(folder, PROTECTED.excluding("CLAUDE.md")).unchangeable


def test_a_folder_that_is_too_deep_or_too_large_to_be_gone_through_is_not_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = "/".join("d" * (DEEPEST + 1))
    (folder / deep / "more").mkdir(parents=True)
    (folder / deep / "more/.env").touch()
    assert deep in found(folder).hidden_folders
    monkeypatch.setattr(hidden_paths, "MAX_PROTECTED", 5)
    with pytest.raises(ToolError, match="more than 5 files and folders in its folder are protected"):
        found(folder)
    monkeypatch.setattr(hidden_paths, "MOST_ENTRIES", 10)
    with pytest.raises(ToolError, match="choose a smaller folder"):
        found(folder)


def test_a_folder_that_nobody_may_read_is_hidden_for_its_owner_could_let_itself_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = hidden_paths.open_in_folder

    def refused(root: int, path: str) -> int:  # what root may read is not refused otherwise
        if path == "sub":
            raise PermissionError
        return opened(root, path)

    monkeypatch.setattr(hidden_paths, "open_in_folder", refused)
    assert found(folder).hidden_folders == (".ssh", "sub")


def test_a_bubblewrap_that_is_too_old_to_keep_anything_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap_runner, "can_mount_descriptors", lambda: False)
    with pytest.raises(ConfigError, match=r"install 0\.10 or newer"):
        Bubblewrap(folder, path_policy=make_path_policy(PROTECTED))


# ------------------------------------------------------------------------------------------------------- in a shell


def shell(folder: Path, **choices: Any) -> RunShell:
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, UID, UID, follow_symlinks=False)
    return run_shell(folder, **choices)


async def use(tool: RunShell, command: str) -> Output:
    output = await tool.run({"command": command}, CONTEXT)
    assert isinstance(output, Output)
    return output


@pytest.mark.live
@pytest.mark.parametrize("writable", [True, False])
async def test_no_secret_is_read_by_any_name(folder: Path, writable: bool) -> None:
    tool = shell(folder, writable=writable)
    output = await use(
        tool,
        "cat a.txt AGENTS.md .docker/other; cat .env sub/.ENV.local sub/* .ssh/* .git/config .docker/config.json; "
        "grep -r canary .; mv .env e; ln .env f; cp .env g; chmod 777 .ssh .env; mv .ssh s; cat e f g s/config; "
        "mv .docker d; mv sub t; cat d/config.json t/key.pem",
    )
    assert "aordersother" in output.text
    assert "canary" not in output.text
    later = await use(tool, "cat d/config.json t/key.pem t/.ENV.local; grep -r canary .")
    assert "canary" not in later.text
    assert [(folder / name).read_text() for name in (".env", ".docker/config.json", ".git/config")] == ["canary"] * 3


@pytest.mark.live
async def test_what_other_programs_obey_is_not_changed_and_the_rest_is(folder: Path) -> None:
    output = await use(
        shell(folder, writable=True),
        "for f in .git/hooks/pre-commit .git/config AGENTS.md .github/workflows/ci.yml .github/workflows/new.yml; do "
        "echo x > $f; rm -f $f; done; rm -rf .git; mv .git g; mkdir -p .git/hooks; mv .github h; mv AGENTS.md i; "
        "echo new > AGENTS.md; echo b > b.txt; echo c >> a.txt; cat .git/hooks/pre-commit.sample",
    )
    assert "sample" in output.text
    assert {name: (folder / name).read_text() for name in FILES} == {**FILES, "a.txt": "ac\n"}
    assert sorted(path.name for path in (folder / ".git/hooks").iterdir()) == ["pre-commit.sample"]
    assert (folder / "b.txt").read_text() == "b\n"
    assert "made" not in (output.metadata or {})


@pytest.mark.live
async def test_with_nothing_protected_a_shell_does_what_it_is_told(folder: Path) -> None:
    tool = shell(folder, writable=True, protect=UNPROTECTED)
    output = await use(tool, "cat .env; echo x > .git/hooks/pre-commit")
    assert (output.text, (folder / ".git/hooks/pre-commit").read_text()) == ("canary", "x\n")


@pytest.mark.live
async def test_what_is_moved_between_the_look_and_the_start_is_noticed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = shell(folder, writable=True)
    monkeypatch.setattr(hidden_paths, "MOUNT_TIMEOUT", 0.5)
    protected = tool.sandbox.find_protected()
    (folder / "AGENTS.md").rename(folder / "moved")
    (folder / "AGENTS.md").symlink_to("a.txt")
    monkeypatch.setattr(tool.sandbox, "find_protected", lambda: protected)
    with pytest.raises((ToolError, ConfigError)):
        await use(tool, "echo begun >> /work/a.txt")
    (folder / "AGENTS.md").unlink()
    (folder / "moved").rename(folder / "AGENTS.md")
    (folder / ".env").rename(folder / "moved")
    (folder / ".env").symlink_to("a.txt")  # a mask would be laid over a.txt
    with pytest.raises((ToolError, ConfigError)):
        await use(tool, "echo begun; cat moved")
    assert (folder / "a.txt").read_text() == "a"


@pytest.fixture
def repository(folder: Path) -> Path:
    shutil.rmtree(folder / ".git")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "config", "remote.origin.url", "https://canary@example.com"], check=True)
    return folder


@pytest.mark.live
@pytest.mark.parametrize("writable", [True, False])
async def test_git_reads_a_repository_whose_settings_it_cannot(repository: Path, writable: bool) -> None:
    output = await use(
        shell(repository, writable=writable), "git -c safe.directory=/work status --short a.txt; cat .git/config"
    )
    assert output.text.strip() == "?? a.txt"


@pytest.mark.live
@pytest.mark.parametrize("writable", [True, False])
async def test_a_shell_sees_the_folder_it_was_given_and_not_what_is_put_in_its_place(
    folder: Path, writable: bool
) -> None:
    (folder / "sub/outside").mkdir()
    (folder / "sub/outside/a.txt").write_text("outside")
    (folder / "data").mkdir()
    (folder / "data/a.txt").write_text("data")
    shell(folder)
    tool = run_shell(folder / "data", writable=writable)
    (folder / "data").rename(folder / "old")
    (folder / "data").symlink_to("sub/outside")
    assert (await use(tool, "cat a.txt")).text == "data"
