"""What people do wrong on a command line: one line says what it is, and what to do next."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from everturn.cli import main, output

WRONG_WORDS = [
    ("dmo", "there is no command 'dmo'; did you mean demo? See `everturn --help`"),
    ("xyzzy", "there is no command 'xyzzy'; see `everturn --help`"),
    ("--verison", "there is no option '--verison'; did you mean --version? See `everturn --help`"),
    ("demo --fats", "everturn demo: there is no option '--fats'; did you mean --fast? See `everturn demo --help`"),
    ("demo --fats=1", "there is no option '--fats'; did you mean --fast?"),
    ("demo now", "'now' is an unexpected argument; see `everturn demo --help`"),
    ("sessions list", "there is no command 'list': `everturn sessions` alone lists; see `everturn sessions --help`"),
    ("restore bk", "there is no command 'restore'; did you mean backup restore? See `everturn --help`"),
    ("trust servers.toml", "there is no command 'trust'; did you mean mcp trust? See `everturn --help`"),
    ("erase lunch", "there is no command 'erase'; did you mean sessions erase or admin erase?"),
    ("run --modle x hi", "there is no option '--modle'; did you mean --model? See `everturn run --help`"),
    ("keys ad", "there is no command 'ad'; did you mean add? See `everturn keys --help`"),
    ("keys mend", "there is no command 'mend'; there are: add, list, revoke; see `everturn keys --help`"),
    ("keys add", "required: USER; see `everturn keys add --help`"),
    (
        "keys add a --role membr",
        "'membr' is not one of viewer, member, approver, owner, operator; did you mean member?",
    ),
    ("serve --port many", "'many' is not a whole number; see `everturn serve --help`"),
    ("serve --port 99999", "99999 is not a port; use 0 (any free port) to 65535"),
    ("sessions --limit 0", "0 is too small; use at least 1"),
    ("sessions shw lunch", "there is no command 'shw'; did you mean show?"),
    ("export", "required: SESSION; see `everturn export --help`"),
    ("import", "required: FILE; see `everturn import --help`"),
    ("completion bsh", "'bsh' is not one of bash, zsh, fish, tcsh, powershell; did you mean bash?"),
    ("mcp lst", "there is no command 'lst'; did you mean list? See `everturn mcp --help`"),
    ("mcp serve --modle x", "there is no option '--modle'; did you mean --model? See `everturn mcp serve --help`"),
    (
        "run --no-stdin --shell hi",
        "--shell took 'hi' as its folder, so there is no prompt; write the prompt first",
    ),
    ("permissions explain", "required: TOOL; see `everturn permissions explain --help`"),
]
NOT_THERE = [
    ("demo", "run `everturn demo --auto`"),
    (
        "sessions --store no.db",
        "there is no store no.db yet; `everturn`, `everturn run` and `everturn serve` create it, and --store names another",
    ),
    (
        "sessions --store postgresql+asyncpg://u:secret@h/d",
        "'postgresql+asyncpg://u:...@h/d' is not a store; write postgresql:// alone: Everturn has a driver",
    ),
    ("sessions --store what", "'what' is not a store; there are: a file such as talks.db"),
    ("sessions --store memory", "can be used only by its own process; name a file or a database with --store"),
    ("sessions --store broken.db", "broken.db"),
    ("sessions show lunch --store no.db", "there is no store no.db yet"),
    ("sessions --connect nowhere", "nowhere"),
    ("sessions --connect http://203.0.113.1", "needs a token: set EVERTURN_TOKEN"),
    ("sessions --connect http://127.0.0.1:1 --store a.db", "use one of them"),
    ("sessions --config no.toml", "no.toml: the configuration cannot be read"),
    ("sessions --config wrong.toml", "(and 1 more: `everturn config check wrong.toml` lists them)"),
    (
        "sessions --store postgresql://a@127.0.0.1:1/b",
        "no server answers at 127.0.0.1:1 (Connection refused); is it running, and is this its address?",
    ),
    ("ps --store no.db", "there is no store no.db yet"),
    (
        "ps --store postgresql://a@127.0.0.1:1/b",
        "no server answers at 127.0.0.1:1 (Connection refused); is it running, and is this its address?",
    ),
    ("export lunch --store no.db", "there is no store no.db yet"),
    ("import no.zip", "no.zip: there is no such file; `everturn export SESSION` creates one"),
    ("import .", ".: it is a folder; `everturn export SESSION` creates one"),
    ("keys list --store no.db", "there is no store no.db yet; `everturn`, "),
    ("login --store no.db", "there is no store no.db yet"),
    ("users list --store no.db", "there is no store no.db yet"),
    ("permissions check --permissions no.toml", "no.toml: the rules cannot be read"),
    ("permissions explain x --session y", "such as --store talks.db"),
    ("worker a:b --config c", "use one of them"),
    ("mcp list no.json", "there is no file no.json"),
    ("mcp", "which model? For example `everturn mcp serve --model openai:gpt-5.2`"),
]


@pytest.fixture(autouse=True)
def nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a broken store and a broken configuration, and a home without anything."""
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for name in ("EVERTURN_TOKEN", "EVERTURN_MODEL", "EVERTURN_CONFIG", "EVERTURN_DATABASE", "EVERTURN_STORE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "broken.db").write_text(
        "this is no database, and long enough to be seen as none" * 20, encoding="utf-8"
    )
    (tmp_path / "wrong.toml").write_text("[server]\nprot = 1\n[agents.a]\nmodel = 3\n", encoding="utf-8")


@pytest.mark.parametrize(("words", "expected"), [*WRONG_WORDS, *NOT_THERE])
def test_a_mistake_is_one_line_that_says_what_to_do(words: str, expected: str, capsys: pytest.CaptureFixture[str]):
    assert main(words.split()) == 2

    captured = capsys.readouterr()
    assert captured.out == ""
    assert expected in captured.err
    assert len(captured.err.splitlines()) == 1
    assert re.match(r"everturn[\w ]*: ", captured.err)


def test_what_is_not_installed_is_named_with_the_line_that_installs_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("everturn.cli.commands.serve.NEEDED", ("not_here_at_all",))
    assert main(["serve"]) == 2
    assert "not_here_at_all is not installed; `pip install 'everturn[server]'`" in capsys.readouterr().err
    monkeypatch.setattr("everturn.cli.commands.serve.NEEDED", ("not_here", "nor_this"))
    assert main(["serve"]) == 2
    assert "not_here, nor_this are not installed; `" in capsys.readouterr().err
    monkeypatch.setattr("everturn.cli.commands.completion.find_spec", lambda name: None)
    assert main(["completion", "bash"]) == 2
    assert capsys.readouterr().err.endswith("`pip install 'everturn[tui]'`\n")


def test_of_many_troubles_the_first_is_reported_and_how_many_there_are(capsys: pytest.CaptureFixture[str]):
    assert output.print_error("one\ntwo\nthree", 2) == 2
    assert capsys.readouterr().err == "everturn: one (and 2 more: `everturn config check` lists them)\n"
