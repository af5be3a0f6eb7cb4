"""The performance page says what the benchmarks found, and describes the scenarios as they are."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
ENGINES = (ROOT / "docs" / "deploy" / "engines.md").read_text(encoding="utf-8")
SCALING = (ROOT / "docs" / "deploy" / "scaling.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"<!-- (\w+) -->\n(.*?)<!-- /\1 -->", PAGE + ENGINES + SCALING, re.DOTALL)


def test_the_page_is_what_the_figures_give() -> None:
    subprocess.run([sys.executable, ROOT / "benchmarks" / "publish.py", "check"], check=True)


def test_every_table_names_the_commit_and_the_command_that_measured_it() -> None:
    for name, block in BLOCKS:
        if name == "scenarios":
            continue
        kept = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))
        assert f"at commit {kept['commit']}" in block
        assert kept["command"] in block


def test_no_table_stands_outside_of_what_a_script_wrote() -> None:
    outside = re.sub(r"<!-- (\w+) -->\n.*?<!-- /\1 -->", "", PAGE, flags=re.DOTALL)
    assert "|" not in outside


@pytest.mark.parametrize("name", ["durable"])
def test_the_shape_of_a_durable_turn_is_what_the_page_says(name: str) -> None:
    text = (ROOT / "benchmarks" / f"{name}_side.py").read_text(encoding="utf-8")
    assert "ROUNDS, CALLS = 3, 3" in text
    assert "three rounds of one model message" in " ".join(PAGE.split())
