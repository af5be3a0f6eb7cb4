"""An administrator's day, from an empty installation: a key, a model, an MCP server, an agent and a user, all on the page.

The user chats, and an approval reaches a second browser, on the screen of a phone. No file is edited, and nothing starts
again: the server has a store that does not exist yet, and no configuration file.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from everturn.testing.provider import Call, Provider, Say
from tests.helpers.browser import PHONE
from tests.helpers.offering_mcp_server import offering_server
from tests.web.page_measurements import axe

LINK = re.compile(r"http://127\.0\.0\.1:\d+/\S*")
SLOW = 60_000  # ms: a first connection loads a library, on a machine that may be busy
KEY, TOKEN = "sk-canary-0123456789abcdef", "Bearer canary-token-0123456789"


class World:
    """A model server and an MCP server, in a thread with an event loop of its own."""

    def __init__(self) -> None:
        self.provider, self.mcp = "", ""
        self._loop = asyncio.new_event_loop()
        self._is_ready, self._leave = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)

    async def _serve(self) -> None:
        async with Provider() as provider, offering_server() as mcp:
            call = [Call("notes_add", '{"a": 40, "b": 2}')]
            provider.script("adder", [call, [Say("Together that is 42.")]])
            self.provider, self.mcp = f"{provider.url}/v1", mcp
            self._is_ready.set()
            await self._leave.wait()

    def __enter__(self) -> World:
        self._thread.start()
        assert self._is_ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._leave.set)
        self._thread.join(30)


@pytest.fixture
def world() -> Iterator[World]:
    """The servers that the administrator names."""
    with World() as opened:
        yield opened


@pytest.fixture
def link(world: World, tmp_path: Path) -> Iterator[str]:
    """The login link of a server with an empty home."""
    hosts = [address.split("/")[2] for address in (world.provider, world.mcp)]
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    environ["EVERTURN_SETTINGS__ALLOW"] = str(hosts)  # the servers of this test are on this machine
    command = [sys.executable, "-u", "-m", "everturn", "serve", "--port", "0", "--store", str(tmp_path / "a.db")]
    server = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert server.stdout is not None
        yield next(match[0] for line in server.stdout if "login" in line and (match := LINK.search(line)))
        assert server.poll() is None, "it is the process that was started"
    finally:
        server.terminate()
        server.wait(30)
        if server.stdout is not None:
            server.stdout.close()


def look(page: Page, name: str) -> None:
    """Take a picture where somebody asked for them, and let axe judge."""
    if folder := os.environ.get("EVERTURN_PICTURES"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)
    assert axe(page) == [], name
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name}: it scrolls sideways"


def section(page: Page, name: str) -> None:
    page.locator(".admin nav").get_by_role("link", name=name, exact=True).click()


def add_model(page: Page, world: World) -> None:
    """A key of a provider, and a model at a server of one's own, with its key."""
    section(page, "Models")
    page.get_by_role("button", name="Add a key").click()
    page.get_by_label("Provider").select_option("openai")
    page.get_by_role("textbox", name="API key").fill(KEY)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("…cdef")).to_be_visible()
    page.get_by_role("button", name="Add a model").click()
    page.get_by_role("textbox", name=re.compile("^Name")).fill("house")
    page.get_by_placeholder("openai:gpt-5.2").fill("compatible:adder")
    page.get_by_label("Base URL").fill(world.provider)
    page.get_by_role("textbox", name="API key").fill(KEY)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="Edit: house")).to_be_visible()


