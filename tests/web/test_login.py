"""The way in: a link, a button, and then the page."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

from tests.helpers.browser import visitor
from tests.helpers.scripted_server.server import Rig


def test_an_unknown_client_is_told_how_to_come_in(rig: Rig, browser: Browser) -> None:
    somebody = visitor(rig, browser)
    page = somebody.open().page
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    somebody.context.close()
    somebody.check()


def test_whoever_logs_in_by_the_link_of_the_command_is_inside(rig: Rig, browser: Browser) -> None:
    somebody = visitor(rig, browser)
    somebody.log_in(link=rig.login_command())
    page = somebody.open().page
    expect(page.get_by_role("main")).to_be_visible()
