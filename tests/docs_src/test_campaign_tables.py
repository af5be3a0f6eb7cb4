"""Tables of campaigns in the docs are those of their pages of results."""

from __future__ import annotations

import pytest

from tools.docs_table import DOCS, replace_table
from tools.environment import ROOT

TABLES = {
    "terminal/first-run.md": "first_run",
    "terminal/folder.md": "real_job",
    "performance.md": "first-screen",
    "guides/tool-search.md": "tool_search",
}


@pytest.mark.parametrize("page", TABLES)
def test_the_table_of_a_page_is_the_one_that_the_campaign_wrote(page: str) -> None:
    text, name = (DOCS / page).read_text(encoding="utf-8"), TABLES[page]
    results = (ROOT / "benchmarks" / "results" / f"{name}.md").read_text(encoding="utf-8")
    assert replace_table(text, name, results) == text


def test_a_page_without_a_place_for_its_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 places"):
        replace_table("no comments", "first_run", "a\n\nb")