def add_server(page: Page, world: World) -> None:
    """An MCP server with a secret, whose tools are looked at and trusted."""
    section(page, "MCP servers")
    page.get_by_role("button", name="Add a server").click()
    page.get_by_role("textbox", name=re.compile("^Name")).fill("notes")
    page.get_by_label("URL").fill(world.mcp)
    page.get_by_label("Header (optional)").fill("Authorization")
    page.get_by_label("Value of Authorization").fill(TOKEN)
    look(page, "mcp-form")
    page.get_by_role("button", name="Save").click()
    server = page.get_by_role("article", name="notes")
    expect(server.get_by_text("new or changed")).to_be_visible(timeout=SLOW)
    look(page, "mcp-waits")
    server.get_by_role("button", name="Review and trust…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("new tool add")
    look(page, "mcp-trust")
    dialog.get_by_role("button", name="Trust it as shown").click()
    expect(page.get_by_text("1 tool is trusted.")).to_be_visible(timeout=SLOW)
    expect(server.get_by_text("new or changed")).to_have_count(0, timeout=SLOW)


def add_agent(page: Page) -> None:
    section(page, "Agents")
    page.get_by_role("button", name="Create an agent").click()
    page.get_by_role("textbox", name=re.compile("^Name")).fill("helper")
    page.get_by_role("combobox", name=re.compile("^Model")).fill("house")
    page.get_by_role("textbox", name="Instructions").fill("Add numbers with the tool.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="Edit: helper")).to_be_visible()


def invited(page: Page, user: str) -> str:
    section(page, "Invitations")
    page.get_by_label("User id").fill(user)
    page.get_by_role("button", name="Create invitation").click()
    dialog = page.get_by_role("dialog", name="Invitation link")
    invitation = dialog.locator("code").inner_text()
    dialog.get_by_role("button", name="Close").last.click()
    return invitation


@pytest.mark.timeout(300)
def test_a_day_from_an_empty_installation_to_an_answered_approval(world: World, link: str, browser: Browser) -> None:
    desk = browser.new_context(viewport={"width": 1440, "height": 900})
    page = desk.new_page()
    page.goto(link)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="Administration").click()
    add_model(page, world)
    add_server(page, world)
    add_agent(page)
    page.evaluate("location.hash = '#/'")
    expect(page.locator(".pickers")).to_contain_text("house")  # no reload, and no choice: the demo has done its part
    expect(page.get_by_text("No model is set up yet")).to_have_count(0)
    page.get_by_role("link", name="Administration").click()
    invitation = invited(page, "ben")
    site = page.url.split("#", maxsplit=1)[0]

    person = browser.new_context()
    chat = person.new_page()
    chat.goto(invitation)
    chat.get_by_role("button", name="Accept and log in").click()
    expect(chat.locator(".sidebar .account")).to_contain_text("ben", timeout=SLOW)
    chat.locator(".pickers").get_by_role("button").first.click()
    chat.get_by_role("menu").get_by_text("helper", exact=True).click()
    chat.locator("textarea.composer-text").last.fill("What is 40 + 2?")
    chat.keyboard.press("Enter")
    expect(chat.get_by_text("Only approvers can answer this")).to_be_visible(timeout=SLOW)

    options: dict[str, Any] = {**PHONE, "color_scheme": "dark", "storage_state": desk.storage_state()}
    phone = browser.new_context(**options)
    small = phone.new_page()
    small.goto(f"{site}#/inbox")
    gate = small.locator("[data-gate][data-open]").first
    expect(gate).to_be_visible(timeout=SLOW)
    look(small, "approval-phone")
    expect(gate).to_contain_text("notes_add")
    gate.get_by_role("button", name="Allow once").last.click()
    expect(chat.get_by_role("log")).to_contain_text("Together that is 42.", timeout=SLOW)

    section(page, "Usage")
    expect(page.get_by_role("row").filter(has_text="ben")).to_be_visible()
    section(page, "Audit log")
    for target in ("key:openai", "model:house", "mcp:notes", "agent:helper"):
        expect(page.get_by_role("row").filter(has_text=target).first).to_contain_text("setting.put")
    expect(page.get_by_role("row").filter(has_text="invitation.accept")).to_contain_text("ben")
    pages = "['/api/settings', '/api/audit', '/api/mcp', '/api/sessions']"
    answers = page.evaluate(f"Promise.all({pages}.map(async (u) => (await fetch(u)).text()))")
    assert KEY not in "".join(answers)
    assert TOKEN.removeprefix("Bearer ") not in "".join(answers)
    looks: dict[str, dict[str, Any]] = {
        "desk": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
        "phone-zh": {**PHONE, "color_scheme": "dark", "locale": "zh-CN"},
    }
    for name, chosen in looks.items():
        shown = browser.new_context(**chosen, storage_state=desk.storage_state()).new_page()
        shown.goto(f"{site}#/admin/mcp")
        expect(shown.get_by_role("article", name="notes")).to_be_visible(timeout=SLOW)
        look(shown, f"mcp-{name}")
