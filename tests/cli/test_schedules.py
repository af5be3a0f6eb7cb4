"""`everturn schedules` on a store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from everturn.cli import main
from everturn.stores.sql.store import SqlStore


async def read(file: Path) -> None:
    store = SqlStore.sqlite(file)
    await store.sessions()
    await store.aclose()


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    await read(tmp_path / "a.db")
    return tmp_path / "a.db"


def run(capsys: pytest.CaptureFixture[str], file: Path, *words: str) -> tuple[int, str]:
    code = main(["schedules", *words, "--store", str(file)])
    shown = capsys.readouterr()
    return code, shown.out + shown.err


def test_create_list_pause_resume_run_show_delete(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, file)[1].startswith("no schedules yet")
    definition = ("--id", "report", "--cron", "0 9 * * 1", "--timezone", "Europe/Berlin", "Write it")
    code, output = run(capsys, file, "create", *definition)
    assert code == 0
    assert output.startswith("report: next at ")
    assert "09:00+0" in output
    assert "Write it" in run(capsys, file)[1]
    assert run(capsys, file, "pause", "report") == (0, "report: paused\n")
    assert run(capsys, file, "resume", "report")[1].startswith("report: next ")
    assert "starts it" in run(capsys, file, "run", "report")[1]
    shown = json.loads(run(capsys, file, "show", "report", "--json")[1])
    assert (shown["cron"], shown["runs"]) == ("0 9 * * 1", [])
    assert run(capsys, file, "delete", "report") == (0, "")
    assert run(capsys, file, "show", "report")[0] == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("create", "--cron", "0 9 * *", "x"), "five fields"),
        (("create", "x"), "cron"),
        (("create", "--at", "noon", "x"), "--at='noon'"),
        (("create", "--at", "2020-01-01T00:00:00+00:00", "x"), "in the past"),
        (("pause", "nobody"), "everturn schedules"),
        (("delete", "nobody"), "nobody"),
    ],
)
def test_a_mistake_is_one_line(
    file: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: str
) -> None:
    code, shown = run(capsys, file, *words)
    assert code == 2
    assert expected in shown
    assert len(shown.splitlines()) == 1
