"""What a chat may reach: folders, files of its own, sandboxes, servers; and what was done to files is taken back."""

import json
import os
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from tests.terminal.chat_process import PROMPT, Start, ask, one_line, pipe

from everturn.errors import ConfigError
from everturn.mcp import ServerStatus
from everturn.terminal.text.local_tools import (
    POLL_INTERVAL,
    LocalToolOptions,
    LocalTools,
    _protected,
    build_local_tools,
)
from everturn.tools.files import files as file_tools

ASKED = "[?] help\n> "
YES_NO = "[y] yes   [n] no > "
EVIL = "\x1b[2J\u202e\u3164evil, +9 −9"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the tester's is read or written."""
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for place in ("tests.terminal.conftest.PLAIN", "tests.terminal.chat_process.PLAIN"):
        from tests.terminal import chat_process

        monkeypatch.setattr(place, chat_process.PLAIN | environment)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("a\n", encoding="utf-8")
    return project


# Files


def test_a_step_that_changed_files_is_told_listed_reverted_and_unreverted(start: Start, folder: Path):
    terminal = start("--files", str(folder))
    notes = folder / "notes.txt"
    assert "no step of this conversation has changed files" in ask(terminal, "/files")
    assert "there is nothing to revert" in ask(terminal, "/revert 1")
    assert "nothing was reverted in this conversation" in ask(terminal, "/unrevert")
    for line in ("write", "edit"):
        terminal.type(line + "\n")
        terminal.until(ASKED)
        assert "  which would do this:\n" in terminal.text
        shown = ask(terminal, "y")
    assert "    │ -two\n    │ +2\n" in terminal.text
    assert "± 1 file: notes.txt +1 −1\nada read" in shown  # before what the next step says
    assert "± 1  1 file: notes.txt new +2\n± 2  1 file: notes.txt +1 −1\n" in ask(terminal, "/files")
    (folder / "by-hand.txt").write_text("mine\n", encoding="utf-8")

    terminal.type("/revert 2\n")
    terminal.until(YES_NO)
    assert "± by-hand.txt gone\n± notes.txt +1 −1\n? 2 files would change like this; let them be" in terminal.text
    assert "nothing was changed" in ask(terminal, "")
    assert notes.read_text(encoding="utf-8") == "one\n2\n"
    terminal.type("/revert 1\n")
    terminal.until(YES_NO)
    assert "reverted to before step 1" in ask(terminal, "y")
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt"]
    terminal.type("/unrevert\n")
    terminal.until(YES_NO)
    ask(terminal, "y")
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "by-hand.txt", "notes.txt"]
    assert notes.read_text(encoding="utf-8") == "one\n2\n"
    for wrong in ("/revert", "/revert 3", "/revert 0", "/revert x", f"/revert {'9' * 5000}"[:900]):
        assert "takes the number of a step, 1 to 2" in one_line(ask(terminal, wrong))


def test_ctrl_c_at_the_question_changes_nothing_and_the_chat_goes_on(start: Start):
    terminal = start("--virtual-files")
    assert "± 1 file: notes.txt new +2\n" in ask(terminal, "write")
    terminal.type("/revert 1\n")
    terminal.until(YES_NO)
    terminal.interrupt()
    terminal.until(PROMPT)
    assert "nothing was changed" in terminal.text

    terminal.type("/revert 1\n")
    terminal.until(YES_NO)
    assert "± notes.txt gone\n" in terminal.text
    ask(terminal, "y")
    assert "like that already" in ask(terminal, "/revert 1")


def test_a_hostile_name_of_a_file_stays_a_name(start: Start, folder: Path):
    terminal = start("--files", str(folder))
    ask(terminal, "hello")
    terminal.type("write\n")
    terminal.until(ASKED)
    (folder / EVIL).write_text("x\n", encoding="utf-8")
    shown = ask(terminal, "y")

    assert '± 2 files: "\\x1b[2J\\u202e\\u3164evil, +9 −9" new +1, notes.txt new +2' in one_line(shown)
    terminal.type("/revert 1\n")
    terminal.until(YES_NO)
    after = terminal.text.partition("± 2 files")[2]
    assert '± "\\x1b[2J\\u202e\\u3164evil, +9 −9" gone\n' in after
    assert "\x1b[2J" not in after
    assert "\u202e" not in after
    assert "\u3164" not in after


def test_a_folder_that_is_only_read_has_no_tools_that_write(start: Start, folder: Path):
    shown = ask(start("--files", f"{folder}:ro"), "/tools")

    assert f"· read_file       files:{folder}" in shown.replace("\n                  ", "")
    assert "write_file" not in shown


