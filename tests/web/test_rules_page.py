"""Permission rules on the page: a draft that is explained, compared with past calls, saved, undone, and decides at once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.helpers.browser import PHONE
from tests.helpers.waiting import wait_until_sync
from tests.web.page_measurements import axe

LINK = re.compile(r"http://127\.0\.0\.1:\d+/\S*")
SLOW = 60_000  # ms
CONFIG = """
[[permissions]]
tool = "take_note"
match = { text = "*password*" }
action = "deny"
"""


class Server:
    """A running server: its login link, and its HTTP API."""

    def __init__(self, link: str, token: str) -> None:
        self.link, self.token = link, token
        self.site = "/".join(link.split("/")[:3])

    def ask(self, method: str, path: str, body: Any = None, token: str = "") -> Any:
        headers = {"authorization": f"Bearer {token or self.token}", "content-type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.site + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.loads(response.read() or b"null")

    def say(self, text: str, token: str = "") -> str:
        """Start a conversation, and wait until its turn is over or asks."""
        sent = self.ask("POST", "/api/sessions", {"text": text}, token)
        path = f"/api/sessions/{sent['session']}/turns/{sent['turn']}"

        def is_over() -> bool:
            return self.ask("GET", path, token=token)["phase"] in ("completed", "waiting")

        assert wait_until_sync(is_over)
        return str(sent["session"])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with the demo model and one rule of a file; `local` and `ben` have made calls."""
    (tmp_path / "everturn.toml").write_text(CONFIG)
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-u", "-m", "everturn", "serve", "--port", "0", "--store", str(tmp_path / "a.db")]
    command += ["--config", str(tmp_path / "everturn.toml")]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        link = next(match[0] for line in process.stdout if "login" in line and (match := LINK.search(line)))
        opened = Server(link, (tmp_path / "operator.token").read_text().strip())
        opened.ask("PUT", "/api/users/ben", {"role": "member"})
        ben = opened.ask("POST", "/api/keys", {"user": "ben", "role": "member"})["secret"]
        for text in ('take_note {"text": "buy milk"}', "current_time", "current_time"):
            opened.say(text)
        for number in range(6):
            opened.say(f'take_note {{"text": "the diary of ben {number}"}}', ben)
        yield opened
    finally:
        process.terminate()
        process.wait(30)
        if process.stdout is not None:
            process.stdout.close()


def look(page: Page, name: str) -> None:
    """Take a picture where somebody asked for them, and let axe judge."""
    if folder := os.environ.get("EVERTURN_PICTURES"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)
    assert axe(page) == [], name
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name}: it scrolls sideways"


def add_rule(page: Page, action: str, tool: str, match: tuple[str, str] | None = None, note: str = "") -> None:
    page.get_by_role("button", name="Add a rule").click()
    form = page.locator(".rules .editor")
    form.get_by_label("Action").select_option(action)
    form.get_by_role("combobox", name=re.compile("^Tool")).fill(tool)
    if match is not None:
        form.get_by_role("button", name="Add an argument").click()
        form.get_by_role("combobox", name="Argument").fill(match[0])
        form.get_by_role("textbox", name=re.compile("^Pattern")).fill(match[1])
    form.get_by_role("textbox", name=re.compile("^Note")).fill(note)


def review(page: Page) -> Locator:
    page.get_by_role("button", name="Review and save").click()
    dialog = page.get_by_role("dialog", name="Review the changes")
    expect(dialog.get_by_role("heading", name="Past calls")).to_be_visible(timeout=SLOW)
    return dialog


def save(page: Page, dialog: Locator, version: int) -> None:
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0, timeout=SLOW)
    expect(page.get_by_text(f"Version {version}", exact=True)).to_be_visible(timeout=SLOW)


