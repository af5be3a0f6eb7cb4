"""The server, a browser and somebody at it, for every test of the page. One server per file of tests, one browser for all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Playwright, expect, sync_playwright

from everturn.server.routes.web_ui import BUILD_DIRECTORY, BUILD_VARIABLE
from tests.helpers.browser import Screen, Visitor, visitor
from tests.helpers.scripted_server.server import Rig, a_rig

CHROMIUM: Final = os.environ.get("EVERTURN_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome") or ""
ARGUMENTS: Final = ("--no-sandbox", "--disable-dev-shm-usage")
expect.set_options(timeout=60_000)  # milliseconds; only a test that fails waits so long, whatever else the machine does

Visit = Callable[..., Visitor]


def missing(reason: str) -> None:
    """Leave a test out, and say why; where everything has to be there, that is a failure."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """The server, with the page."""
    web = os.environ.get(BUILD_VARIABLE, "")
    if not (Path(web or BUILD_DIRECTORY) / "index.html").is_file():
        missing("the page is not built; run scripts/web")
    with a_rig(web=web) as server:
        yield server


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """The driver of browsers: one for this folder, as starting it costs a second. Tests of other folders have a loop of their own."""
    if not CHROMIUM:
        missing("there is no Chromium; install one, or name it in EVERTURN_CHROMIUM")
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """A real one, without a window. Each test has a context of its own in it: nothing is kept from one to the next."""
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
    yield chromium
    chromium.close()


@pytest.fixture(scope="module")
def _logins(rig: Rig, browser: Browser) -> dict[str, Any]:
    """What a browser keeps of a login, by user: each logs in once."""
    return {}


@pytest.fixture
def visit(rig: Rig, browser: Browser, _logins: dict[str, Any]) -> Iterator[Visit]:
    """Let somebody come: `visit("viewer", **PHONE)`. At the end nothing must have gone wrong in front of anybody."""
    came: list[Visitor] = []

    def come(user: str = "local", **options: Any) -> Visitor:
        if user not in _logins:
            first = visitor(rig, browser)
            first.log_in(user)
            _logins[user] = first.context.storage_state()
            first.check()
            first.context.close()
        came.append(visitor(rig, browser, _logins[user], **options))
        return came[-1]

    yield come
    for guest in came:
        guest.context.close()
    for guest in came:
        guest.check()


@pytest.fixture
def screen(visit: Visit) -> Screen:
    """The local operator, where a new conversation begins."""
    return visit().open()
