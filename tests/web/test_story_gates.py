"""Questions in the corners: asked from below, asked of many, answered by others, too late, too fast."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from tests.helpers.browser import Screen
from tests.helpers.scripted_server.server import Rig
from tests.helpers.waiting import wait_until_sync
from tests.web.conftest import Visit

EAGER = """
() => {
  let first = 0;
  new MutationObserver(() => {
    const button = document.querySelector('[data-gate][data-open] .actions button');
    if (!button) return;
    first ||= performance.now();
    if (performance.now() - first > 300) return;
    window.early = (window.early ?? 0) + 1;
    button.click();
  }).observe(document.body, { subtree: true, childList: true, attributes: true });
}
"""
"""Somebody whose finger is on the button before there is one."""


def test_what_cannot_be_seen_is_written_out(screen: Screen) -> None:
    screen.say("hidden")
    place = screen.question("send_mail").place
    for code in ("U+202E", "U+200B", "U+00A0"):
        expect(place).to_contain_text(code)
    expect(place.locator(".text-warnings")).to_contain_text("mixes letters from several alphabets")


def test_a_command_line_has_hints(screen: Screen) -> None:
    screen.say("shell")
    place = screen.question("run").place
    expect(place).to_contain_text("rm -rf build && git push --force origin main")
    assert place.locator(".hints li").count() >= 3  # two that are risky, and that no hint means nothing


def test_what_runs_below_asks_above(rig: Rig, screen: Screen) -> None:
    before = len(rig.deeds("mail"))
    screen.say("nested")
    screen.question("send_mail").allow()
    screen.sees("sent to ann@example.org")
    screen.wait_idle()
    screen.say("trip")
    screen.question("send_mail").allow()
    wait_until_sync(lambda: len(rig.deeds("mail")) == before + 2)
    screen.wait_idle()


def test_many_are_denied_with_one_word(rig: Rig, screen: Screen) -> None:
    before = len(rig.deeds("mail"))
    screen.say("mails")
    question = screen.question("send_mail")
    question.click("deny")
    question.place.get_by_role("checkbox").check()
    question.click("deny")
    screen.wait_idle()
    expect(screen.cards("send_mail")).to_have_count(3)
    for card in screen.cards("send_mail").all():
        expect(card).to_have_attribute("data-state", "denied")
    assert len(rig.deeds("mail")) == before


def test_somebody_else_was_faster(rig: Rig, visit: Visit) -> None:
    visitor = visit()
    visitor.forgive("409")
    screen = visitor.open()
    session = screen.say("mail")
    question = screen.question("send_mail")

    def answered(route: Route) -> None:
        gate = rig.gates(session)[0]["gate"]
        path = f"/api/sessions/{session}/gates/{gate['id']}/answer"
        rig.api("POST", path, {"hash": gate["hash"], "deny": "by another"})
        route.continue_()

    before = len(rig.deeds("mail"))
    screen.page.route("**/answer", answered)
    question.click("once")
    screen.sees("by another")
    screen.wait_idle()
    expect(screen.cards("send_mail")).to_have_attribute("data-state", "denied")
    assert len(rig.deeds("mail")) == before


def test_a_double_click_answers_once(rig: Rig, screen: Screen) -> None:
    before = len(rig.deeds("mail"))
    answers: list[str] = []
    screen.page.on("request", lambda request: answers.append(request.url) if request.url.endswith("/answer") else None)
    screen.say("mail")
    question = screen.question("send_mail")
    question.is_steady()
    question.place.get_by_role("button", name=re.compile("^Allow once")).dblclick()
    question.is_gone()
    screen.wait_idle()
    assert len(answers) == 1
    assert len(rig.deeds("mail")) == before + 1


def test_what_has_just_appeared_cannot_be_clicked(rig: Rig, screen: Screen) -> None:
    before = len(rig.deeds("mail"))
    screen.page.evaluate(EAGER)
    session = screen.say("mail")
    wait_until_sync(lambda: screen.page.evaluate("window.early ?? 0"))
    screen.page.wait_for_timeout(600)
    assert rig.gates(session)
    assert len(rig.deeds("mail")) == before
    screen.question("send_mail").allow()
    wait_until_sync(lambda: len(rig.deeds("mail")) == before + 1)


def test_nobody_answers_in_time(rig: Rig, visit: Visit) -> None:
    screen = visit().open()  # loaded before the time begins
    session = rig.say("mail", agent="timely")["session"]
    screen.page.evaluate("session => { location.hash = `#/s/${session}` }", session)
    expect(screen.question("send_mail").place).to_contain_text("left to answer")
    screen.sees("Nobody answered in time")


@pytest.mark.parametrize("role", ["viewer", "member"])
def test_whoever_may_not_answer_is_told_so(rig: Rig, visit: Visit, role: str) -> None:
    screen = visit(role).open(rig.share(rig.say("mail")["session"]))
    place = screen.question("send_mail").place
    expect(place).to_contain_text("Only approvers can answer this")
    assert place.locator(".answers button").count() == 0


def test_a_message_joins_the_turn_that_runs(rig: Rig, screen: Screen) -> None:
    session = screen.say("slow 3")
    expect(screen.cards("slow")).to_have_attribute("data-state", "running")
    screen.box.fill("hello from the side")
    screen.page.get_by_role("button", name="Steer", exact=True).click()
    screen.sees("You said: hello from the side")
    screen.wait_idle()
    turns = {message["turn"] for message in rig.messages(session)}
    assert len(turns) == 1
