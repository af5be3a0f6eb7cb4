"""The composer: models to choose from."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import PHONE
from tests.helpers.scripted_server.server import Rig
from tests.web.conftest import Visit
from tests.web.page_measurements import axe


@pytest.mark.parametrize("look", [{}, PHONE, {"locale": "zh-CN", "color_scheme": "dark"}])
def test_a_model_is_found_and_chosen_with_the_keys_alone(rig: Rig, visit: Visit, look: dict[str, object]) -> None:
    screen = visit(**look).open()
    button = screen.page.locator(".composer .model-button")
    expect(button).to_have_text("rig-model")
    button.focus()
    screen.page.keyboard.press("Enter")
    picker = screen.page.get_by_role("dialog")
    own = picker.get_by_role("option").first
    expect(own).to_contain_text("compatible")
    expect(own).to_contain_text("$2")
    expect(own).to_contain_text("$8")
    assert not axe(screen.page)
    assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    screen.page.keyboard.type("other")
    expect(picker.get_by_role("option")).to_have_count(1)
    screen.page.keyboard.press("Enter")
    expect(picker).to_have_count(0)
    expect(button).to_have_text("rig-other")
    expect(button).to_be_focused()
    session = screen.say("who are you")
    screen.wait_idle()
    assert rig.messages(session)[-1]["by"] == "rig-other"
