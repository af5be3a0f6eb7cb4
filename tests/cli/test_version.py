"""`everturn version`: one line, or all that a report of a bug needs."""

from __future__ import annotations

import json
import platform

import pytest

from everturn import __version__
from everturn.cli import main
from everturn.cli.commands import version


@pytest.mark.parametrize("words", [["version"], ["--version"]])
def test_it_is_one_line(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(words) == 0
    assert capsys.readouterr().out == f"everturn {__version__}\n"


def test_as_json_it_says_what_it_runs_on(capsys: pytest.CaptureFixture[str]):
    assert main(["version", "--json"]) == 0

    report = json.loads(capsys.readouterr().out)
    assert (report["everturn"], report["python"]) == (__version__, platform.python_version())
    assert {"server", "mcp"} <= set(report["extras"])


def test_an_extra_counts_when_all_of_it_is_there(monkeypatch: pytest.MonkeyPatch):
    lines = [
        "msgspec>=0.19",
        "msgspec; extra == 'whole'",
        "nothing-of-this-name>=1; extra == 'half'",
        "msgspec; extra == 'half'",
        "everturn[whole]; extra == 'all'",
    ]
    monkeypatch.setattr("importlib.metadata.requires", lambda name: lines)

    assert version.extras() == ["whole"]
