"""The page about memory: what is kept of a person is read, written, marked and deleted there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import PHONE
from tests.web.conftest import Visit


@pytest.mark.parametrize("how", [{}, PHONE], ids=["desk", "phone"])
def test_files_are_created_edited_and_deleted(how: dict[str, Any], visit: Visit, tmp_path: Path) -> None:
    page = visit("member", **how).open(path="#/memory").page
    expect(page.get_by_text("Memory is empty.")).to_be_visible()
    page.get_by_role("button", name="New file").click()
    page.get_by_label("Path").fill("notes/likes.md")
    page.get_by_label("Text").fill("tea, no sugar")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".memory .text")).to_have_text("tea, no sugar")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Text").fill("coffee \u202e<b>x</b>")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".memory .text")).to_contain_text("<b>x</b>")
    assert "\u202e" not in page.locator(".memory .text").inner_text()
    page.screenshot(path=tmp_path / "memory.png")
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("Memory is empty.")).to_be_visible()


def test_a_mark_is_shown_and_removed_and_another_user_sees_nothing(visit: Visit) -> None:
    page = visit("owner").open(path="#/memory").page
    expect(page.get_by_text("Memory is empty.")).to_be_visible()
    page.get_by_role("button", name="New file").click()
    page.get_by_label("Path").fill("a.md")
    page.get_by_label("Text").fill("from the web")
    page.route(
        "**/api/memory/file",
        lambda route: (
            route.continue_(
                post_data=(route.request.post_data or "").replace('"base":"none"', '"base":"none","untrusted":true')
            )
            if route.request.method == "PUT"
            else route.continue_()
        ),
    )
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Agents treat it as untrusted.")).to_be_visible()
    page.unroute("**/api/memory/file")
    page.get_by_role("button", name="Remove the mark").click()
    expect(page.get_by_text("Agents treat it as untrusted.")).to_have_count(0)
    other = visit("viewer").open(path="#/memory").page
    expect(other.get_by_text("Memory is empty.")).to_be_visible()
    expect(other.get_by_role("button", name="New file")).to_have_count(0)
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete", exact=True).click()
