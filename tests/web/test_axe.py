"""Everybody can use it, as far as a machine can tell: axe-core finds nothing serious, on any page of it."""

from __future__ import annotations

from typing import Any, Final

import pytest
from playwright.sync_api import Browser, expect

from tests.helpers.browser import PHONE, Screen, Visitor, visitor
from tests.helpers.scripted_server.server import Rig
from tests.web.conftest import Visit, missing
from tests.web.page_measurements import AXE, axe

PAGES: Final = ("inbox", "permissions", "mcp", "memory", "usage", "settings")
LOOKS: Final[dict[str, dict[str, Any]]] = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "phone": PHONE,
    "chinese": {"locale": "zh-CN", "color_scheme": "dark"},
}


@pytest.fixture(scope="module", autouse=True)
def _has_axe() -> None:
    if not AXE.is_file():
        missing("axe-core is not installed; run npm ci in web")


@pytest.fixture(scope="module")
def talks(rig: Rig) -> dict[str, str]:
    """Sessions with something of everything, by what is in them."""
    words = (
        "mail",
        "review",
        "form",
        "manual",
        "loop",
        "shell",
        "files",
        "subagent",
        "fails",
        "error",
        "page",
        "picture",
    )
    sessions = {word: rig.say(f"{word} pace 0")["session"] for word in words}
    sessions["all"] = rig.say("reason")["session"]
    for text in ("parallel", "table", "math", "code", "unknown", "forbidden", "repaired", "mail"):
        rig.say(text, sessions["all"])
    for session in sessions.values():
        rig.wait_idle(session)
    return sessions


@pytest.fixture(params=[pytest.param(look, marks=pytest.mark.long if look == "chinese" else ()) for look in LOOKS])
def somebody(request: pytest.FixtureRequest, visit: Visit) -> Visitor:
    """Somebody who looks at it in one of the ways."""
    return visit(**LOOKS[request.param])


def settle(screen: Screen) -> None:
    """Wait until what comes later has come."""
    expect(screen.page.get_by_role("main")).to_be_visible()
    screen.page.wait_for_timeout(500)


def judge(screen: Screen, label: str, path: str = "") -> None:
    """Nothing serious, where it is or at another path.

    Raises:
        AssertionError: something is.
    """
    if path:
        screen.page.goto(f"{screen.rig.url}/{path}")
    settle(screen)
    found = axe(screen.page)
    assert not found, "\n".join((label, *found))


@pytest.mark.timeout(300)
def test_conversations(somebody: Visitor, talks: dict[str, str]) -> None:
    screen = somebody.open(talks["all"])
    for word, session in talks.items():
        judge(screen, word, f"#/s/{session}")


def test_pages(somebody: Visitor, talks: dict[str, str]) -> None:
    screen = somebody.open()
    judge(screen, "new")
    for page in PAGES:
        judge(screen, page, f"#/{page}")


def test_a_compacted_conversation(rig: Rig, somebody: Visitor) -> None:
    session = rig.say("plain 300")["session"]
    rig.wait_idle(session)
    for _ in range(2):
        rig.say("plain 300", session)
        rig.wait_idle(session)
    rig.api("POST", f"/api/sessions/{session}/compact", {"focus": "the words"})
    rig.wait_idle(session)
    screen = somebody.open(session)
    card = screen.log.locator("[data-compaction=summary]")
    card.get_by_role("button").first.click()
    expect(card.get_by_role("region")).to_be_visible()
    judge(screen, "summary")
    screen.box.fill("/com")
    judge(screen, "command")
    screen.page.locator(".context-gauge").click()
    expect(screen.page.locator("dialog .context-legend")).to_be_visible()
    judge(screen, "context")
    screen.page.keyboard.press("Escape")
    card.get_by_role("button").last.click()
    expect(screen.page.get_by_role("dialog")).to_be_visible()
    judge(screen, "undo")


def test_comparing(rig: Rig, somebody: Visitor) -> None:
    session = rig.say("plain 20")["session"]
    rig.wait_idle(session)
    first = rig.messages(session)[-1]["id"]
    rig.api("POST", f"/api/sessions/{session}/messages/{first}/rerun", {})
    rig.wait_idle(session)
    second = rig.messages(session)[-1]["id"]
    judge(somebody.open(path=f"#/s/{session}/compare/{first}/{second}"), "compare")


@pytest.mark.parametrize("look", LOOKS)
def test_the_way_in(rig: Rig, browser: Browser, look: str) -> None:
    stranger = visitor(rig, browser, **LOOKS[look])
    screen = stranger.open()
    judge(screen, "log in")
    stranger.context.close()
    stranger.check()


def test_the_judge_can_tell(somebody: Visitor) -> None:
    screen = somebody.open()
    settle(screen)
    screen.page.evaluate("() => { document.querySelector('main').append(document.createElement('button')); }")
    assert any("button-name" in line for line in axe(screen.page))
