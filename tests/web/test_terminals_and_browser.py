"""Two terminals and a real browser on one store: the terminal that serves the web UI is killed, and the others continue."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.tui.test_two_terminals import BEGUN, command, owner_of, watched
from tests.web.question_cards import Question

pytestmark = [pytest.mark.live, pytest.mark.timeout(420)]
SLOW = 60_000  # ms: a new process takes the store over meanwhile, on a machine that may be busy


def test_a_browser_continues_when_the_terminal_that_serves_it_is_killed(browser: Browser, tmp_path: Path) -> None:
    store = tmp_path / "data" / "everturn" / "everturn.db"
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    with watched(tmp_path, "chat") as first, watched(tmp_path, "chat") as second:
        first.sees(BEGUN)
        second.sees(BEGUN)
        owner, other = (first, second) if owner_of(store) == first.pid else (second, first)
        other.sees("connected to it")
        page.goto(command(tmp_path, "login").strip())
        page.get_by_role("button").click()
        box = page.locator("#main form.composer textarea.composer-text").last
        box.fill("take a note: milk")
        box.press("Enter")
        page.wait_for_url(re.compile(r"#/s/"))
        question = page.locator("[data-gate][data-open]").filter(has=page.get_by_role("heading", name="take_note"))
        expect(question).to_be_visible(timeout=SLOW)
        other.types("\x0f")  # the list of sessions: this one was used last
        other.sees(r"take a note")
        other.types("\r")
        other.sees("take_note")

        os.kill(owner.pid, signal.SIGKILL)
        other.sees("The other everturn process")
        Question(page, question).allow()
        log = page.get_by_role("log")
        expect(log).to_contain_text("noted: milk", timeout=SLOW)  # the same tab, without a reload
        other.sees("noted: milk")
        box.fill("delta from the browser")
        box.press("Enter")
        other.sees("delta from the browser")
        other.types("epsilon from the terminal\r")
        expect(log).to_contain_text("epsilon from the terminal", timeout=SLOW)

        sent = [
            re.compile(text) for text in ("take a note: milk", "delta from the browser", "epsilon from the terminal")
        ]
        messages = log.locator('[data-message][data-role="user"]')
        expect(messages).to_have_text(sent, timeout=SLOW)  # each once, in this order
        page.reload()
        expect(messages).to_have_text(sent, timeout=SLOW)
        other.types("\x11")
        assert other.ends() == 0
    context.close()
