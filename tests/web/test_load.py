"""What the page weighs: a first look, an answer that streams, and a conversation that has been long."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import Screen
from tests.helpers.scripted_server.server import Rig
from tests.helpers.waiting import wait_until_sync
from tests.web import past_conversation
from tests.web.conftest import Visit
from tests.web.page_measurements import SHOWN, Meter, Sizes

FIRST = 55 * 1024  # bytes with all headers of six requests; what they contain is at most 50 KB (scripts/web_size.py)
SCRIPT = 2.0  # seconds of script for three thousand pieces
OPENS = 1.5  # seconds of CPU, as on a machine that does nothing else
SCROLLS = 8.0  # seconds of CPU for forty turns of the wheel; to draw everything anew each time takes more


def test_a_first_look_is_small(visit: Visit) -> None:
    visitor = visit()
    page = visitor.context.new_page()
    sizes = Sizes(page)
    page.goto(visitor.rig.url)
    expect(page.get_by_role("main")).to_be_visible()
    page.wait_for_timeout(500)  # what is fetched by itself a moment later counts as well
    own = {path: size for path, size in sizes.bytes.items() if not path.startswith("/api/")}
    print(own)
    assert len(own) >= 3  # the page, its script and its style: else nothing was counted
    assert sum(own.values()) <= FIRST, own


@pytest.mark.timeout(300)
def test_three_thousand_pieces_cost_little(screen: Screen) -> None:
    session = screen.say("hello")
    screen.wait_idle()
    meter = Meter(screen.page)
    screen.say("long 3000 pace 1")
    screen.wait_idle(60)
    stored = screen.rig.stored_text(session)
    expect(screen.answer()).to_contain_text("count(boats")
    used = meter.since()
    print({name: round(value, 2) for name, value in used.items() if name.endswith("Duration")})
    assert len(stored) == 12_000
    assert used["ScriptDuration"] <= SCRIPT


def _cpu(rig: Rig, visit: Visit, session: str) -> tuple[float, float]:
    """CPU seconds of the page's main thread until the last message is painted, and for scrolling through all of it."""
    visitor = visit()
    page = visitor.context.new_page()
    page.add_init_script(f"({SHOWN})({past_conversation.LAST!r})")
    opening = Meter(page)
    page.goto(f"{rig.url}/#/s/{session}")
    wait_until_sync(lambda: page.evaluate("window.shownAt ?? 0"), 60)
    opened = opening.since()["TaskDuration"]
    page.wait_for_timeout(1500)  # what is drawn in idle time
    scrolling = Meter(page)
    page.mouse.move(700, 400)
    for _ in range(40):
        page.mouse.wheel(0, -900)
        page.wait_for_timeout(25)
    page.wait_for_timeout(300)
    scrolled = scrolling.since()["TaskDuration"]
    page.close()
    return opened, scrolled


@pytest.mark.timeout(300)
def test_five_hundred_messages_open_at_once_and_scroll(rig: Rig, visit: Visit) -> None:
    session = past_conversation.bring(rig, past_conversation.long(500))
    opened, scrolled = _cpu(rig, visit, session)
    print(f"CPU: opened {opened:.2f} s, scrolled {scrolled:.2f} s")
    assert opened <= OPENS
    assert scrolled <= SCROLLS
