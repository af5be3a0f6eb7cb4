"""A question on the page, and the ways to answer it: as a person does, by what the buttons say."""

from __future__ import annotations

import re
from typing import Final

from playwright.sync_api import Locator, Page, expect

ENGLISH: Final = {
    "once": "Allow once",
    "always": "Always",
    "store": "Allow and store the rule",
    "deny": "Deny",
    "edit": "Edit",
    "edited": "Allow once with these",
    "as it is": "Send as it is",
    "redacted": "Send redacted",
    "withhold": "Withhold",
    "redact all": "Redact all matches",
    "answer": "Send the answer",
    "by hand": "I did it myself",
    "hand in": "Submit result",
}
CHINESE: Final = {"once": "允许一次", "deny": "拒绝", "as it is": "原样发送", "redacted": "发送遮盖后的内容"}
SELECT: Final = """
(place, text) => {
  const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const at = node.data.indexOf(text);
    if (at < 0) continue;
    const range = document.createRange();
    range.setStart(node, at);
    range.setEnd(node, at + text.length);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return true;
  }
  return false;
}
"""


class Question:
    """A question that stands open."""

    def __init__(self, page: Page, place: Locator, words: dict[str, str] = ENGLISH) -> None:
        expect(place).to_be_visible(timeout=60_000)
        gate = place.get_attribute("data-gate")
        self.page, self.place, self._words = page, page.locator(f'[data-gate="{gate}"][data-open]'), words

    def click(self, choice: str) -> None:
        """Press a button, once the question has stood still long enough to be answered at all."""
        name = re.compile(f"^{self._words[choice]}(?! and stop|并停止)")
        button = self.place.get_by_role("button", name=name).last
        button.scroll_into_view_if_needed()
        self.is_steady()
        button.click()

    def is_gone(self) -> None:
        """It was answered."""
        expect(self.place).to_have_count(0)

    def press(self, key: str) -> None:
        """Press a key while the question has the focus."""
        self.place.focus()
        self.page.wait_for_timeout(450)  # keys count when it has had the focus for a moment
        self.is_steady()
        self.page.keyboard.press(key)

    def is_steady(self) -> None:
        """It has stood still long enough to be answered; it looks ten times a second."""
        self.page.wait_for_timeout(200)
        expect(self.place).to_have_attribute("data-steady", "true")

    def allow(self) -> None:
        """Let it run as it is."""
        self.click("once")
        self.is_gone()

    def allow_with(self, field: str, value: str) -> None:
        """Let it run with another argument."""
        self.click("edit")
        label = self.page.locator(".label").get_by_text(field, exact=True)
        self.place.locator("label.field").filter(has=label).get_by_role("textbox").fill(value)
        self.click("edited")
        self.is_gone()

    def always(self) -> None:
        """Let it run from now on, by the rule that is offered."""
        self.click("always")
        self.click("store")
        self.is_gone()

    def deny(self, reason: str = "") -> None:
        """Say no, and why."""
        self.click("deny")
        self.place.get_by_role("textbox").fill(reason)
        self.click("deny")
        self.is_gone()

    def redact(self, text: str) -> None:
        """Select a text with the mouse, as it were, and take it out wherever it stands."""
        assert self.place.locator("pre.text").evaluate(SELECT, text)
        self.click("redact all")
        expect(self.place.locator("pre.text")).not_to_contain_text(text)

    def send(self, choice: str = "as it is") -> None:
        """Let the model read the result: as it is, or what is left of it (`redacted`)."""
        self.click(choice)
        self.is_gone()

    def withhold(self, reason: str) -> None:
        """Keep the result from the model, and say why."""
        self.click("withhold")
        self.place.get_by_role("textbox").last.fill(reason)
        self.click("withhold")
        self.is_gone()

    def manual(self, result: str) -> None:
        """Say what came of it, having done it oneself."""
        self.click("by hand")
        self.place.get_by_role("textbox").fill(result)
        self.click("hand in")
        self.is_gone()
