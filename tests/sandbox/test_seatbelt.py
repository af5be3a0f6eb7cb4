"""The sandbox of macOS, with a `sandbox-exec` of our own that reads the profile and has bubblewrap enforce it.

It was never run on a Mac. What these tests show is what Everturn does with what `sandbox-exec` says.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.helpers.fake_sandbox_exec import Fault, write_fake

from everturn.cli.commands import doctor
from everturn.cli.doctor.checks import render_checks
from everturn.config.folder.agent import make_folder_tools
from everturn.config.folder.project import Project
from everturn.config.load import load_config
from everturn.config.schema import AssistantTable
from everturn.core.options import TurnOptions
from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.core.requests import ToolSpec
from everturn.core.rules.policy import Rule
from everturn.errors import ConfigError, ToolError
from everturn.permissions.shell.command_line import read_command
from everturn.running.permissions import Permissions
from everturn.sandbox import available_sandboxes, check_shell, make_shell_sandbox, seatbelt
from everturn.sandbox.seatbelt import Seatbelt, broken_guarantees
from everturn.tools.code import code_tools
from everturn.tools.code.file_hashes import preview_files
from everturn.tools.code.path_policy import make_path_policy
from everturn.tools.code.shell import GitAccess, RunShell, run_shell, unproven_guarantees, why_shell_unavailable
from everturn.tools.files import PROTECTED

CONTEXT = ToolContext(session="s", turn="t", call="c", key="k", progress=lambda text: None)
AUTHOR = {f"GIT_{role}_{key}": "ada" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
Mac = Callable[[Fault], None]


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mac]:
    """Make this a Mac whose `sandbox-exec` has a fault, or none."""

    def pretend(fault: Fault) -> None:
        monkeypatch.setattr(sys, "platform", "darwin")
        monkeypatch.setattr(seatbelt, "SANDBOX_EXEC", write_fake(tmp_path / "sandbox-exec", fault))
        seatbelt.check.cache_clear()

    yield pretend
    seatbelt.check.cache_clear()


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix='a "quoted\\" (folder) ') as directory:
        path = Path(directory)
        subprocess.run(["git", "init", "-q", "-b", "main", directory], check=True)
        (path / "a.txt").write_text("a")
        (path / "sub").mkdir()
        (path / "sub/.env").write_text("SECRET=1")
        yield path


async def use(folder: Path, command: str, git: bool = False) -> Output:
    tool = run_shell(folder, writable=True, git=GitAccess(lambda text: git, AUTHOR))
    return await tool.run({"command": command}, CONTEXT)


@pytest.mark.live
def test_a_sandbox_that_holds_is_reported_and_the_shell_asks_as_everywhere(mac: Mac, folder: Path) -> None:
    mac("")
    report = check_shell()
    assert (report.backend, report.absent, report.holds) == ("seatbelt", "", {"files", "net", "env"})
    assert set(report.missing) == {"processes", "memory", "disk", "cpu", "syscalls"}
    assert unproven_guarantees() == ()
    tool = run_shell(folder)
    assert (tool.spec.approval, tool.spec.origin) == ("ask", "code:seatbelt")
    assert str(folder) in tool.spec.description
    assert "nothing is left running" not in tool.spec.description
    check = doctor.check_sandbox(report)
    assert (check.state, check.detail) == ("note", "files net env")
    assert "not memory: macOS has no control groups" in "\n".join(render_checks([check]))


@pytest.mark.live
@pytest.mark.parametrize(
    ("fault", "unproven", "why"),
    [
        ("open", ("files",), "files: could write outside of its folder"),
        ("net", ("net",), "net: could connect to a port of this machine"),
    ],
)
def test_where_the_probe_got_out_every_command_asks(
    mac: Mac, folder: Path, fault: Fault, unproven: tuple[str, ...], why: str
) -> None:
    mac(fault)
    assert set(unproven_guarantees()) >= set(unproven)
    assert why in why_shell_unavailable()
    assert why_shell_unavailable(unproven_guarantees()) == ""
    with pytest.raises(ConfigError, match="run_shell cannot be offered here"):
        run_shell(folder)
    for approval in ("auto", "ask", "always"):
        assert run_shell(folder, approval=approval, allow_degraded=unproven_guarantees()).spec.approval == "always"
    assert run_shell(folder, approval="deny", allow_degraded=unproven_guarantees()).spec.approval == "deny"
    assert "run_shell" not in [tool.spec.name for tool in code_tools(folder=folder, python=False, javascript=False)]
    check = doctor.check_sandbox(check_shell())
    assert check.state == "broken"
    assert "every command asks" in check.fix


@pytest.mark.live
def test_where_sandbox_exec_runs_nothing_there_is_no_shell(mac: Mac, folder: Path) -> None:
    mac("refuses")
    assert "sandbox_apply: Operation not permitted" in why_shell_unavailable()
    assert unproven_guarantees() == (), "commands could not run, so nobody is asked"
    with pytest.raises(ConfigError, match="does not run commands with the profile"):
        run_shell(folder, allow_degraded=("files", "net", "env"))


def test_without_sandbox_exec_there_is_no_shell(mac: Mac, monkeypatch: pytest.MonkeyPatch) -> None:
    mac("")
    monkeypatch.setattr(seatbelt, "SANDBOX_EXEC", "/nonexistent/sandbox-exec")
    assert "there is no /nonexistent/sandbox-exec" in why_shell_unavailable()


def test_the_sandbox_is_chosen_by_platform(mac: Mac, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert seatbelt.check().absent == "Seatbelt is part of macOS"
    assert check_shell().backend == "bubblewrap"
    assert make_shell_sandbox(None).mount == "/work"
    mac("refuses")
    assert check_shell().backend == "seatbelt"
    assert isinstance(make_shell_sandbox(tmp_path), Seatbelt)
    assert available_sandboxes()[0].backend == "seatbelt"
    names = doctor.machine.needed_programs()
    assert "bwrap" not in names
    assert "git" in names


WELL = frozenset({"fact ran", "fact inside", "fact temporary", "env PATH"})
FREE = WELL | {f"fact {fact}" for fact in seatbelt.ATTACKS} | {f"env {seatbelt.SECRET_VARIABLE}"}


def test_a_probe_that_was_refused_everything_holds() -> None:
    assert broken_guarantees(FREE, WELL) == seatbelt.NOT_HERE


@pytest.mark.parametrize("fact", seatbelt.ATTACKS)
def test_what_the_probe_could_do_breaks_a_guarantee_and_so_does_a_control_that_could_not(fact: str) -> None:
    guarantee, problem = seatbelt.ATTACKS[fact]
    assert broken_guarantees(FREE, WELL | {f"fact {fact}"})[guarantee] == problem
    assert "nothing is shown" in broken_guarantees(FREE - {f"fact {fact}"}, WELL)[guarantee]


def test_a_variable_that_is_seen_and_work_that_is_refused_are_reported() -> None:
    assert broken_guarantees(FREE, WELL | {"env OPENAI_API_KEY"})["env"] == "could see the variables OPENAI_API_KEY"
    assert "nothing is shown" in broken_guarantees(WELL | FREE - {f"env {seatbelt.SECRET_VARIABLE}"}, WELL)["env"]
    for fact in ("inside", "temporary"):
        assert f"{fact} is refused" in broken_guarantees(FREE, WELL - {f"fact {fact}"})["files"]


@pytest.mark.live
async def test_a_command_works_in_its_folder_and_not_outside(mac: Mac, folder: Path) -> None:
    mac("")
    outside = folder.parent / f"everturn-{os.getpid()}"
    output = await use(
        folder, f"pwd; cat a.txt; echo b > b.txt; ls; echo x > {outside}; cat sub/.env; mv sub other; exit 3"
    )
    assert (folder / "b.txt").read_text() == "b\n"
    assert str(folder) in output.text
    assert not outside.exists()
    assert "SECRET" not in output.text
    assert (folder / "sub").is_dir()
    assert "[exit 3]" in output.text
    assert output.metadata is not None
    assert output.metadata["guarantees"] == ["files", "net", "env"]
    assert str(output.metadata["sandbox"]).startswith("seatbelt")


@pytest.mark.live
async def test_git_commits_only_in_a_command_that_may_and_never_changes_hooks(mac: Mac, folder: Path) -> None:
    mac("")

    def log() -> str:
        words = ["git", "-c", "safe.directory=*", "log", "--format=%s"]
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False).stdout

    await use(folder, "git add a.txt; git commit -qm no")
    assert log() == ""
    output = await use(folder, "git add a.txt && git commit -qm one && git status --short", git=True)
    assert log() == "one\n", output.text
    await use(folder, "echo x > .git/hooks/pre-commit; git config alias.x '!id'; mv .git/hooks .git/old", git=True)
    assert not (folder / ".git/hooks/pre-commit").exists()
    assert "alias" not in (folder / ".git/config").read_text()


@pytest.mark.live
async def test_settings_of_a_repository_are_read_unless_they_hold_a_secret(mac: Mac, folder: Path) -> None:
    mac("")
    assert "bare = false" in (await use(folder, "cat .git/config")).text
    for line in ("url = https://ada:word@example.com/x", "url = https://t0ken@example.com/x", "extraHeader = X: word"):
        config = f'[core]\n\tbare = false\n[remote "origin"]\n\t{line}\n'
        (folder / ".git/config").write_text(config)
        assert "example" not in (text := (await use(folder, "cat .git/config")).text)
        assert "word" not in text
    (folder / ".git/config").write_text('[remote "origin"]\n\turl = ssh://git@example.com/x\n[branch "token"]\n')
    assert "example" in (await use(folder, "cat .git/config")).text


@pytest.mark.live
async def test_what_a_command_makes_that_programs_obey_is_moved_away(
    mac: Mac, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mac("")
    monkeypatch.delattr(os, "O_PATH")
    output = await use(folder, "mkdir -p deep/.vscode && echo x > deep/.vscode/tasks.json && chmod 0 deep/.vscode")
    assert output.metadata is not None
    assert output.metadata["quarantined"] == ["deep/.vscode"]
    assert not (folder / "deep/.vscode").exists()


@pytest.mark.live
def test_a_command_ends_with_what_it_started(mac: Mac, folder: Path) -> None:
    mac("open")  # without a PID namespace, as on a Mac
    sandbox = Seatbelt(folder, writable=True)
    result = sandbox.run_program(["/bin/bash", "-c", "(sleep 2; touch late) & echo begun"], seconds=20)
    assert (result.exit, result.stdout, result.killed) == (0, "begun\n", "")
    ended = sandbox.run_program(["/bin/bash", "-c", "(sleep 2; touch late) & sleep 20"], seconds=0.5)
    assert ended.killed == "time"
    sandbox.run_program(["/bin/sleep", "3"], seconds=20)
    assert not (folder / "late").exists()


@pytest.mark.live
def test_a_command_has_a_time_its_input_and_an_empty_folder(mac: Mac, folder: Path) -> None:
    mac("")
    sandbox = Seatbelt(folder, writable=True)
    assert sandbox.run_program(["/bin/sleep", "20"], seconds=0.3).killed == "time"
    assert sandbox.run_program(["/bin/cat"], stdin="typed", seconds=20).stdout == "typed"
    assert sandbox.run_program(["/bin/bash", "-c", "kill -9 $$"], seconds=20).exit == 137
    scratch = sandbox.run_program(["/bin/bash", "-c", "echo $TMPDIR; touch $TMPDIR/x; ls $HOME"], seconds=20).stdout
    assert scratch.splitlines()[1] == "x"
    assert not os.path.exists(scratch.splitlines()[0])


@pytest.mark.live
def test_links_above_the_folder_are_resolved(mac: Mac, folder: Path, tmp_path: Path) -> None:
    mac("")
    (tmp_path / "link").symlink_to(folder)
    sandbox = Seatbelt(tmp_path / "link", writable=True, path_policy=make_path_policy(PROTECTED))
    assert sandbox.mount == str(folder.resolve())
    result = sandbox.run_program(["/bin/bash", "-c", "echo x > new; cat sub/.env"], seconds=20)
    assert (folder / "new").exists()
    assert result.stdout == ""


def test_a_folder_that_was_replaced_is_not_used(mac: Mac, tmp_path: Path) -> None:
    mac("")
    (tmp_path / "folder").mkdir()
    sandbox = Seatbelt(tmp_path / "folder")
    (tmp_path / "folder").rename(tmp_path / "old")
    (tmp_path / "folder").symlink_to("/etc")
    with pytest.raises(ToolError, match="was moved or replaced"):
        sandbox.run_program(["/bin/true"])


@pytest.mark.parametrize("name", ["a\nb", "a\x1bb"])
def test_a_folder_whose_name_cannot_be_in_a_profile_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(ConfigError, match="choose another folder"):
        Seatbelt(tmp_path / name)


@pytest.mark.live
async def test_a_protected_file_whose_name_cannot_be_in_a_profile_stops_the_command(mac: Mac, folder: Path) -> None:
    mac("")
    (folder / '.env\n")(allow default)').write_text("SECRET=1")
    with pytest.raises(ToolError, match="rename it"):
        await use(folder, "cat .env*")


@pytest.mark.live
@pytest.mark.parametrize(
    ("fault", "note", "listing", "commit"),
    [
        ("", "", "allow", "ask"),
        ("open", "so every command asks: files: could write outside of its folder", "ask", "ask"),
        ("refuses", "there is no shell: ", "", ""),
    ],
)
def test_the_assistant_of_a_folder(
    mac: Mac, folder: Path, tmp_path: Path, fault: Fault, note: str, listing: str, commit: str
) -> None:
    mac(fault)
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    folder_tools = make_folder_tools(Project(folder, folder, is_git=True), AssistantTable(), load_config(None), environ)
    assert [text for text in folder_tools.notes if "shell" in text and note in text] != [] or note == ""
    shells = [tool for tool in folder_tools.tools if isinstance(tool, RunShell)]
    assert len(shells) == (1 if listing else 0)
    everything = Rule("run_shell", "allow", {"command": "*"})
    for shell in shells:
        permissions = Permissions([*folder_tools.rules, everything])

        def decide(line: str, spec: ToolSpec = shell.spec, permissions: Permissions = permissions) -> str:
            cases = [{"command": subject} for subject in read_command(line)]
            return permissions.decide_cases(spec, cases, TurnOptions()).action

        assert (decide("ls -la"), decide("git commit -m x")) == (listing, commit)
        assert decide("make") == listing, "allowed by the person's own rule, if the sandbox holds"


async def test_files_are_named_by_their_own_path_in_a_command(tmp_path: Path) -> None:
    (tmp_path / "build.sh").write_text("make")
    cases = [{"command": subject} for subject in read_command(f"sh {tmp_path}/build.sh")]
    assert "build.sh" in preview_files(str(tmp_path), cases, str(tmp_path)).base_version
    assert "build.sh" not in preview_files(str(tmp_path), cases).base_version
