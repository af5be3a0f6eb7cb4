"""Who else looks: initials in the header, a line on the approval, gone when the tab is closed, off when it is switched off."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.helpers.browser import PHONE, Screen
from tests.helpers.scripted_server.server import Rig
from tests.web.conftest import Visit
from tests.web.page_measurements import axe
from tests.web.question_cards import CHINESE, ENGLISH

DESK: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}
DARK_PHONE: dict[str, Any] = {**PHONE, "locale": "zh-CN", "color_scheme": "dark"}


def look_at(screen: Screen, name: str) -> None:
    """Keep a picture where somebody wants to look at it."""
    if folder := os.environ.get("EVERTURN_PICTURES"):
        screen.page.screenshot(path=str(Path(folder, f"{name}.png")))


def initials(screen: Screen) -> Locator:
    return screen.page.locator(".conversation-head .viewers")


@pytest.mark.parametrize("look", [DESK, DARK_PHONE])
def test_two_people_at_one_approval_see_each_other(rig: Rig, visit: Visit, look: dict[str, Any]) -> None:
    first = visit(**look).open()
    session = rig.share(first.say("mail"))
    line = first.page.locator("[data-gate][data-open] .gate-viewers")
    expect(first.page.locator("[data-gate][data-open]")).to_have_count(1)
    expect(initials(first)).to_have_count(0)
    second = visit("approver").open(session)
    expect(initials(second)).to_have_text("L")
    expect(initials(first)).to_have_text("A")
    expect(line).to_contain_text("approver")
    line.scroll_into_view_if_needed()
    assert not axe(first.page)
    look_at(first, f"presence-{look.get('locale', 'en')[:2]}-{look['viewport']['width']}")
    before = rig.api("GET", f"/api/sessions/{session}/log")["entries"][-1]
    second.page.close()
    expect(initials(first)).to_have_count(0)
    expect(line).to_have_text("")
    assert rig.api("GET", f"/api/sessions/{session}/log")["entries"][-1] == before  # nothing of it is in the log
    first.question("send_mail", CHINESE if "locale" in look else ENGLISH).click("once")
    first.wait_idle()


def test_an_approver_outside_is_seen_and_sees_nobody_who_is_in_the_conversation(rig: Rig, visit: Visit) -> None:
    author = visit("member", **DESK).open()
    author.say("mail")
    expect(author.page.locator("[data-gate][data-open]")).to_have_count(1)
    gate = author.page.locator("[data-gate][data-open]").get_attribute("data-gate")
    outside = visit("approver", **DESK).open(path="#/inbox")
    card = f'[data-gate-row="{gate}"], [data-gate="{gate}"][data-open]'
    outside.page.locator(card).focus()
    expect(author.page.locator("[data-gate][data-open] .gate-viewers")).to_contain_text("approver")
    look_at(outside, "presence-inbox")
    expect(outside.page.locator(f":is({card}) .gate-viewers")).to_have_text("")
    second = visit("owner", **DESK).open(path="#/inbox")
    second.page.locator(card).focus()
    expect(second.page.locator(f":is({card}) .gate-viewers")).to_contain_text("approver")
    assert not axe(second.page)


def test_who_switches_it_off_is_not_shown_and_sees_nobody(rig: Rig, visit: Visit) -> None:
    first = visit(**DESK).open()
    session = rig.share(first.say("hello"))
    hidden = visit("approver", **DESK)
    settings = hidden.open(path="#/settings")
    settings.page.get_by_label("Show who is looking").uncheck()
    assert not axe(settings.page)
    look_at(settings, "presence-settings")
    second = hidden.open(session)
    with second.page.expect_request("**/events*"):
        second.reload()
    third = visit("viewer", **DESK).open(session)
    expect(initials(first)).to_have_text("V")
    expect(initials(third)).to_have_text("L")
    expect(initials(second)).to_have_count(0)
