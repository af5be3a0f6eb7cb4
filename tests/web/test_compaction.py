"""A conversation that fills the context window: it compacts by itself and on command, says so, and can be undone."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, expect

from everturn.server.routes.web_ui import BUILD_DIRECTORY, BUILD_VARIABLE
from tests.helpers.browser import PHONE, Screen
from tests.helpers.scripted_server.server import Rig, a_rig
from tests.helpers.waiting import wait_until_sync
from tests.web.conftest import Visit, missing

WINDOW: Final = 8000
LIMIT: Final = 6000  # a quarter of the window is for the answer
SMALL: Final = f"""
[models.small]
model = "compatible:rig-model"
base_url = "{{model}}"
window = {WINDOW}

[agents.small]
description = "Its model reads little."
model = "small"
"""


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A server with an agent whose model has a small context window."""
    web = os.environ.get(BUILD_VARIABLE, "")
    if not (Path(web or BUILD_DIRECTORY) / "index.html").is_file():
        missing("the page is not built; run scripts/web")
    with a_rig(web=web, more=SMALL) as server:
        yield server


def context(rig: Rig, session: str) -> dict[str, Any]:
    return rig.api("GET", f"/api/sessions/{session}/context")


def gauge(screen: Screen) -> Locator:
    return screen.page.get_by_role("button", name=re.compile("^(Context|上下文)"))


def card(screen: Screen) -> Locator:
    return screen.log.locator("[data-compaction=summary]")


def shows(screen: Screen, rig: Rig) -> float:
    """The gauge says what the server says; the share of the limit."""
    report = context(rig, screen.session)
    percent = round(report["share"] * 100)
    expect(gauge(screen)).to_have_accessible_name(re.compile(rf"^Context [\d.]+k? of 6k tokens \({percent}%\)"))
    return report["share"]


def fill(rig: Rig, share: float, session: str = "") -> str:
    """Talk until a request has this share of the limit."""
    started = rig.say("plain 30", session, **({} if session else {"agent": "small"}))
    rig.wait_idle(started["session"])
    while context(rig, started["session"])["share"] < share:
        rig.say("plain 300", started["session"])
        rig.wait_idle(started["session"])
    return started["session"]


@pytest.mark.timeout(180)
def test_a_conversation_fills_the_window_and_compacts_by_itself(rig: Rig, visit: Visit) -> None:
    session = fill(rig, 0.1)
    screen = visit().open(session)
    first = before = shows(screen, rig)
    expect(card(screen)).to_have_count(0)
    for _ in range(20):
        if any(part["type"] == "summary" for message in rig.messages(session) for part in message["parts"]):
            break
        before = shows(screen, rig)
        screen.say("plain 300")
        screen.wait_idle()
    assert before > 0.7 > first
    assert shows(screen, rig) < before
    summary = next(p for message in rig.messages(session) for p in message["parts"] if p["type"] == "summary")
    expect(card(screen)).to_contain_text(f"{summary['messages']} messages summarised")
    expect(card(screen)).to_contain_text(re.compile(r"Compacted: [\d.]+k → [\d.]+k? tokens"))
    show = card(screen).get_by_role("button", name="Show")
    show.focus()
    screen.page.keyboard.press("Enter")
    region = card(screen).get_by_role("region", name="Summary")
    expect(card(screen).get_by_role("button", name="Hide")).to_be_in_viewport()
    expect(region).to_contain_text("find out what is in the rooms")
    expect(region.locator("strong")).to_have_text("quote")
    expect(region).to_contain_text("<b>the letter</b>")  # text of a model never becomes markup
    expect(region.locator("b")).to_have_count(0)
    expect(region.locator("blockquote").first).to_contain_text("plain 3")
    card(screen).get_by_role("button", name="Hide").click()
    expect(region).to_have_count(0)
    screen.reload()
    expect(card(screen)).to_be_visible()


