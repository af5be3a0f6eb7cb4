"""Many approvals at once: rows instead of cards, one answer for all of them, groups and filters in the inbox."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.browser import PHONE, Screen
from tests.helpers.scripted_server.server import Rig
from tests.helpers.waiting import wait_until_sync
from tests.web.conftest import Visit
from tests.web.page_measurements import Meter, axe

MANY: Final = 100
PAINTED: Final = 1.0  # seconds of CPU until the first of a thousand approvals is painted
LOOKS: Final[dict[str, dict[str, Any]]] = {
    "light": {"viewport": {"width": 1440, "height": 900}},
    "dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "phone": {**PHONE, "viewport": {"width": 390, "height": 844}},
    "chinese": {**PHONE, "viewport": {"width": 390, "height": 844}, "locale": "zh-CN", "color_scheme": "dark"},
}
FIRST_ROW: Final = """
() => {
  const look = () => {
    if (document.querySelector('[data-gate-row]')) requestAnimationFrame(() => { window.shownAt = performance.now(); });
    else requestAnimationFrame(look);
  };
  look();
}
"""


def ask(rig: Rig, count: int, tool: str = "send_mail", **more: Any) -> str:
    """Let one step make so many calls that ask."""
    mails = [{"to": f"p{number}@example.org", "subject": "Rain"} for number in range(count)]
    words = " ".join(f"call {tool} {json.dumps(each)}" for each in mails)
    return rig.say(words, **more)["session"]


def open_gates(rig: Rig, session: str) -> list[dict[str, Any]]:
    """The gates of a session that are open."""
    return rig.api("GET", f"/api/sessions/{session}/gates")["gates"]


def shoot(page: Page, name: str) -> None:
    """Keep a picture, where somebody wants to look."""
    if folder := os.environ.get("EVERTURN_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def steady(page: Page) -> None:
    """Wait until the question has stood still long enough to be answered."""
    expect(page.locator(".gate-batch .confirm")).to_have_attribute("data-steady", "true")


@pytest.mark.timeout(300)
def test_a_hundred_calls_are_allowed_with_two_clicks(rig: Rig, visit: Visit) -> None:
    before = len(rig.deeds("mail"))
    session = ask(rig, MANY)
    wait_until_sync(lambda: len(open_gates(rig, session)) == MANY, 60)
    hashes = {view["gate"]["id"]: view["gate"]["hash"] for view in open_gates(rig, session)}
    screen = visit().open(session)
    sent: dict[str, str] = {}
    screen.page.on(
        "request",
        lambda request: (
            sent.update({request.url.split("/")[-2]: json.loads(request.post_data or "{}")["hash"]})
            if request.url.endswith("/answer")
            else None
        ),
    )
    expect(screen.page.locator("[data-gate-row]")).to_have_count(MANY, timeout=60_000)
    assert screen.page.locator(".gate[data-open]").count() == 0  # no whole card among them
    screen.page.get_by_role("button", name=f"Allow all {MANY}").click()
    steady(screen.page)
    screen.page.get_by_role("button", name=f"Allow {MANY} calls once").click()
    wait_until_sync(lambda: len(rig.deeds("mail")) == before + MANY, 120)
    expect(screen.page.get_by_text(f"{MANY} calls allowed")).to_be_visible(timeout=60_000)
    assert sent == hashes  # each answer named the hash of its own gate


def test_an_answer_for_all_leaves_those_of_others(rig: Rig, visit: Visit) -> None:
    before = len(rig.deeds("mail"))
    session = ask(rig, 4)
    wait_until_sync(lambda: len(open_gates(rig, session)) == 4, 30)
    visitor = visit()
    visitor.forgive("409")
    screen = visitor.open(session)
    screen.page.get_by_role("button", name="Allow all 4").click()
    first = open_gates(rig, session)[0]["gate"]
    path = f"/api/sessions/{session}/gates/{first['id']}/answer"
    screen.page.route(
        f"**{path}",
        lambda route: (rig.api("POST", path, {"hash": first["hash"], "deny": "by another"}), route.continue_()),
    )
    steady(screen.page)
    screen.page.get_by_role("button", name="Allow 4 calls once").click()
    expect(screen.page.locator(".gate-batch")).to_contain_text("3 calls allowed")
    expect(screen.page.locator(".gate-batch")).to_contain_text("1 × Someone else has already answered this.")
    wait_until_sync(lambda: len(rig.deeds("mail")) == before + 3)


def test_a_row_is_answered_and_opened(rig: Rig, visit: Visit) -> None:
    before = len(rig.deeds("mail"))
    session = ask(rig, 3)
    screen = visit().open(session)
    rows = screen.page.locator("[data-gate-row]")
    expect(rows).to_have_count(3, timeout=60_000)
    expect(rows.first).to_contain_text("to: p0@example.org · subject: Rain")
    expect(rows.first.locator("kbd").first).to_be_hidden()  # keys are shown where they work
    rows.first.focus()
    expect(rows.first.locator("kbd").first).to_be_visible()
    rows.nth(1).get_by_role("button", name="Show details").click()
    card = screen.page.locator(".gate[data-open]")
    expect(card).to_have_count(1)
    expect(card.get_by_role("heading")).to_contain_text("Allow this call?")
    rows.first.scroll_into_view_if_needed()
    screen.page.wait_for_timeout(700)  # it has just moved: a click would be ignored
    expect(rows.first).to_have_attribute("data-steady", "true")
    rows.first.get_by_role("button", name="Deny").click()
    expect(rows).to_have_count(2)
    screen.question_of(card.get_attribute("data-gate") or "").allow()
    wait_until_sync(lambda: len(rig.deeds("mail")) == before + 1)


def test_the_inbox_has_groups_and_filters(rig: Rig, visit: Visit) -> None:
    mails, command = ask(rig, 6), rig.say("shell")["session"]
    wait_until_sync(lambda: len(open_gates(rig, mails)) == 6 and open_gates(rig, command), 30)
    page = visit().open(path="#/inbox").page
    expect(page.locator("[data-gate-row]").first).to_be_visible(timeout=60_000)
    page.get_by_label("Group by").select_option("tool")
    expect(page.get_by_role("heading", name="send_mail", level=2)).to_be_visible()
    page.get_by_role("searchbox", name="Filter").fill("git push")
    expect(page.locator("[data-gate-row]")).to_have_count(1)
    expect(page.locator("[data-gate-row]")).to_contain_text("warning")
    page.get_by_role("searchbox", name="Filter").fill("p3@example.org rain")
    expect(page.locator("[data-gate-row]").first).to_contain_text("p3@example.org")
    page.get_by_label("Group by").select_option("agent")
    assert not axe(page)


@pytest.mark.long
@pytest.mark.parametrize("look", LOOKS)
def test_rows_are_usable_in_every_look(rig: Rig, visit: Visit, look: str) -> None:
    session = ask(rig, 5)
    wait_until_sync(lambda: len(open_gates(rig, session)) == 5, 30)
    screen: Screen = visit(**LOOKS[look]).open(session)
    expect(screen.page.locator("[data-gate-row]")).to_have_count(5, timeout=60_000)
    shoot(screen.page, f"{look}-conversation")
    assert not axe(screen.page)
    screen.page.locator(".gate-batch .button.primary").first.click()
    expect(screen.page.locator(".gate-batch .confirm")).to_be_visible()
    shoot(screen.page, f"{look}-confirm")
    assert not axe(screen.page)
    screen.page.goto(f"{rig.url}/#/inbox")
    expect(screen.page.locator("[data-gate-row]").first).to_be_visible()
    shoot(screen.page, f"{look}-inbox")
    assert not axe(screen.page)
    assert screen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_an_inbox_of_a_thousand_is_painted_at_once(rig: Rig, visit: Visit) -> None:
    sessions = [ask(rig, 100) for _ in range(10)]
    for session in sessions:
        wait_until_sync(lambda session=session: len(open_gates(rig, session)) == 100, 120)
    page = visit().context.new_page()
    page.add_init_script(f"({FIRST_ROW})()")
    meter = Meter(page)
    page.goto(f"{rig.url}/#/inbox")
    wait_until_sync(lambda: page.evaluate("window.shownAt ?? 0"), 60)
    used, shown = meter.since()["TaskDuration"], page.evaluate("window.shownAt")
    print(f"first paint: {used:.2f} s of CPU, {shown / 1000:.2f} s by the clock")
    assert used <= PAINTED
    wait_until_sync(lambda: page.locator(".inbox h1 .badge").inner_text() >= "1000", 60)
    assert page.locator("[data-gate-row]").count() <= 100
