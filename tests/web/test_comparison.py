"""Several models answer one message in columns: while they stream, with questions in them, after kill -9 and a reload."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.helpers.browser import PHONE, Screen
from tests.helpers.scripted_server.server import Rig
from tests.web.conftest import Visit
from tests.web.page_measurements import axe

DESK = {"viewport": {"width": 1440, "height": 900}}
LOOKS = [DESK, {**DESK, "locale": "zh-CN", "color_scheme": "dark"}, PHONE]
CHINESE_PHONE = {**PHONE, "locale": "zh-CN", "color_scheme": "dark"}


def look_at(screen: Screen, name: str) -> None:
    """Keep a picture where somebody wants to look at it."""
    if folder := os.environ.get("EVERTURN_PICTURES"):
        screen.page.screenshot(path=str(Path(folder, f"{name}.png")))


def choose(screen: Screen, name: str = "") -> None:
    """Choose both models of the agent, by the keyboard alone."""
    screen.page.locator(".composer .button:has(path[d^='M4 4h6v16'])").press("Enter")
    dialog = screen.page.get_by_role("dialog")
    expect(dialog.get_by_role("option")).to_have_count(2)
    dialog.get_by_role("combobox").press_sequentially("other")
    screen.page.keyboard.press("Enter")
    expect(dialog.locator('[role=option][aria-checked="true"]')).to_have_count(1)
    assert not axe(screen.page)
    look_at(screen, f"{name}-picker")
    dialog.locator(".compare .button.primary").press("Enter")
    expect(screen.page.locator(".composer .compared .badge")).to_have_text(["rig-model", "rig-other"])


def columns(screen: Screen) -> Locator:
    return screen.page.locator(".comparison .column")


def column(screen: Screen, model: str) -> Locator:
    return columns(screen).filter(has=screen.page.locator(f'h2[title="{model}"]'))


@pytest.mark.parametrize("look", [*LOOKS, CHINESE_PHONE])
def test_two_models_answer_in_columns_and_one_of_them_is_continued(
    rig: Rig, visit: Visit, look: dict[str, Any]
) -> None:
    screen = visit(**look).open()
    name = f"{look.get('locale', 'en')[:2]}-{look.get('color_scheme', 'light')}-{look['viewport']['width']}"
    choose(screen, name)
    session = screen.say("plain 80 pace 20")
    expect(columns(screen)).to_have_count(2)
    expect(columns(screen).locator(".part.text").nth(1)).to_be_visible()
    look_at(screen, f"{name}-streams")
    screen.wait_idle(60)
    expect(screen.page.locator(".composer .compared")).to_have_count(0)
    for model in ("rig-model", "rig-other"):
        expect(column(screen, model).locator(".facts")).to_contain_text(re.compile(r"\d.*token"))
    assert not axe(screen.page)
    assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    boxes = [columns(screen).nth(number).bounding_box() for number in (0, 1)]
    assert boxes[0]
    assert boxes[1]
    is_stacked = boxes[0]["x"] == boxes[1]["x"]
    assert is_stacked == ("is_mobile" in look)
    other = column(screen, "rig-other")
    other.locator(".choose").press("Enter")
    expect(other.locator(".choose")).to_have_attribute("aria-pressed", "true")
    expect(column(screen, "rig-model").locator(".choose")).to_have_attribute("aria-pressed", "false")
    look_at(screen, f"{name}-chosen")
    screen.reload()
    expect(other.locator(".choose")).to_have_attribute("aria-pressed", "true")
    assert rig.messages(session)[-1]["by"] == "rig-other"
    screen.say("more of it")
    screen.sees("You said: more of it")
    expect(columns(screen)).to_have_count(0)
    screen.wait_idle()
    assert next(message["by"] for message in rig.messages(session) if message["role"] == "assistant") == "rig-other"


def test_columns_survive_kill_9_and_both_finish(rig: Rig, visit: Visit) -> None:
    someone = visit(**DESK)
    someone.forgive("ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET")
    screen = someone.open()
    choose(screen)
    session = screen.say("plain 80 pace 20")
    expect(columns(screen).locator(".part.text").nth(1)).to_be_visible()
    rig.kill()
    rig.serve()
    screen.wait_idle(90)
    expect(columns(screen)).to_have_count(2)
    log = [entry["event"] for entry in rig.api("GET", f"/api/sessions/{session}/log")["entries"]]
    started = [event for event in log if event["type"] == "TurnStarted"]
    assert len({event["command"] for event in started}) == 1
    assert [event["type"] for event in log].count("TurnCompleted") == len(started) == 2
    screen.reload()
    expect(columns(screen)).to_have_count(2)


def test_an_approval_in_a_column_is_for_that_answer(rig: Rig, visit: Visit) -> None:
    screen = visit(**DESK).open()
    choose(screen)
    session = screen.say("mail")
    gates = columns(screen).locator("[data-gate][data-open]")
    expect(gates).to_have_count(2)
    assert not axe(screen.page)
    look_at(screen, "approvals")
    gate = column(screen, "rig-other").locator("[data-gate]").get_attribute("data-gate")
    assert gate
    screen.question_of(gate).click("once")
    expect(column(screen, "rig-other").locator(".turn-status")).to_have_count(0)
    expect(column(screen, "rig-model").locator("[data-gate][data-open]")).to_have_count(1)
    column(screen, "rig-model").locator("header .button").click()
    screen.wait_idle()
    phases = {turn["phase"] for turn in [rig.turn(session, each) for each in turns_of(rig, session)]}
    assert phases == {"completed", "cancelled"}


def turns_of(rig: Rig, session: str) -> list[str]:
    log = [entry["event"] for entry in rig.api("GET", f"/api/sessions/{session}/log")["entries"]]
    return [event["turn"] for event in log if event["type"] == "TurnStarted"]
