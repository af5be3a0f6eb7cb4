"""The middle of the page: what is written is never lost, what runs can be stopped, and what was said is found again."""

from __future__ import annotations

import re

from playwright.sync_api import Page, Route, expect

from tests.helpers.browser import Screen
from tests.helpers.scripted_server.server import Rig
from tests.helpers.waiting import wait_until_sync
from tests.web.conftest import Visit

PASTE = """
(box) => {
  const data = new DataTransfer();
  const bytes = Uint8Array.from(atob('%s'), (one) => one.charCodeAt(0));
  data.items.add(new File([bytes], 'dot.png', { type: 'image/png' }));
  box.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
}
"""
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


def _escape(page: Page) -> None:
    page.keyboard.press("Escape")


def test_a_draft_outlives_a_reload_and_stays_with_its_session(screen: Screen) -> None:
    session = screen.say("hello")
    screen.wait_idle()
    screen.box.fill("half a thought")
    screen.reload()
    expect(screen.box).to_have_value("half a thought")
    screen.page.goto(f"{screen.rig.url}/#/")
    expect(screen.box).to_have_value("")
    screen.page.goto(f"{screen.rig.url}/#/s/{session}")
    expect(screen.box).to_have_value("half a thought")


def test_a_message_that_was_not_answered_for_is_sent_again_as_the_same(rig: Rig, visit: Visit) -> None:
    visitor = visit()
    visitor.forgive("ERR_FAILED|Failed to load")
    screen = visitor.open()
    session = screen.say("hello")
    screen.wait_idle()
    keys: list[str] = []

    def lose_the_answer(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) == 1:
            route.fetch()  # it arrives; what comes back does not
            route.abort()
        else:
            route.continue_()

    screen.page.route("**/messages", lose_the_answer)
    screen.box.fill("plain 3")
    screen.box.press("Enter")
    expect(screen.said().filter(has_text="plain 3")).to_have_count(1)
    expect(screen.page.locator(".unsent")).to_have_count(0)
    screen.wait_idle()
    expect(screen.said().filter(has_text="plain 3")).to_have_count(1)
    assert len(keys) == 2
    assert keys[0] == keys[1]
    assert rig.is_idle(session)


def test_a_message_that_was_refused_comes_back_into_the_box(visit: Visit) -> None:
    visitor = visit()
    visitor.forgive("ERR_FAILED|Failed to load")
    screen = visitor.open()
    screen.say("hello")
    screen.wait_idle()
    screen.page.route("**/messages", lambda route: route.abort())
    screen.box.fill("never lost")
    screen.box.press("Enter")
    expect(screen.page.get_by_role("alert").filter(has_text="never lost")).to_be_visible()
    screen.reload()
    screen.page.get_by_role("button", name="Back to the text").click()
    expect(screen.box).to_have_value("never lost")


def test_enter_that_ends_a_character_sends_nothing(screen: Screen) -> None:
    screen.box.fill("nihao")
    screen.box.evaluate(
        "(box) => box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true, cancelable: true}))"
    )
    screen.box.evaluate(
        "(box) => box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', keyCode: 229, bubbles: true, cancelable: true}))"
    )
    screen.box.press("Shift+Enter")
    expect(screen.box).to_have_value("nihao\n")
    assert not screen.session


def test_escape_stops_the_turn_and_says_what_still_runs(rig: Rig, screen: Screen) -> None:
    session = screen.say("slow 3")
    expect(screen.log.locator(".turn-status")).to_contain_text("1 tool is running")
    _escape(screen.page)
    screen.sees("Stopped.")
    screen.sees("1 tool is still running")
    wait_until_sync(lambda: rig.is_idle(session), 15, "the tool did not end")
    screen.sees("A result arrived late")


def test_a_queued_message_is_taken_back_into_the_box(screen: Screen) -> None:
    screen.say("slow 20")
    screen.queue("and then this")
    screen.take_back("and then this")
    expect(screen.box).to_have_value("and then this")
    expect(screen.page.locator("ul.queue li")).to_have_count(0)
    screen.stop()


def test_up_edits_the_last_message_and_escape_leaves_it(screen: Screen) -> None:
    screen.say("plain 4")
    screen.wait_idle()
    screen.box.press("ArrowUp")
    edited = screen.log.get_by_role("textbox", name="Edit your message")
    expect(edited).to_have_value("plain 4")
    _escape(screen.page)
    expect(edited).to_have_count(0)
    screen.box.press("ArrowUp")
    edited.fill("plain 7")
    edited.press("Enter")
    screen.sees("word6")
    expect(screen.said()).to_have_count(1)


def test_a_pasted_picture_is_sent_and_shown(screen: Screen) -> None:
    screen.box.evaluate(PASTE % DOT)
    expect(screen.page.locator(".attachment-list li img")).to_be_visible()
    expect(screen.page.locator(".attachment-list .spinner")).to_have_count(0)
    screen.say("plain 3")
    picture = screen.said().locator("img")
    expect(picture).to_be_visible()
    assert picture.evaluate("(one) => one.naturalWidth") == 1
    screen.wait_idle()


def test_an_error_can_be_tried_again(screen: Screen) -> None:
    screen.say("error")
    screen.sees("The model provider rejected the request")
    screen.log.get_by_role("button", name="Try again").click()
    expect(
        screen.log.get_by_role("button", name="Later version").or_(screen.log.get_by_text("2/2")).first
    ).to_be_attached()
    screen.sees("The model provider rejected the request")


def test_a_link_to_a_message_leads_to_it(screen: Screen) -> None:
    session = screen.say("long 300 pace 1")
    screen.wait_idle()
    screen.say("plain 400 pace 1")
    screen.wait_idle()
    first = screen.said().first.get_attribute("data-message")
    screen.page.goto("about:blank")
    screen.page.goto(f"{screen.rig.url}/#/s/{session}/m/{first}")
    expect(screen.said().first).to_be_in_viewport()
    expect(screen.said().first).to_have_class(re.compile("marked"))
    screen.page.get_by_role("button", name="Newest message").click()
    expect(screen.answer()).to_be_in_viewport()


def test_find_moves_through_the_messages_and_the_search_keeps_the_focus(screen: Screen) -> None:
    session = screen.say("plain 3")
    screen.wait_idle()
    screen.say("long 300 pace 1")
    screen.wait_idle()
    screen.page.get_by_role("button", name="Find in conversation").click()
    search = screen.page.get_by_role("searchbox", name="Find in conversation")
    expect(search).to_be_focused()
    search.fill("PLAIN 3")
    expect(screen.page.get_by_text("1 of 1")).to_be_visible()
    expect(screen.said().first).to_be_in_viewport()
    expect(search).to_be_focused()
    assert screen.page.evaluate("CSS.highlights.get('find').size") == 1
    search.fill("not in any message")
    expect(screen.page.get_by_text("No matches")).to_be_visible()
    search.press("Escape")
    expect(search).to_have_count(0)
    assert screen.page.url.endswith(f"#/s/{session}")


def test_the_header_shows_what_the_conversation_has_cost(screen: Screen) -> None:
    screen.say("plain 3")
    screen.wait_idle()
    expect(screen.page.locator(".conversation-head .cost")).to_have_text(re.compile(r"^\$0\.\d+$"))


def test_a_viewer_reads_and_does_not_write(rig: Rig, visit: Visit) -> None:
    screen = visit().open()
    session = screen.say("hello")
    screen.wait_idle()
    reader = visit("viewer").open(rig.share(session))
    expect(reader.said()).to_have_count(1)
    expect(reader.page.locator("textarea")).to_have_count(0)