@pytest.mark.timeout(120)
def test_compact_with_a_focus_and_undo(rig: Rig, visit: Visit) -> None:
    screen = visit().open(fill(rig, 0.4))
    full = shows(screen, rig)
    screen.box.fill("/com")
    expect(screen.page.locator("#slash-hint")).to_contain_text("/compact [what to keep]")
    screen.box.press("Tab")
    expect(screen.box).to_have_value("/compact ")
    screen.box.press_sequentially("the name of the harbour")
    screen.box.press("Enter")
    expect(card(screen)).to_be_visible()
    screen.wait_idle()
    request_body = json.dumps(rig.model.seen[-1].body)
    assert "Keep above all: the name of the harbour" in request_body
    expect(screen.said().filter(has_text="/compact")).to_have_count(0)
    card(screen).get_by_role("button", name="Show").click()
    expect(card(screen)).to_contain_text("Keeps: the name of the harbour")
    compacted = shows(screen, rig)
    assert compacted < full
    card(screen).get_by_role("button", name="Undo").click()
    dialog = screen.page.get_by_role("dialog", name="Undo this compaction?")
    expect(dialog).to_contain_text("The model reads the whole conversation again.")
    dialog.get_by_role("button", name="Undo").click()
    expect(card(screen)).to_have_count(0)
    assert shows(screen, rig) == pytest.approx(full)


@pytest.mark.timeout(120)
def test_the_panel_says_what_fills_the_window_and_compacts(rig: Rig, visit: Visit) -> None:
    screen = visit().open(fill(rig, 0.4))
    gauge(screen).press("Enter")
    panel = screen.page.get_by_role("dialog", name="Context")
    expect(panel).to_contain_text(re.compile(r"of 6k tokens"))
    report = context(rig, screen.session)
    expect(panel.locator(".context-legend > li")).to_have_count(len(report["parts"]) + 2)  # free, and the reserve
    expect(panel).to_contain_text("small has a context window of 8k tokens; 2k are reserved for the answer.")
    expect(panel).to_contain_text("From 4.5k (75%): old tool results are cleared.")
    expect(panel).to_contain_text("From 5.4k (90%): older messages are summarised.")
    expect(panel).to_contain_text("Not compacted yet.")
    panel.get_by_label("What the summary must keep").fill("the rooms")
    screen.page.keyboard.press("Enter")
    expect(panel).to_have_count(0)
    expect(card(screen)).to_be_visible()
    screen.wait_idle()
    gauge(screen).click()
    expect(panel).to_contain_text("Compacted once on this branch.")
    expect(panel.locator(".context-legend")).to_contain_text("Summary")


def test_the_menu_of_a_conversation_and_the_palette_open_the_panel(rig: Rig, visit: Visit) -> None:
    session = fill(rig, 0.1)
    screen = visit().open()
    row = screen.page.locator(".session").filter(has=screen.page.locator(f'a[href*="{session}"]'))
    row.hover()
    row.get_by_role("button", name="More about this conversation").click()
    screen.page.get_by_role("menuitem", name="Compact conversation…").click()
    panel = screen.page.get_by_role("dialog", name="Context")
    expect(panel).to_contain_text("of 6k tokens")
    panel.get_by_role("button", name="Compact now").click()
    screen.page.wait_for_url(re.compile(session))  # where it happens is shown
    expect(card(screen)).to_be_visible()
    screen.wait_idle()
    screen.page.keyboard.press("Control+k")
    expect(screen.page.get_by_role("combobox", name="Search or run a command")).to_be_focused()
    screen.page.keyboard.type("compact this")
    screen.page.keyboard.press("Enter")
    expect(panel).to_contain_text("Compacted once on this branch.")
    screen.page.keyboard.press("Escape")
    expect(panel).to_have_count(0)


