"""Tables of campaigns on pages of the docs: written by the program that measured, between two comments."""

from __future__ import annotations

import re

from tools.environment import ROOT

DOCS = ROOT / "docs"


def write_docs_table(page: str, name: str, results: str) -> None:
    """Write the last two blocks of the first section of a page of results, its conditions and its table, into a page of the docs."""
    path = DOCS / page
    path.write_text(replace_table(path.read_text(encoding="utf-8"), name, results), encoding="utf-8")


def replace_table(text: str, name: str, results: str) -> str:
    """The text of a page with the table between its comments `<!-- name -->` and `<!-- /name -->` replaced."""
    first_section = results.partition("\n## ")[0]
    blocks = "\n\n".join(first_section.strip().split("\n\n")[-2:])
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    new, count = re.subn(
        f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}\n\n{blocks}\n\n{end}", text, flags=re.DOTALL
    )
    if count != 1:
        raise ValueError(f"the page has {count} places for the table {name}; it needs one between {begin} and {end}")
    return new
