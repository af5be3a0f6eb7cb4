from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from everturn.cli.commands.mcp import mcp
from tests.helpers.pseudo_terminal import Terminal
from tests.mcp_server.clients import AGENT, environment


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return _write(tmp_path)


def _write(folder: Path, *more: str, **env: str) -> Path:
    house = {"command": sys.executable, "args": [str(AGENT), *more], "env": {**environment(), **env}}
    dead = {"command": "/nowhere/at/all"}
    path = folder / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"house": house, "dead": dead}}), encoding="utf-8")
    return path


def _run(*words: str | Path) -> int:
    return mcp([str(word) for word in words])


def test_a_server_is_started_only_once_it_is_trusted_and_again_when_it_has_changed(
    file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    options = ("--trust-file", tmp_path / "trust.json")
    assert _run("list", file, *options) == 3
    output = capsys.readouterr().out
    assert "house was never trusted; it would run:" in output
    assert "not trusted, so it was not started" in output

    assert _run("trust", file, "house", "--yes", *options) == 0
    assert "house is trusted, with 6 tools" in capsys.readouterr().out
    assert _run("trust", file, "dead", "--yes", *options) == 2
    assert "could not be inspected, so nothing was trusted" in capsys.readouterr().err

    _run("list", file, *options)
    assert "ready, 6 tools\n    ask\n    look\n" in capsys.readouterr().out

    file = _write(tmp_path, "--name", "other", SECRET="0123-very-secret")
    assert _run("list", file, *options) == 3
    output = capsys.readouterr().out
    assert "house is not started or reached as it was; different: args, env SECRET" in output
    assert "--name other" in output
    assert "0123-very-secret" not in output + (tmp_path / "trust.json").read_text(encoding="utf-8")

    assert _run("trust", file, "house", "--forget", *options) == 0
    assert _run("trust", file, "other", *options) == 2
    assert "names no server 'other'; there are: house, dead" in capsys.readouterr().err


def test_where_there_is_nobody_to_ask_nothing_is_started(
    file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    assert _run("trust", file, "house", "--trust-file", tmp_path / "trust.json") == 2
    assert "pass --yes" in capsys.readouterr().err
    assert not (tmp_path / "trust.json").exists()


def test_what_is_missing_is_said_in_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.delenv("EVERTURN_MODEL", raising=False)
    assert _run() == 2
    assert "which model?" in capsys.readouterr().err
    assert _run("list", tmp_path / "none.json") == 2
    assert "there is no file" in capsys.readouterr().err
    assert _run("login", _write(tmp_path), "house") == 2
    assert "has no login" in capsys.readouterr().err
    captured = capsys.readouterr()
    assert captured.out == ""


def test_what_a_program_says_at_its_end_does_nothing_to_the_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    code = "import sys; sys.stderr.write('\\x1b[2Jall is well'); sys.exit(1)"
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"servers": {"evil": {"command": sys.executable, "args": ["-c", code]}}}), "utf-8")
    assert _run("trust", path, "evil", "--yes", "--trust-file", tmp_path / "trust.json") == 2
    captured = capsys.readouterr()
    assert r"it said: \x1b[2Jall is well" in captured.err
    assert "\x1b" not in captured.out + captured.err


def test_all_that_a_model_is_told_is_shown_before_it_is_trusted(
    file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    assert _run("trust", file, "house", "--yes", "--trust-file", tmp_path / "trust.json") == 0
    output = capsys.readouterr().out
    assert output.count("house was never trusted") == 1
    assert "new tool burn\n  description:\n    + " in output
    assert '  schema:\n    + {\n    +  "' in output


def test_ctrl_c_at_a_question_ends_it(file: Path, tmp_path: Path):
    words = ["-m", "everturn", "mcp", "trust", str(file), "house", "--trust-file", str(tmp_path / "trust.json")]
    terminal = Terminal([sys.executable, *words], {**environment(), "TERM": "xterm"})
    terminal.until("[y/N] ")
    assert terminal.interrupt_until_it_ends() == 130
    assert "Traceback" not in terminal.text
    assert not (tmp_path / "trust.json").exists()


def test_one_server_that_makes_no_sense_keeps_nobody_from_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.delenv("NOT_SET", raising=False)
    servers = {"wiki": {"command": "x", "env": {"A": "${NOT_SET}"}}, "other": {"command": "/nowhere/at/all"}}
    path, options = tmp_path / "servers.json", ("--trust-file", tmp_path / "trust.json")
    path.write_text(json.dumps({"servers": servers}), "utf-8")
    assert _run("list", path, *options) == 3
    output = capsys.readouterr().out
    assert "env.A: the variable NOT_SET is not set" in output
    assert f"not trusted, so it was not started: everturn mcp trust {path} other" in output
    assert _run("trust", path, "wiki", *options) == 2
    assert "the variable NOT_SET is not set" in capsys.readouterr().err
    assert _run("trust", path, "other", "--yes", *options) == 2
    assert "was not found; install it" in capsys.readouterr().err