@pytest.mark.timeout(120)
def test_old_results_are_cleared_and_that_is_undone(rig: Rig, visit: Visit) -> None:
    session = rig.say("pages", agent="small")["session"]
    rig.wait_idle(session)
    while not (found := [p for m in rig.messages(session) for p in m["parts"] if p["type"] == "cleared"]):
        assert context(rig, session)["share"] < 0.9
        rig.say("pages", session)
        rig.wait_idle(session)
    count, freed = len(found[0]["calls"]), found[0]["before"] - found[0]["after"]
    screen = visit().open(session)
    line = screen.log.locator("[data-compaction=cleared]")
    expect(line).to_contain_text(
        re.compile(rf"^{count} tool results cleared, [\d.]+k tokens; the model can read them with")
    )
    expect(line).to_contain_text(f"{freed / 1000:.3g}k tokens")
    line.get_by_role("button", name="Undo").click()
    dialog = screen.page.get_by_role("dialog", name="Undo this compaction?")
    expect(dialog).to_contain_text(re.compile("below it stays? on another branch"))
    before = len(rig.api("GET", f"/api/sessions/{session}/tree")["messages"])
    dialog.get_by_role("button", name="Undo").click()
    expect(line).to_have_count(0)
    assert len(rig.api("GET", f"/api/sessions/{session}/tree")["messages"]) == before  # nothing is lost
    assert context(rig, session)["compactions"] == 0


@pytest.mark.timeout(120)
def test_a_summary_is_cancelled_and_one_fails(rig: Rig, visit: Visit) -> None:
    screen = visit().open(fill(rig, 0.3))
    screen.box.fill("/compact pace 500")
    screen.box.press("Enter")
    status = screen.log.get_by_role("status")
    expect(status).to_contain_text("Summarising earlier messages (")
    expect(screen.page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    status.get_by_role("button", name="Cancel").click()
    screen.sees("Stopped.")
    screen.wait_idle()
    expect(card(screen)).to_have_count(0)
    screen.box.fill("/compact or refuse")
    screen.box.press("Enter")
    screen.sees("Earlier messages could not be summarised")
    screen.sees("the model ended its summary with 'refusal'")
    screen.say("plain 20")
    screen.wait_idle()


@pytest.mark.timeout(120)
def test_a_warning_before_older_messages_are_summarised(rig: Rig, visit: Visit) -> None:
    session = fill(rig, 0.7)
    while context(rig, session)["share"] < 0.86:
        rig.say("plain 60", session)
        rig.wait_idle(session)
    assert context(rig, session)["share"] < 0.9
    screen = visit(**PHONE).open(session)
    expect(gauge(screen)).to_have_class(re.compile(r"\bwarn\b"))
    expect(gauge(screen)).to_have_accessible_name(re.compile("Everturn will summarise older messages at 90%"))
    gauge(screen).tap()
    panel = screen.page.get_by_role("dialog", name="Context")
    expect(panel.locator(".soon")).to_have_text("Everturn will summarise older messages at 90%.")
    assert screen.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_nothing_to_compact_is_said(rig: Rig, visit: Visit) -> None:
    started = rig.say("hello", agent="small")
    rig.wait_idle(started["session"])
    screen = visit().open(started["session"])
    screen.sees("You said: hello")
    screen.box.fill("/compact")
    screen.box.press("Enter")
    screen.sees("There is nothing to summarise")
    screen.say("plain 5")
    screen.wait_idle()
    expect(screen.log).not_to_contain_text("There is nothing to summarise")


def test_a_viewer_reads_the_card_and_undoes_nothing(rig: Rig, visit: Visit) -> None:
    session = fill(rig, 0.3)
    rig.api("POST", f"/api/sessions/{session}/compact", {})
    wait_until_sync(lambda: any(message["role"] == "notice" for message in rig.messages(session)))
    screen = visit("viewer").open(rig.share(session))
    card(screen).get_by_role("button", name="Show").click()
    expect(card(screen).get_by_role("region", name="Summary")).to_contain_text("look at the garden")
    expect(card(screen).get_by_role("button", name="Undo")).to_have_count(0)
    gauge(screen).click()
    panel = screen.page.get_by_role("dialog", name="Context")
    expect(panel).to_contain_text("Compacted once")
    expect(panel.get_by_role("button", name="Compact now")).to_have_count(0)