def test_where_no_snapshots_can_be_taken_that_is_said_and_files_can_be_worked_on(start: Start, folder: Path):
    terminal = start("--files", str(folder), XDG_STATE_HOME=str(folder / "state"))

    assert "no snapshots are taken, so that /revert cannot take back" in one_line(terminal.text)
    assert "write_file" in ask(terminal, "/tools")


def test_a_pipe_neither_reverts_nor_draws_what_changed(folder: Path):
    done = pipe("write\n/files\n/revert 1\n", "--virtual-files", cwd=folder)

    assert done.stdout == "ada read [\"'notes.txt' was created: 2 lines added, 0 removed\"]\n"
    assert "everturn: 1  1 file: notes.txt new +2\n" in done.stderr
    assert "/revert works only in a terminal; it asks before it changes files" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("reach", "expected"),
    [
        (LocalToolOptions(files="nowhere"), "--files nowhere: there is no such folder"),
        (LocalToolOptions(files="nowhere:ro"), "--files nowhere: there is no such folder"),
        (LocalToolOptions(files=__file__), "it is not a folder"),
        (LocalToolOptions(files=".", virtual=True), "use one of them"),
        (LocalToolOptions(mcp=("nowhere.json",)), "there is no file nowhere.json"),
    ],
)
async def test_what_cannot_be_reached_is_a_line_that_says_so(reach: LocalToolOptions, expected: str):
    with pytest.raises(ConfigError) as error:
        await build_local_tools(reach, print, None)

    assert expected in str(error.value)
    assert "\n" not in str(error.value)


async def test_our_own_tokens_and_the_files_that_name_servers_are_kept_from_a_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "settings [x]*"))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "kept"))
    protection = _protected(folder, (str(folder / "my-servers.json"), "/elsewhere/servers.json"))
    assert protection.matching_pattern("settings [x]*/everturn/mcp-tokens/far.json", writing=False)
    assert protection.matching_pattern("kept/everturn/snapshots/a", writing=False)
    assert protection.matching_pattern("my-servers.json", writing=True)
    assert not protection.matching_pattern("my-servers.json", writing=False)
    assert not protection.matching_pattern("settings [x]y/everturn/a", writing=True)
    assert not protection.matching_pattern("servers.json", writing=True)

    options: dict[str, Any] = {}
    monkeypatch.setattr(
        "everturn.tools.files.files", lambda root, **more: options.update(more) or file_tools(root, **more)
    )
    await build_local_tools(LocalToolOptions(files=str(folder)), print, None)
    assert "kept/everturn" in options["protect"].secrets


# Code


async def test_of_what_runs_code_only_that_is_offered_whose_promises_hold(monkeypatch: pytest.MonkeyPatch):
    from everturn.sandbox import monty
    from everturn.tools.code import javascript, shell

    messages: list[str] = []
    monkeypatch.setattr(javascript, "why_javascript_unavailable", lambda: "memory: it leaks")
    monkeypatch.setattr(monty, "check", lambda: Holds(""))
    monkeypatch.setattr("everturn.tools.code.python.run_python", lambda: "python")
    assert (await build_local_tools(LocalToolOptions(code=True), messages.append, None)).tools == ["python"]
    assert messages == ["run_javascript is not offered: memory: it leaks"]

    monkeypatch.setattr(monty, "check", lambda: Holds("pip install 'everturn[code]'"))
    with pytest.raises(ConfigError, match=r"run_python is not offered: pip install .*it leaks"):
        await build_local_tools(LocalToolOptions(code=True), messages.append, None)
    monkeypatch.setattr(shell, "why_shell_unavailable", lambda: "there is no `bwrap`")
    with pytest.raises(ConfigError, match="run_shell cannot guarantee its limits on this machine: there is no `bwrap`"):
        await build_local_tools(LocalToolOptions(shell=""), messages.append, None)


async def test_a_shell_that_may_write_around_the_folder_of_the_file_tools_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    from everturn.tools.code import shell

    monkeypatch.setattr(shell, "why_shell_unavailable", lambda: "")
    monkeypatch.setattr(shell, "run_shell", lambda *words, **more: (words, more))
    around = str(folder.parent)
    for files in (str(folder), f"{folder}:ro"):
        with pytest.raises(ConfigError, match="could put another folder in the place of"):
            await build_local_tools(LocalToolOptions(files=files, shell=f"{around}:rw"), print, None)
        found = await build_local_tools(LocalToolOptions(files=files, shell=around), print, None)
        assert found.tools[-1] == ((folder.parent,), {"writable": False})
    both = await build_local_tools(LocalToolOptions(files=str(folder), shell=f"{folder}:rw"), print, None)
    assert both.tools[-1] == ((folder,), {"writable": True})
    assert list(both.snapshots) == ["work"]
    alone = await build_local_tools(LocalToolOptions(shell=f"{folder}:rw"), print, None)
    assert list(alone.snapshots) == ["shell"]  # what commands write is taken back as well


