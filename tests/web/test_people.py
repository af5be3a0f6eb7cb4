"""An owner's day: invites a person, who sets a password and chats; sees usage and audit; disables the person."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from everturn.server.routes.web_ui import BUILD_DIRECTORY, BUILD_VARIABLE
from tests.helpers.browser import DESK, PHONE, Visitor, visitor
from tests.helpers.scripted_server.server import Rig, a_rig
from tests.web.conftest import Visit, missing
from tests.web.page_measurements import AXE, axe

PICTURES = os.environ.get("EVERTURN_PICTURES", "")
PASSWORD = "a quiet green lamp"
SECTIONS = ("users", "invitations", "apiKeys", "usage", "audit", "quarantine")
LOOKS: dict[str, dict[str, Any]] = {
    "desk": {**DESK, "viewport": {"width": 1440, "height": 900}},
    "phone-zh": {**PHONE, "locale": "zh-CN", "color_scheme": "dark"},
}


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """The server, on which people log in with passwords."""
    web = os.environ.get(BUILD_VARIABLE, "")
    if not (Path(web or BUILD_DIRECTORY) / "index.html").is_file():
        missing("the page is not built; run scripts/web")
    with a_rig(web=web, more="\n[auth]\npasswords = true\n") as server:
        yield server


def look(page: Page, name: str) -> None:
    """Nothing for axe, nothing that scrolls sideways; with EVERTURN_PICTURES, also a picture to be looked at."""
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png")
    found = axe(page) if AXE.is_file() else []
    assert not found, "\n".join((name, *found))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name}: it scrolls sideways"


def invited(page: Page, user: str) -> str:
    """Create an invitation on the page; its link."""
    page.get_by_label("User id").fill(user)
    page.get_by_role("button", name="Create invitation").click()
    dialog = page.get_by_role("dialog", name="Invitation link")
    link = dialog.locator("code").inner_text()
    dialog.get_by_role("button", name="Close").last.click()
    return link


def test_an_owner_invites_a_person_who_chats_and_is_disabled(rig: Rig, visit: Visit, browser: Any) -> None:
    owner = visit().open(path="#/admin/invitations")
    link = invited(owner.page, "ben")
    expect(owner.page.get_by_role("row").filter(has_text="ben")).to_contain_text("Open")

    person: Visitor = visitor(rig, browser)
    person.forgive("401")
    page = person.context.new_page()
    page.goto(link)
    look(page, "invite")
    page.get_by_label("New password").first.fill("short")
    page.get_by_label("New password, again").fill("short")
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("button", name="Create account")).to_be_visible()  # the browser refuses it
    page.get_by_label("New password").first.fill(PASSWORD)
    page.get_by_label("New password, again").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect(page.locator(".sidebar .account")).to_contain_text("ben")
    expect(page.get_by_role("link", name="Administration")).to_have_count(0)

    person.context.clear_cookies()
    page.goto(f"{rig.url}/")
    look(page, "login")
    for password in ("a wrong one of length", PASSWORD):
        page.get_by_label("User", exact=True).fill("ben")
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Log in", exact=True).click()
        if password != PASSWORD:
            expect(page.get_by_role("alert")).to_contain_text("wrong")
    expect(page.locator(".sidebar .account")).to_contain_text("ben")

    screen = person.open()
    screen.say("hello")
    expect(screen.answer_text().first).to_be_visible()
    expect(screen.log.locator(".turn-status")).to_have_count(0)

    again = visitor(rig, browser)
    again.forgive("401|404")
    second = again.context.new_page()
    second.goto(link)  # it works once
    expect(second.get_by_role("heading", name="This link does not work")).to_be_visible()
    again.context.close()

    owner.page.goto(f"{rig.url}/#/admin/usage")
    expect(owner.page.get_by_role("row").filter(has_text="ben")).to_be_visible()
    owner.page.goto(f"{rig.url}/#/admin/audit")
    expect(owner.page.get_by_role("row").filter(has_text="invitation.accept")).to_contain_text("ben")
    owner.page.goto(f"{rig.url}/#/admin/users")
    owner.page.get_by_role("button", name="Actions for ben").click()
    expect(screen.page.locator(".banner")).to_have_count(0)
    owner.page.get_by_role("menuitem", name="Disable").click()
    expect(owner.page.get_by_role("row").filter(has_text="ben")).to_contain_text("Disabled")
    # Its stream ends, and the page says so without being reloaded.
    expect(screen.page.locator(".banner")).to_be_visible()
    person.context.close()
    person.check()


@pytest.mark.parametrize("name", LOOKS)
def test_every_section_is_drawn_without_a_finding(rig: Rig, visit: Visit, name: str) -> None:
    page = visit(**LOOKS[name]).open(path="#/admin").page
    for section in SECTIONS:
        page.goto(f"{rig.url}/#/admin/{section}")
        expect(page.locator(".admin .section > *").first).to_be_visible()
        expect(page.locator(".admin .spinner")).to_have_count(0)
        look(page, f"admin-{section}-{name}")


def test_on_a_phone_a_select_has_the_sections_and_works_with_the_keyboard(visit: Visit) -> None:
    narrow: dict[str, Any] = {**PHONE, "viewport": {"width": 375, "height": 812}}
    page = visit(**narrow).open(path="#/admin/users").page
    sections = page.get_by_role("combobox", name="Section")
    expect(page.locator(".section-list")).to_be_hidden()
    expect(sections).to_have_value("users")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    sections.focus()
    page.keyboard.type("Aud")
    expect(page).to_have_url(re.compile("#/admin/audit$"))
    expect(page.get_by_role("region", name="Audit log")).to_be_visible()
    expect(sections).to_be_focused()
    look(page, "admin-select-375")
    page.go_back()
    expect(sections).to_have_value("apiKeys")  # after the first letter
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(sections).to_be_hidden()
    links = page.get_by_role("navigation", name="Sections of the administration").get_by_role("link")
    expect(links).to_have_count(13)
    links.first.focus()
    page.keyboard.press("Tab")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Invitations", exact=True).first).to_be_visible()
    look(page, "admin-list-1280")


def test_a_member_has_no_administration(visit: Visit) -> None:
    page = visit("member").open(path="#/admin/users").page
    expect(page.get_by_text("This page is for owners")).to_be_visible()
    expect(page.get_by_role("link", name="Administration")).to_have_count(0)
