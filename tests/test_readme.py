"""The first example a reader meets is a file that runs."""

import asyncio
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FIRST = ROOT / "docs_src" / "get_started" / "hello.py"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_and_prints_what_the_readme_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code, printed) = re.findall(r"```(?:python|text)\n(.*?)```", README, re.DOTALL)[:2]
    copy = tmp_path / "pasted.py"
    copy.write_text(code, encoding="utf-8")
    asyncio.run(runpy.run_path(str(copy), run_name="example")["main"]())
    assert capsys.readouterr().out == printed == FIRST.with_suffix(".txt").read_text(encoding="utf-8")


def test_each_row_of_the_comparison_has_a_cell_for_each_product() -> None:
    (table,) = re.findall(r"^\| \| Everturn \|.*?\n\n", README, re.DOTALL | re.MULTILINE)
    assert {line.count("|") for line in table.strip().splitlines()} == {9}