class Holds:
    """A report."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def explain_missing(self, needs: object) -> str:
        return self.reason


async def test_a_missing_extra_for_servers_is_reported_with_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("everturn.terminal.text.local_tools.find_spec", lambda name: None)

    with pytest.raises(ConfigError, match=r"pip install 'everturn\[mcp\]'"):
        await build_local_tools(LocalToolOptions(mcp=("servers.json",)), print, None)


# Servers


@pytest.fixture
def servers(tmp_path: Path) -> Path:
    """A file that names a server; it notes that it was started."""
    where = Path(__file__).parents[1] / "helpers" / "hostile_mcp_server.py"
    words = ["-S", str(where), str(tmp_path / "ledger"), "plain", "two  blanks\u202e"]
    row = {"command": sys.executable, "args": words}
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"house": row}}), encoding="utf-8")
    return path


def test_a_server_is_shown_exactly_and_asked_about_before_it_is_started(start: Start, servers: Path, tmp_path: Path):
    terminal = start("--mcp", str(servers), until=YES_NO, COLUMNS="600")
    trust = tmp_path / "config" / "everturn" / "mcp-trust.json"
    assert f"    {sys.executable} -S " in terminal.text
    assert f"'two  blanks\\u202e' (in {tmp_path})\n? start house, and trust it as it is now?\n" in terminal.text
    assert "house was not started, and its tools are not offered" in ask(terminal, "n")
    assert "× mcp:house is untrusted" in ask(terminal, "/tools")
    assert not trust.exists()

    terminal = start("--mcp", str(servers), until=YES_NO, COLUMNS="300")
    terminal.type("y\n")
    terminal.until(YES_NO)  # now with all that a model would be told
    assert "new tool echo\n    │   description:\n    │     + It does echo.\n    │   schema:\n" in terminal.text
    assert '    │     +  "readOnlyHint": true\n' in terminal.text
    assert "? trust house with its tools as they are now?\n" in terminal.text
    assert not trust.exists()
    assert "house is trusted, with its tools: echo, slow" in ask(terminal, "y")
    assert trust.exists()


def test_what_a_server_asks_in_the_middle_of_a_call_is_answered_at_the_terminal(start: Start, servers: Path):
    terminal = start("--mcp", str(servers), until=YES_NO)
    terminal.type("y\n")
    terminal.until(YES_NO)
    ask(terminal, "y")
    assert "✓ mcp:house is ready, 25 tools" in ask(terminal, "/tools")
    terminal.type("elicit\n")
    for key in ("y", "f"):
        terminal.until(ASKED)
        terminal.type(key + "\n")
    terminal.until("Ctrl-D: back\n> ")
    assert "  your answer goes to: mcp:house\n    Server house asks: who?\n" in terminal.text
    terminal.type("Ada\n")
    terminal.until(ASKED)

    assert '✓ house_ask  {"action": "accept", "content": {"name": "Ada"}}' in ask(terminal, "y")


class Coming:
    """Servers, of which one is on its way for so many looks."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def status(self) -> list[ServerStatus]:
        self.left -= 1
        return [ServerStatus("dead", "down"), ServerStatus("slow", "ready" if self.left < 0 else "connecting")]


async def test_servers_that_are_on_their_way_are_waited_for_and_not_for_ever():
    quick, never = Coming(3), Coming(1_000_000)
    await LocalTools(servers=cast("Any", quick)).wait_for_servers(60.0)
    await LocalTools(servers=cast("Any", never)).wait_for_servers(4 * POLL_INTERVAL)
    await LocalTools().wait_for_servers(60.0)

    assert (quick.left, never.left) == (-1, 1_000_000 - 4)


def test_a_pipe_is_told_how_to_trust_a_server_and_nothing_is_started(servers: Path, tmp_path: Path):
    done = pipe("hello\n", "--mcp", str(servers))

    assert (done.returncode, done.stdout) == (1, "")
    assert f"everturn mcp trust {servers} house" in done.stderr
    assert r"blanks\u202e" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert os.listdir(tmp_path) == ["servers.json"]


def test_without_tools_it_is_said_how_to_have_some(start: Start):
    assert "--tools FILE, --files DIR" in one_line(ask(start(), "/tools"))
