"""What could hurt a person at the page: an answer that goes to another question, a secret that comes back, poisoned memory."""

from __future__ import annotations

import json
from typing import Final

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import Screen
from tests.helpers.scripted_server.server import Rig
from tests.helpers.scripted_server.tools import SECRET
from tests.helpers.waiting import wait_until_sync
from tests.web.conftest import Visit
from tests.web.question_cards import Question

FETCH: Final = "async (path) => { const got = await fetch(path); return [got.status, await got.text(), got.headers.get('cache-control')]; }"


def _three(screen: Screen) -> str:
    """Three questions that wait."""
    session = screen.say("mails")
    screen.page.get_by_role("button", name="Show in full").click(timeout=60_000)  # here and in the inbox
    gates = screen.page.locator(".gate[data-open]")
    expect(gates).to_have_count(3, timeout=60_000)
    screen.page.wait_for_timeout(700)
    for gate in gates.all():
        expect(gate).to_have_attribute("data-steady", "true")
    return session


def _sent(rig: Rig) -> int:
    return len(rig.deeds("mail"))


def test_a_key_that_is_pressed_twice_answers_one_question(rig: Rig, visit: Visit) -> None:
    screen = visit(viewport={"width": 1280, "height": 4000}).open()  # nothing has to be scrolled, so nothing moves
    _three(screen)
    screen.page.goto(f"{rig.url}/#/inbox")
    gates = screen.page.locator(".inbox .gate[data-open]")
    expect(gates.nth(2)).to_be_visible(timeout=60_000)
    screen.page.wait_for_timeout(700)
    before, count = _sent(rig), gates.count()
    last = gates.last  # from there the focus goes to the first one, which has not moved
    name = last.get_attribute("data-gate")
    last.focus()
    screen.page.wait_for_timeout(700)
    # The clock of the page is ours from here on: it stands still, however slow the machine is.
    screen.page.clock.install()
    screen.page.clock.pause_at(screen.page.evaluate("Date.now()") + 1000)
    screen.page.keyboard.press("y")
    # As soon as the focus has gone on, more of them come, as from somebody who is in a hurry.
    wait_until_sync(lambda: _goes_on(screen, name), 20)
    for _ in range(4):
        screen.page.keyboard.press("y")
        screen.page.clock.run_for(50)
    screen.page.clock.resume()
    screen.page.wait_for_timeout(1200)
    assert _sent(rig) == before + 1
    expect(gates).to_have_count(count - 1)
    screen.page.keyboard.press("y")  # and who has seen the next one can answer it
    expect(gates).to_have_count(count - 2)


def _goes_on(screen: Screen, last: str | None) -> bool:
    """Whether the focus is at another gate; it goes there without the clock, or with the next frame."""
    screen.page.clock.run_for(1)
    at = screen.page.evaluate("document.activeElement?.dataset.gate ?? ''")
    return bool(at) and at != last


def test_a_double_click_answers_one_question(rig: Rig, screen: Screen) -> None:
    before = _sent(rig)
    _three(screen)
    gate = screen.page.locator(".gate[data-open]").first
    button = gate.get_by_role("button", name="Allow once")
    button.scroll_into_view_if_needed()
    screen.page.wait_for_timeout(600)
    box = button.bounding_box()
    assert box is not None
    for _ in range(6):
        screen.page.mouse.click(box["x"] + 8, box["y"] + 8)
        screen.page.wait_for_timeout(50)
    screen.page.wait_for_timeout(1200)
    assert _sent(rig) == before + 1
    expect(screen.page.locator(".gate[data-open]")).to_have_count(2)


def test_enter_in_the_reason_denies(rig: Rig, screen: Screen) -> None:
    before = _sent(rig)
    screen.say("mail")
    question = screen.question("send_mail")
    question.press("n")
    question.place.get_by_role("textbox").fill("y")
    question.is_steady()
    screen.page.keyboard.press("Enter")
    question.is_gone()
    screen.wait_idle()
    assert _sent(rig) == before
    expect(screen.cards("send_mail")).to_have_attribute("data-state", "denied")


def test_what_was_taken_out_is_nowhere_for_whoever_may_not_review(rig: Rig, visit: Visit, screen: Screen) -> None:
    session = screen.say("review")
    gate = screen.page.locator('.gate[data-open][data-kind="result"]')
    expect(gate).to_be_visible(timeout=60_000)
    viewer = visit("viewer").open(rig.share(session))
    expect(viewer.page.locator(".gate")).to_be_visible(timeout=60_000)
    assert SECRET not in viewer.page.content()
    question = Question(screen.page, gate)
    question.redact(SECRET)
    question.send("redacted")
    screen.wait_idle()
    viewer.page.wait_for_timeout(500)
    assert SECRET not in viewer.page.content()
    for path in ("log", "messages", "tree", "gates", "queue"):
        status, text, cache = viewer.page.evaluate(FETCH, f"/api/sessions/{session}/{path}")
        assert (status, cache) == (200, "no-store"), path
        assert SECRET not in text, path
    assert not [body for body in rig.model.bodies("review") if SECRET in json.dumps(body)]


@pytest.mark.parametrize(
    "path",
    [
        "#/s/<img src=x onerror=alert(1)>",
        "#/s/..%2F..%2Fapi%2Flogout",
        "#/s/__proto__/compare/constructor/__proto__",
        "#/s/%00/m/%E0%A4%A",
        "#/constructor",
        "#//evil.example/",
        "#javascript:alert(1)",
    ],
)
def test_an_address_leads_nowhere_else(visit: Visit, path: str) -> None:
    somebody = visit()
    somebody.forgive(r"status of (?:4\d\d)")
    page = somebody.open(path=path).page
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.wait_for_timeout(500)
    assert page.locator("#main").count() == 1
    assert page.locator("#main img[src=x]").count() == 0
    page.goto(f"{somebody.rig.url}/#/inbox")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()  # and the page goes on


@pytest.mark.parametrize(
    "settings",
    [
        "null",
        "[]",
        '"x"',
        "{",
        '{"browserTools": null, "language": "constructor", "theme": "x y", "agent": 7, "model": {}, "notify": "yes"}',
        '{"browserTools": {"browser_js_eval": "allow", "write_file": 1, "read_file": "__proto__"}}',
    ],
)
def test_poisoned_memory_neither_stops_the_page_nor_gives_leave(visit: Visit, settings: str) -> None:
    screen = visit().open()
    screen.page.evaluate("(kept) => localStorage.setItem('everturn.settings', kept)", settings)
    screen.page.reload()
    with screen.page.expect_request(
        lambda request: request.method == "POST" and "/api/sessions" in request.url
    ) as posted:
        screen.say("plain 5")
    tools = {spec["name"]: spec["approval"] for spec in (posted.value.post_data_json or {}).get("clients", [])}
    assert {how for name, how in tools.items() if "eval" in name or "write" in name} == {"ask"}
    screen.page.goto(f"{screen.rig.url}/#/settings")
    expect(screen.page.get_by_role("heading", name="Settings").first).to_be_visible()
