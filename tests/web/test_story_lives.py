"""What outlives a page, a tab and a server: turns, questions, and every letter of an answer."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import Screen
from tests.helpers.scripted_server import texts
from tests.helpers.scripted_server.server import Rig
from tests.helpers.waiting import wait_until_sync
from tests.web.conftest import Visit

BREAKS = """
const real = window.fetch;
const lines = new Set();
window.fetch = async (input, init) => {
  const answer = await real(input, init);
  if (!String(input).includes('/events')) return answer;
  const line = new AbortController();
  lines.add(line);
  return new Response(answer.body.pipeThrough(new TransformStream(), { signal: line.signal }), answer);
};
window.breakLine = () => {
  const count = lines.size;
  for (const line of lines) line.abort();
  lines.clear();
  return count;
};
"""
"""A page whose streams can be broken off at any time."""


def test_a_question_waits_through_a_reload(rig: Rig, screen: Screen) -> None:
    before = len(rig.deeds("mail"))
    screen.say("mail")
    expect(screen.question("send_mail").place).to_be_visible()
    screen.reload()
    screen.question("send_mail").allow()
    screen.wait_idle()
    screen.sees("sent to ann@example.org")
    assert len(rig.deeds("mail")) == before + 1


def test_two_tabs_stay_in_step(rig: Rig, visit: Visit) -> None:
    visitor = visit()
    first = visitor.open()
    session = first.say("mail")
    other = visitor.open(session)
    seen = other.question("send_mail")
    first.question("send_mail").allow()
    seen.is_gone()
    other.say("plain 120 pace 10")
    first.sees("word5")
    rig.wait_idle(session)
    stored = rig.stored_text(session)
    assert stored.endswith("word119")
    for tab in (first, other):
        expect(tab.answer_text()).to_have_text(stored)


@pytest.mark.timeout(300)
def test_a_server_that_is_killed_loses_no_letter(rig: Rig, visit: Visit) -> None:
    visitor = visit()
    visitor.forgive("ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET")
    screen = visitor.open()
    session = screen.say("plain 600 pace 12")
    screen.sees("word40")
    rig.kill()
    expect(screen.page.locator("[data-connection=lost]")).to_have_count(1)
    rig.serve()
    while not rig.is_idle(
        session
    ):  # all the while: what is shown is the beginning of it, and nothing stands there twice
        assert texts.plain(600).startswith((screen.answer_text().text_content() or "").strip())
        screen.page.wait_for_timeout(100)
    stored = rig.stored_text(session)
    assert stored == texts.plain(600)
    expect(screen.answer_text()).to_have_text(stored)
    screen.reload()
    expect(screen.answer_text()).to_have_text(stored)


def test_a_line_that_breaks_loses_no_letter(rig: Rig, visit: Visit) -> None:
    visitor = visit()
    visitor.context.add_init_script(BREAKS)
    screen = visitor.open()
    session = screen.say("plain 300 pace 12")
    for word in ("word20", "word90", "word160"):
        screen.sees(word, 20)
        assert screen.page.evaluate("window.breakLine()")
    while not rig.is_idle(session):
        assert texts.plain(300).startswith((screen.answer_text().text_content() or "").strip())
        screen.page.wait_for_timeout(50)
    expect(screen.answer_text()).to_have_text(texts.plain(300))


def test_to_leave_is_not_to_stop(rig: Rig, visit: Visit) -> None:
    visitor = visit()
    screen = visitor.open()
    session = screen.say("plain 200 pace 10")
    screen.sees("word5")
    screen.page.close()
    rig.wait_idle(session)
    assert rig.stored_text(session).endswith("word199")


def test_stop_stops_and_keeps_what_was_said(rig: Rig, screen: Screen) -> None:
    session = screen.say("plain 2000 pace 10")
    screen.sees("word5")
    screen.stop()
    screen.wait_idle()
    stored = rig.stored_text(session)
    assert stored.startswith("word0")
    assert "word1999" not in stored
    expect(screen.answer_text()).to_have_text(stored.strip())


def test_escape_stops_too(rig: Rig, screen: Screen) -> None:
    session = screen.say("plain 2000 pace 10")
    screen.sees("word5")
    screen.box.press("Escape")
    screen.wait_idle()
    assert "word1999" not in rig.stored_text(session)


def test_a_late_result_is_put_beside_its_call(rig: Rig, screen: Screen) -> None:
    screen.say("slow 4")
    card = screen.cards("slow")
    expect(card).to_contain_text(re.compile(r"\d of 8 done"))
    screen.stop()
    expect(card).to_have_attribute("data-state", "cancelled")
    expect(card).to_contain_text("finished after 4 seconds")
    screen.wait_idle()
    screen.say("hello")
    screen.sees("You said: hello")
    assert any(rig.model.bodies("late_tool_result"))


def test_a_message_waits_its_turn_and_can_be_taken_back(rig: Rig, screen: Screen) -> None:
    session = screen.say("plain 300 pace 10")
    screen.sees("word5")
    screen.queue("first in the queue")
    screen.queue("second in the queue")
    wait_until_sync(lambda: len(rig.api("GET", f"/api/sessions/{session}/queue")["queued"]) == 2)
    screen.take_back("second in the queue")
    wait_until_sync(lambda: len(rig.api("GET", f"/api/sessions/{session}/queue")["queued"]) == 1)
    screen.sees("You said: first in the queue")
    screen.wait_idle()
    texts = [
        part["text"] for message in rig.messages(session) for part in message["parts"] if message["role"] == "user"
    ]
    assert texts == ["plain 300 pace 10", "first in the queue"]
