"""Sharing on the page: people, links, revoking, temporary chats, and what an author learns of an administrator."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.browser import DESK, PHONE, Screen
from tests.helpers.scripted_server.server import Rig
from tests.web.conftest import Visit
from tests.web.page_measurements import AXE, axe

PICTURES = os.environ.get("EVERTURN_PICTURES", "")
LOOKS: dict[str, dict[str, Any]] = {
    "desk": DESK,
    "phone": PHONE,
    "desk-zh": {**DESK, "locale": "zh-CN", "color_scheme": "dark"},
    "phone-zh": {**PHONE, "locale": "zh-CN", "color_scheme": "dark"},
}


def look(page: Page, name: str) -> None:
    """Nothing serious for axe; with EVERTURN_PICTURES, also a picture to be looked at."""
    page.wait_for_timeout(300)
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png")
    found = axe(page) if AXE.is_file() else []
    assert not found, "\n".join((name, *found))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name}: it scrolls sideways"


def share(screen: Screen, recipient: str, level: str = "read") -> None:
    dialog = screen.page.get_by_role("dialog")
    dialog.get_by_label("Share with").select_option(recipient)
    dialog.get_by_label("They can").select_option(level)
    dialog.get_by_role("button", name="Share", exact=True).click()


def test_a_conversation_is_shared_with_a_person_who_reads_then_writes_and_then_sees_nothing(
    rig: Rig, visit: Visit
) -> None:
    screen = visit().open()
    session = screen.say("hello")
    screen.wait_idle()
    stranger = visit("member")
    stranger.forgive("404")
    gone = stranger.open(session)
    expect(gone.page.get_by_role("heading", name="does not exist, or you have no access")).to_be_visible()

    screen.page.get_by_role("button", name="Share").click()
    dialog = screen.page.get_by_role("dialog", name="Share this conversation")
    expect(dialog).to_contain_text("Nobody else.")
    share(screen, "user:member")
    expect(dialog.get_by_role("listitem").filter(has_text="member")).to_contain_text("read")
    screen.page.keyboard.press("Escape")
    expect(screen.page.locator(".conversation-head")).to_contain_text("Shared with 1")

    reader = stranger.open(session)
    expect(reader.said()).to_have_count(1)
    expect(reader.page.get_by_text("You can read this conversation. Its author")).to_be_visible()
    expect(reader.page.locator("textarea")).to_have_count(0)
    expect(reader.page.get_by_role("button", name="Edit")).to_have_count(0)
    expect(reader.page.locator(".sidebar .session")).to_have_count(1)

    screen.page.get_by_role("button", name="Share").click()
    share(screen, "user:member", "write")
    expect(dialog.get_by_role("listitem").filter(has_text="member")).to_contain_text("read and write")
    reader.reload()
    expect(reader.box).to_be_visible()

    dialog.get_by_role("button", name="Revoke: member").click()
    expect(dialog).to_contain_text("Nobody else.")
    expect(reader.page.get_by_role("heading", name="no longer have access")).to_be_visible()
    expect(reader.said()).to_have_count(0)


def test_a_link_is_made_opened_and_revoked(rig: Rig, visit: Visit) -> None:
    screen = visit().open()
    screen.say("hello")
    screen.wait_idle()
    screen.page.get_by_role("button", name="Share").click()
    dialog = screen.page.get_by_role("dialog")
    dialog.get_by_label("Expires after").select_option(label="1 day")
    dialog.get_by_role("button", name="Create link").click()
    link = dialog.get_by_label("Link", exact=True).input_value()
    assert link.startswith(f"{rig.url}/#/link/")
    expect(dialog.get_by_role("listitem").filter(has_text="Link")).to_contain_text("until")

    visitor = visit("viewer")
    guest = visitor.open(path=link.removeprefix(f"{rig.url}/"))
    expect(guest.said()).to_have_count(1)
    assert "link" not in guest.page.url
    assert link.rpartition("/")[2] not in json.dumps(guest.page.evaluate("[document.title, location.href]"))

    dialog.get_by_role("button", name="Revoke: Link").click()
    expect(guest.page.get_by_role("heading", name="no longer have access")).to_be_visible()
    visitor.forgive("404")
    late = visitor.open(path=link.removeprefix(f"{rig.url}/"))
    expect(late.page.get_by_role("heading", name="This link does not work")).to_be_visible()


def test_a_temporary_chat_is_in_no_list(rig: Rig, visit: Visit) -> None:
    screen = visit().open()
    listed = screen.page.locator(".sidebar .session")
    expect(listed.first).to_be_visible()
    screen.page.get_by_role("button", name="Temporary chat").click()
    expect(screen.page.get_by_text("erased after a day")).to_be_visible()
    session = screen.say("a secret wish")
    screen.wait_idle()
    expect(screen.page.locator(".conversation-head")).to_contain_text("Temporary")
    expect(listed.filter(has_text="secret wish")).to_have_count(0)
    sharing = rig.api("GET", f"/api/sessions/{session}/sharing")
    assert sharing["temporary_until"] > 0
    screen.page.reload()
    expect(screen.said()).to_have_count(1)
    expect(listed.filter(has_text="secret wish")).to_have_count(0)


def test_an_owner_opens_a_private_conversation_with_a_reason_and_its_author_is_told(rig: Rig, visit: Visit) -> None:
    author = visit().open()
    session = author.say("hello")
    author.wait_idle()
    visitor = visit("owner")
    visitor.forgive("404")
    owner = visitor.open(session)
    owner.page.get_by_role("button", name="Open as administrator").click()
    dialog = owner.page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Open", exact=True)).to_be_disabled()
    dialog.get_by_label("Reason").fill("a complaint")
    dialog.get_by_role("button", name="Open", exact=True).click()
    expect(owner.said()).to_have_count(1)
    expect(owner.page.locator("textarea")).to_have_count(0)

    author.page.reload()
    notice = author.page.locator(".banner").filter(has_text="as administrator")
    expect(notice).to_contain_text("owner opened your conversation")
    expect(notice).to_contain_text("a complaint")
    notice.get_by_role("button", name="Dismiss").click()
    expect(notice).to_have_count(0)
    author.page.reload()
    expect(author.said()).to_have_count(1)
    expect(notice).to_have_count(0)


def test_a_conversation_is_exported_as_markdown_and_as_json(rig: Rig, visit: Visit, tmp_path: Path) -> None:
    screen = visit().open()
    session = screen.say("hello")
    screen.wait_idle()
    for label, ending in (("Markdown", "md"), ("JSON", "json")):
        screen.page.locator(".conversation-head").get_by_role("button", name="Export").click()
        with screen.page.expect_download() as saved:
            screen.page.get_by_role("menuitem", name=f"Export as {label}").click()
        assert saved.value.suggested_filename.endswith(f".{ending}")
        saved.value.save_as(tmp_path / ending)
    assert re.search(r"^# .*\n\n## You\n\nhello\n", (tmp_path / "md").read_text("utf-8"))
    exported = json.loads((tmp_path / "json").read_text("utf-8"))
    assert (exported["session"], len(exported["messages"])) == (session, 2)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long if "zh" in name else ()) for name in LOOKS])
def test_everybody_can_use_it_and_it_fits_the_screen(name: str, rig: Rig, visit: Visit) -> None:
    screen = visit(**LOOKS[name]).open()
    page = screen.page
    page.locator(".temporary button").click()
    look(page, f"{name}-temporary")
    page.locator(".temporary button").click()
    session = rig.say("hello to somebody with a title that is rather long for a header")["session"]
    rig.wait_idle(session)
    for body in ({"user": "member", "level": "write"}, {"role": "viewer"}):
        rig.api("POST", f"/api/sessions/{session}/shares", body)
    page.goto(f"{rig.url}/#/s/{session}")
    expect(screen.said()).to_have_count(1)
    expect(page.locator(".conversation-head .badge")).to_be_visible()
    look(page, f"{name}-header")
    page.locator(".conversation-head .share").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("listitem")).to_have_count(3)
    dialog.locator(".link-form button").first.click()
    expect(dialog.locator(".made input")).to_be_visible()
    look(page, f"{name}-share")
    page.keyboard.press("Escape")
    page.goto(f"{rig.url}/#/inbox")
    visitor = visit("owner", **LOOKS[name])
    visitor.forgive("404")
    private = rig.say("private words")["session"]
    rig.wait_idle(private)
    outside = visitor.open(private).page
    outside.locator(".page .button").last.click()
    expect(outside.get_by_role("dialog")).to_be_visible()
    outside.get_by_role("dialog").locator("input").fill("Complaint 4711")
    look(outside, f"{name}-administrator")
    outside.get_by_role("dialog").locator("button[type=submit]").last.click()
    expect(outside.locator("[data-message]").first).to_be_visible()
    look(outside, f"{name}-read-only")
    page.goto(f"{rig.url}/#/s/{private}")
    page.reload()
    expect(page.locator(".banner.warn")).to_be_visible()
    look(page, f"{name}-notice")
    page.locator(".banner.warn button").first.click()
    expect(page.locator(".banner.warn")).to_have_count(0)
    visitor.open(path="#/link/nothing")
