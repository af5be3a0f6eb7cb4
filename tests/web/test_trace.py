"""The trace of a turn and the branches of a conversation, in a browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import PHONE, Screen
from tests.helpers.scripted_server.server import Rig
from tests.web.conftest import Visit
from tests.web.page_measurements import AXE, axe


@pytest.fixture(scope="module")
def talk(rig: Rig) -> str:
    """A session with tools, a retry and an open question."""
    session = rig.say("parallel pace 0")["session"]
    for text in ("retry", "error pace 0"):
        rig.wait_idle(session)
        rig.say(text, session)
    rig.wait_idle(session)
    return session


def judge(screen: Screen) -> None:
    """Nothing serious, as far as axe sees."""
    if AXE.is_file():
        found = axe(screen.page)
        assert not found, "\n".join(found)


@pytest.mark.parametrize("how", [{}, {**PHONE, "color_scheme": "dark"}], ids=["desk", "phone"])
def test_from_an_answer_to_its_trace_and_to_the_request_as_sent(
    visit: Visit, talk: str, how: dict[str, object]
) -> None:
    screen = visit(**how).open(talk)
    page = screen.page
    first = screen.log.locator('[data-message][data-role="assistant"]').first
    first.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Trace of this turn").click()
    expect(page.get_by_role("heading", name="Trace of a turn")).to_be_visible()
    rows = page.locator(".timeline > .span")
    expect(rows).to_have_count(4)  # a step, two calls, a step
    expect(rows.nth(1)).to_contain_text("weather")
    judge(screen)
    page.get_by_role("button", name="Show the request of step 2").click()
    dialog = page.get_by_role("dialog", name="Request of step 2")
    expect(dialog.get_by_text(re.compile(r"^[34] messages$"))).to_be_visible()
    expect(dialog.get_by_text("System prompt")).to_be_visible()
    judge(screen)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_an_error_links_to_its_trace_and_a_turn_is_compared_with_another(visit: Visit, talk: str) -> None:
    screen = visit().open(talk)
    page = screen.page
    screen.log.get_by_role("link", name="Trace").last.click()
    expect(page.locator("dl.numbers")).to_contain_text("failed")
    select = page.get_by_role("combobox", name="Compare with")
    label = select.get_by_role("option", name=re.compile("retry")).text_content()
    select.select_option(label=label)
    table = page.get_by_role("table")
    expect(table).to_contain_text("Difference")
    expect(table.get_by_role("row", name=re.compile("Retries"))).to_be_visible()
    expect(page.locator(".timeline")).to_have_count(2)
    judge(screen)


def test_the_trace_of_a_running_turn_goes_on_without_a_reload(visit: Visit, rig: Rig) -> None:
    session = rig.say("mail pace 0")["session"]
    screen = visit().open(session)
    page = screen.page
    screen.question("send_mail")
    page.get_by_role("link", name="Trace").last.click()
    expect(page.locator(".timeline .gate .badge")).to_have_text("waiting")
    gate = rig.gates(session)[0]["gate"]
    rig.api("POST", f"/api/sessions/{session}/gates/{gate['id']}/answer", {"hash": gate["hash"], "allow": "once"})
    expect(page.locator("dl.numbers")).to_contain_text("completed")
    expect(page.locator(".timeline .badge", has_text="waiting")).to_have_count(0)


def test_branches_are_a_tree_that_keys_walk(visit: Visit, rig: Rig) -> None:
    session = rig.say("first words")["session"]
    rig.wait_idle(session)
    screen = visit().open(session)
    page = screen.page
    answer = screen.answer()
    answer.get_by_role("button", name="Regenerate").first.click()
    page.get_by_role("link", name="Branches").click()
    tree = page.get_by_role("tree", name="Branches")
    expect(tree.get_by_role("treeitem")).to_have_count(3)
    expect(tree.locator('[aria-current="true"]')).to_have_count(1)
    judge(screen)
    tree.get_by_role("treeitem").last.focus()
    page.keyboard.press("ArrowLeft")
    expect(tree.get_by_role("treeitem").first).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(tree.get_by_role("treeitem").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"#/s/{session}/m/"))
