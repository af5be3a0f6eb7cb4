"""The page can be installed as an app, and has the title, the logo and the colour of its server."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.helpers.browser import Screen


def test_chromium_finds_nothing_that_keeps_it_from_installing_the_page(screen: Screen) -> None:
    expect(screen.box).to_be_visible()
    session = screen.page.context.new_cdp_session(screen.page)
    manifest = session.send("Page.getAppManifest")
    assert (manifest["errors"], manifest["url"]) == ([], f"{screen.rig.url}/manifest.webmanifest")
    problems = {problem["errorId"] for problem in session.send("Page.getInstallabilityErrors")["installabilityErrors"]}
    assert problems == {"in-incognito"}  # as every test is