@pytest.mark.timeout(300)
def test_rules_are_drafted_tried_on_past_calls_saved_and_restored(server: Server, browser: Browser) -> None:
    desk = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    page = desk.new_page()
    page.goto(server.link)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="Administration").click()
    page.locator(".admin nav").get_by_role("link", name="Rules", exact=True).click()
    expect(page.get_by_text("No rules are stored.")).to_be_visible(timeout=SLOW)
    expect(page.get_by_role("region", name="Rules from everturn.toml")).to_contain_text("*password*")
    look(page, "rules-empty")

    add_rule(page, "deny", "current_time", note="The clock of the server is wrong this week")
    look(page, "rules-form")
    page.get_by_role("button", name="Apply to the draft").click()
    add_rule(page, "ask", "take_note", ("text", "*diary*"))
    look(page, "rules-form-argument")
    page.get_by_role("button", name="Apply to the draft").click()
    page.get_by_role("button", name="Move up: Rule 2").click()
    expect(page.locator(".rules .item").first).to_contain_text("*diary*")
    look(page, "rules-draft")
    form = page.get_by_role("region", name="What would happen?")
    form.get_by_label("Tool").select_option("current_time")
    form.get_by_label("Arguments, as JSON").fill("{}")
    form.get_by_role("button", name="Explain").click()
    expect(form).to_contain_text("It would be denied", timeout=SLOW)
    look(page, "rules-explained")

    dialog = review(page)
    group = dialog.locator(".groups > li")
    expect(group).to_have_count(1)
    expect(group).to_contain_text("2 calls")
    expect(dialog.get_by_text("loosens")).to_have_count(0)
    group.get_by_text("2 examples").click()
    expect(group.get_by_role("link").first).to_be_visible()
    assert "ben" not in dialog.inner_text()
    look(page, "rules-review")
    assert "current_time" not in {row["text"] for row in server.ask("GET", "/api/settings/rules")["stored"]["rules"]}
    save(page, dialog, 1)
    look(page, "rules-saved")
    denied = server.ask("GET", f"/api/sessions/{server.say('current_time')}/messages")
    assert "settings:2" in json.dumps(denied), "the next call is decided by it, without a restart"

    page.get_by_role("checkbox", name="Enabled: Rule 2").uncheck()
    add_rule(page, "allow", "take_nota")
    page.get_by_role("button", name="Apply to the draft").click()
    dialog = review(page)
    expect(dialog.get_by_text("This change loosens rules")).to_be_visible()
    expect(dialog).to_contain_text("no such tool at present")
    expect(dialog.locator(".groups > li")).to_contain_text(re.compile("current_time.*deny.*would be.*allow", re.DOTALL))
    look(page, "rules-review-loosens")
    save(page, dialog, 2)

    page.get_by_role("button", name="Versions").click()
    expect(page.locator(".admin ins").first).to_be_visible(timeout=SLOW)
    look(page, "rules-versions")
    page.get_by_role("button", name="Restore: Version 1").click()
    dialog = page.get_by_role("dialog", name="Review the changes")
    expect(dialog.get_by_role("heading", name="Past calls")).to_be_visible(timeout=SLOW)
    save(page, dialog, 3)
    expect(page.get_by_role("checkbox", name="Enabled: Rule 2")).to_be_checked()

    page.get_by_role("button", name="Remove: Rule 1").click()
    page.get_by_role("button", name="Remove: Rule 1").click()
    add_rule(page, "deny", "take_note")
    page.get_by_role("button", name="Apply to the draft").click()
    dialog = review(page)
    notes = dialog.locator(".groups > li").filter(has_text="take_note")
    expect(notes).to_contain_text("7 calls")
    expect(notes).to_contain_text("6 in conversations that you may not see")
    assert "diary of" not in dialog.inner_text()
    look(page, "rules-review-private")
    rows = server.ask("GET", "/api/audit")
    assert "setting.dry_run" in json.dumps(rows)

    looks: dict[str, dict[str, Any]] = {
        "desk-dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
        "desk-zh": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light", "locale": "zh-CN"},
        "phone": {**PHONE, "color_scheme": "light"},
        "phone-zh": {**PHONE, "color_scheme": "dark", "locale": "zh-CN"},
    }
    for name, options in looks.items():
        context = browser.new_context(**options, storage_state=desk.storage_state())
        shown = context.new_page()
        shown.goto(f"{server.site}/#/admin/rules")
        expect(shown.locator(".rules .item")).to_have_count(2, timeout=SLOW)
        look(shown, f"rules-{name}")
        shown.locator(".rules .item").nth(1).get_by_role("button").nth(2).click()
        look(shown, f"rules-edit-{name}")
        shown.locator(".rules .editor select").select_option("allow")
        shown.locator(".rules .editor button[type=submit]").click()
        shown.locator(".rules .unsaved .primary").click()
        expect(shown.locator(".review .groups > li")).to_have_count(1, timeout=SLOW)
        shown.locator(".review .groups summary").first.click()
        look(shown, f"rules-review-{name}")
        context.close()
