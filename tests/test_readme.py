"""The first example a reader meets is a file that runs."""

import asyncio
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FIRST = ROOT / "docs_src" / "first.py"


def example() -> str:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(
        r"<!-- docs_src/first\.py -->\n```python\n(.*?)```\n<!-- /docs_src/first\.py -->", readme, re.DOTALL
    )
    return block


def test_the_example_in_the_readme_is_the_file() -> None:
    assert example() == FIRST.read_text(encoding="utf-8")


def test_the_example_runs_and_prints_what_the_docs_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "pasted.py"
    copy.write_text(example(), encoding="utf-8")
    asyncio.run(runpy.run_path(str(copy), run_name="example")["main"]())
    assert capsys.readouterr().out == FIRST.with_suffix(".txt").read_text(encoding="utf-8")
