"""`everturn eval`: exit codes, reports, datasets from a store; and the examples of this repository, evaluated."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from everturn import Chat
from everturn.cli import main
from everturn.evals.report_formats import from_json
from everturn.testing import ScriptedModel, say
from tests.evals.shop import QUESTION, Shop, record_refund, refund_script

ROOT = Path(__file__).parents[2]
DENY = '[[permissions]]\ntool = "refund"\naction = "deny"\n'


async def saved(path: Path) -> Path:
    (await record_refund()).write(path)
    return path


@pytest.fixture
async def recording(tmp_path: Path) -> Path:
    return await saved(tmp_path / "data" / "refund.jsonl")


@pytest.mark.parametrize("depth", ["pure", "turn"])
def test_the_examples_pass(depth: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(ROOT / "examples"), "--depth", depth]) == 0
    output = capsys.readouterr().out
    assert f"7 cases at depth {depth}: 7 passed" in output


def test_the_dataset_of_the_guide_passes_on_the_support_bot(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "support-bot" / "recorded" / "refund.jsonl", tmp_path)
    shutil.copy(ROOT / "docs_src" / "guides" / "evals_dataset.toml", tmp_path / "dataset.toml")
    assert main(["eval", str(tmp_path), "--depth", "turn", "-q"]) == 0
    (tmp_path / "deny.toml").write_text(DENY)
    assert main(["eval", str(tmp_path), "--permissions", str(tmp_path / "deny.toml"), "-q"]) == 1
    assert main(["eval", str(tmp_path), "--permissions", str(tmp_path / "deny.toml"), "--depth", "turn", "-q"]) == 2


def test_a_change_file_and_reports(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rules.toml").write_text(DENY)
    (tmp_path / "change.toml").write_text('permissions = "rules.toml"\n')
    reports = [tmp_path / "out" / f"report{ending}" for ending in (".json", ".xml", ".md", ".html")]
    options = [word for file in reports for word in ("--report", str(file))]
    assert main(["eval", str(recording.parent), "--change", str(tmp_path / "change.toml"), *options]) == 1
    assert "would be denied" in capsys.readouterr().out
    assert all(file.stat().st_size for file in reports)
    report = from_json(reports[0].read_bytes())
    assert report.cases[0].status == "failed"
    assert main(["eval", str(recording.parent), "--against", str(reports[0]), "-q"]) == 0
    assert "difference to another report: +1.000" in capsys.readouterr().out


@pytest.mark.parametrize("depth", ["pure", "step", "turn"])
def test_changed_instructions_that_no_model_reads_are_reported_as_not_tested(
    recording: Path, tmp_path: Path, depth: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shorter.md").write_text("Be brief.")
    options = ["--depth", depth, "--system-file", str(tmp_path / "shorter.md"), "-q"]
    assert main(["eval", str(recording.parent), *options]) == 0
    output = capsys.readouterr().out
    assert f"1 case at depth {depth}: 1 passed" in output
    assert "NOT TESTED: the changed instructions" in output
    assert main(["eval", str(recording.parent), "-q"]) == 0
    assert "NOT TESTED" not in capsys.readouterr().out


async def test_sessions_of_a_store_become_a_dataset(tmp_path: Path) -> None:
    import asyncio

    store, folder = str(tmp_path / "talks.db"), tmp_path / "refunds"
    async with Chat(ScriptedModel(*refund_script()), tools=Shop("auto").tools, store=store, session="s-1") as chat:
        await (await chat.send(QUESTION))
    words = ["eval", "make", "--session", "s-1", "-o", str(folder), "--store", store]
    assert await asyncio.to_thread(main, words) == 0
    assert await asyncio.to_thread(main, ["eval", str(folder), "--depth", "turn"]) == 0


def test_a_run_is_kept_and_shown_as_branches(recording: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "compare.db")
    words = ["eval", str(recording.parent), "--depth", "turn", "--run", str(tmp_path / "run"), "--branches", store]
    assert main(words) == 0
    assert main(["sessions", "show", "eval-refund", "--store", store]) == 0


@pytest.mark.parametrize(
    "words",
    [
        ["eval", "missing"],
        ["eval", "make"],
        ["eval", "DATA", "--report", "report.pdf"],
        ["eval", "DATA", "--session", "x"],
        ["eval", "DATA", "--branches", "x.db"],
        ["eval", "DATA", "--depth", "live"],
        ["eval", "DATA", "--against", "missing.json"],
        ["eval", "DATA", "--change", "missing.toml"],
        ["eval", "DATA", "--fork-at", "1"],
        ["eval", "DATA", "-k", "0"],
        ["eval", "DATA", "--report", "/proc/nowhere/report.html"],
    ],
    ids=" ".join,
)
def test_what_cannot_run_has_its_own_exit_code(recording: Path, words: list[str]) -> None:
    assert main([str(recording.parent) if word == "DATA" else word for word in words]) == 3


async def test_rated_answers_of_a_store_become_a_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, folder = str(tmp_path / "talks.db"), tmp_path / "complaints"
    async with Chat(ScriptedModel(say("Rome.")), store=store, session="s-1") as chat:
        await (await chat.send("France?"))
        await chat.rate((await chat.messages())[-1], "down", reason="wrong", by="ada")
    words = ["eval", "make", "--rated", "down", "-o", str(folder), "--store", store]
    assert await asyncio.to_thread(main, words) == 0
    assert "reported: wrong" in (folder / "dataset.toml").read_text()
    assert await asyncio.to_thread(main, ["eval", "make", "--rated", "up", "-o", str(folder), "--store", store]) == 3
    assert await asyncio.to_thread(main, [*words, "--turn", "last"]) == 3
    assert "leave one out" in capsys.readouterr().err
