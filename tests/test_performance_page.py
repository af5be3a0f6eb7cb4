"""The performance page says what the benchmarks found, and describes the scenarios as they are."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ("deploy/engines", "deploy/scaling", "deploy/failure-tests", "deploy/rate-limits", "deploy/cells")
GUIDES = ("guides/schedules", "guides/webhooks")
PAGE = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
OTHERS = "".join((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in (*PAGES, *GUIDES))
BLOCKS = re.findall(r"<!-- (\w+) -->\n(.*?)<!-- /\1 -->", PAGE + OTHERS, re.DOTALL)
CAMPAIGN = re.compile(r"python -m (tools\.[\w.]+)")


def test_the_page_is_what_the_figures_give() -> None:
    subprocess.run([sys.executable, ROOT / "benchmarks" / "publish.py", "check"], check=True)


def test_every_table_names_the_commit_and_the_command_that_measured_it() -> None:
    for name, block in BLOCKS:
        if name == "scenarios":
            continue
        report = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))
        assert f"at commit {report['commit']}" in block
        assert report["command"] in block


def test_contributing_says_what_each_measured_campaign_must_show() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("### Campaigns")[2]
    modules = {module for _, block in BLOCKS for module in CAMPAIGN.findall(block)}
    assert modules, "no page has the figures of a campaign"
    for module in modules:
        assert f"| `{module.removeprefix('tools.chaos.')}` |" in table, module


def test_no_table_stands_outside_of_what_a_script_wrote() -> None:
    # A name with a hyphen is that of a page of results, which `tests/docs_src/test_campaign_tables.py` compares.
    outside = re.sub(r"<!-- ([\w-]+) -->\n.*?<!-- /\1 -->", "", PAGE, flags=re.DOTALL)
    assert "|" not in outside


@pytest.mark.parametrize("name", ["durable"])
def test_the_shape_of_a_durable_turn_is_what_the_page_says(name: str) -> None:
    text = (ROOT / "benchmarks" / f"{name}_side.py").read_text(encoding="utf-8")
    assert "ROUNDS, CALLS = 3, 3" in text
    assert "three rounds of one model message" in " ".join(PAGE.split())
