"""A request that missed the prompt cache: in the trace of its turn, and summed up on the usage page."""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import PHONE
from tests.helpers.scripted_server.server import Rig
from tests.web.conftest import Visit
from tests.web.page_measurements import AXE, axe


@pytest.mark.parametrize("how", [{}, {**PHONE, "color_scheme": "dark"}], ids=["desk", "phone"])
def test_a_missed_prompt_cache_is_in_the_trace_and_on_the_usage_page(
    visit: Visit, rig: Rig, how: dict[str, object]
) -> None:
    session = rig.say("cache 15000")["session"]
    rig.wait_idle(session)
    rig.say("cache 0", session)
    rig.wait_idle(session)
    screen = visit(**how).open(session)
    page, name = screen.page, "phone" if how else "desk"
    answers = screen.log.locator('[data-message][data-role="assistant"]')
    expect(answers).to_have_count(2)
    answers.last.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Trace of this turn").click()
    why = page.locator(".timeline .why")
    expect(why).to_have_text("15k tokens missed the prompt cache: nothing in the log explains it")
    if AXE.is_file():
        assert not axe(page)
    if folder := os.environ.get("EVERTURN_SCREENS"):
        page.screenshot(path=f"{folder}/trace-{name}.png")
    page.goto(f"{rig.url}/#/usage")
    table = page.get_by_role("region", name="Missed prompt cache")
    expect(table.get_by_role("row").last).to_contain_text("unexpected")
    if AXE.is_file():
        assert not axe(page)
    if folder := os.environ.get("EVERTURN_SCREENS"):
        page.screenshot(path=f"{folder}/usage-{name}.png", full_page=True)
