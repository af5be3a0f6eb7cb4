"""The parameters of a conversation: chosen on the page, kept by the server, used by its turns, shown in the trace."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.helpers.browser import PHONE, Screen
from tests.helpers.scripted_server.server import Rig
from tests.web.conftest import Visit
from tests.web.page_measurements import axe


def opened(screen: Screen) -> Locator:
    """The dialog."""
    screen.page.locator(".composer .tools > .button[aria-haspopup=dialog]").first.click()
    dialog = screen.page.get_by_role("dialog")
    expect(dialog.locator("form.parameters")).to_be_visible()
    return dialog


@pytest.mark.parametrize("look", [{}, {**PHONE, "locale": "zh-CN", "color_scheme": "dark"}])
def test_parameters_are_chosen_before_the_first_message_and_kept(rig: Rig, visit: Visit, look: dict[str, Any]) -> None:
    screen = visit(**look).open()
    dialog = opened(screen)
    numbers = dialog.locator("input[type=number]")
    numbers.nth(0).fill("0.3")
    numbers.nth(1).fill("200")
    dialog.locator("select").select_option("low")
    group = dialog.locator("fieldset label").first
    name = group.inner_text().strip()
    group.locator("input").uncheck()
    assert not axe(screen.page)
    assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    dialog.locator("button[type=submit].primary").click()
    expect(dialog).to_have_count(0)
    expect(screen.page.locator(".composer .parameters-set")).to_be_visible()
    session = screen.say("hello")
    screen.wait_idle()
    stored = {"temperature": 0.3, "max_tokens": 200, "reasoning": "low", "without_groups": [name]}
    assert rig.api("GET", f"/api/sessions/{session}")["parameters"] == stored
    turn = rig.messages(session)[-1]["turn"]
    sent = rig.api("GET", f"/api/sessions/{session}/turns/{turn}/request?step=1")
    assert {"temperature": 0.3, "max_tokens": 200, "reasoning": "low"}.items() <= sent["params"].items()
    omitted = {tool["name"] for tool in rig.api("GET", "/api/tools")["tools"] if tool["group"] == name}
    offered = {tool["name"] for tool in sent["tools"]}
    assert omitted
    assert offered
    assert not omitted & offered
    screen.page.reload()
    expect(screen.page.locator(".composer .parameters-set")).to_be_visible()
    dialog = opened(screen)
    expect(dialog.locator("input[type=number]").nth(0)).to_have_value("0.3")
    dialog.locator("textarea").fill("Answer in one line.")
    dialog.locator(".parameters .button.quiet").click()  # as the agent is set up
    dialog.locator("button[type=submit].primary").click()
    expect(screen.page.locator(".composer .parameters-set")).to_have_count(0)
    assert not rig.api("GET", f"/api/sessions/{session}").get("parameters")
    layers = rig.api("GET", f"/api/sessions/{session}/instructions")["layers"]
    assert [layer["text"] for layer in layers if layer["layer"] == "session"] == ["Answer in one line."]


def test_what_the_model_does_not_take_is_off_and_says_why(visit: Visit) -> None:
    visitor = visit()

    def without(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        for model in body["models"]:
            model |= {"has_temperature": False, "reasoning_levels": []}
        route.fulfill(response=answer, body=json.dumps(body))

    visitor.context.route("**/api/agents", without)
    dialog = opened(visitor.open())
    expect(dialog.locator("input[type=number]").nth(0)).to_be_disabled()
    expect(dialog.locator("select")).to_be_disabled()
    expect(dialog).to_contain_text("rig-model does not accept a temperature.")
    expect(dialog).to_contain_text("rig-model has no reasoning levels.")
