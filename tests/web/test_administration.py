"""An administrator's day on an empty installation: a key, a model and an agent, on the page, without a file and a restart."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.helpers.browser import PHONE
from tests.web.page_measurements import axe

LINK = re.compile(r"http://127\.0\.0\.1:\d+/\S*")
KEY = "sk-canary-0123456789abcdef"


@pytest.fixture
def link(tmp_path: Path) -> Iterator[str]:
    """The login link of a server with an empty home."""
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-u", "-m", "everturn", "serve", "--port", "0", "--store", str(tmp_path / "a.db")]
    server = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert server.stdout is not None
        found = next(match[0] for line in server.stdout if "login" in line and (match := LINK.search(line)))
        yield found
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


def test_a_key_a_model_and_an_agent_are_added_on_the_page(link: str, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(link)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="Administration").click()
    page.get_by_role("link", name="Models").click()
    page.get_by_role("button", name="Add a key").click()
    page.get_by_label("Provider").select_option("openai")
    page.get_by_role("textbox", name="API key").fill(KEY)
    look(page, "models-key-form")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("…cdef")).to_be_visible()
    for name, model in (("fast", "openai:gpt-5.2"), ("demo", "offline:demo")):
        page.get_by_role("button", name="Add a model").click()
        page.get_by_role("textbox", name=re.compile("^Name")).fill(name)
        page.get_by_placeholder("openai:gpt-5.2").fill(model)
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("button", name=f"Edit: {name}")).to_be_visible()
    look(page, "models")
    page.get_by_role("link", name="Agents").click()
    page.get_by_role("button", name="Create an agent").click()
    page.get_by_role("textbox", name=re.compile("^Name")).fill("helper")
    page.get_by_role("combobox", name=re.compile("^Model")).fill("demo")
    page.get_by_role("textbox", name="Instructions").fill("Answer in one sentence.")
    look(page, "agents-form")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Edit: helper").click()
    page.get_by_role("textbox", name="Instructions").fill("Answer in two sentences.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Version 2")).to_be_visible()
    page.get_by_role("button", name="Versions: helper").click()
    expect(page.locator(".admin ins").first).to_be_visible()
    look(page, "agents-versions")
    page.get_by_role("button", name="Restore: Version 1").click()
    expect(page.get_by_text("Version 3")).to_be_visible()
    expect(page.get_by_text("Answer in one sentence.")).to_be_visible()
    answers = page.evaluate("Promise.all(['/api/settings', '/api/audit'].map(async (u) => (await fetch(u)).text()))")
    assert "setting.put" in answers[1]
    assert KEY not in "".join(answers)
    phone_options: dict[str, Any] = {**PHONE, "color_scheme": "dark", "storage_state": context.storage_state()}
    phone = browser.new_context(**phone_options)
    small = phone.new_page()
    for name in ("models", "agents"):
        small.goto(page.url.split("#", maxsplit=1)[0] + f"#/admin/{name}")
        small.reload()
        expect(small.get_by_role("heading", level=1)).to_be_visible()
        small.wait_for_timeout(500)
        look(small, f"{name}-phone-dark")
