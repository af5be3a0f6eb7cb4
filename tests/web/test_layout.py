"""How the page stands on every kind of screen: nothing reaches out of it, nothing is clipped, nothing is in another language.

With EVERTURN_SHOTS=DIR there is a picture of each screen, to be looked at: eight of each, by theme, width and language.
"""

from __future__ import annotations

import os
import re
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.browser import DESK, PHONE
from tests.helpers.scripted_server.server import Rig
from tests.helpers.waiting import wait_until_sync
from tests.web.conftest import Visit

SHOTS: Final = os.environ.get("EVERTURN_SHOTS", "")
PAGES: Final = ("", "#/inbox", "#/permissions", "#/mcp", "#/memory", "#/usage", "#/settings")
TALKS: Final = ("mail", "review", "form", "parallel", "table", "error")
# What is written in Latin letters in Chinese, too: names of the rig and of the project, and words such as JSON.
NAMES: Final = re.compile(
    r"Everturn|Ctrl|[Tt]oken|MCP|JSON|JavaScript|OAuth|CSS|HTTPS?|English|rig-(model|other)|garden|missing|assistant|brief|timely"
    r"|local|operator|[a-z]+_[a-z_]+|\b(look|weather|run|slow|lookup|errand|inquire|measure|draw|forbidden|fail|researcher)\b"
    r"|Ada|Grace|builtin|files|python|" + "|".join(TALKS)
)
STANDS: Final = """
() => {
  const wrong = [];
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) wrong.push(`${root.scrollWidth} pixels wide in a window of ${innerWidth}`);
  for (const what of ["h1", "main"]) {
    const count = document.querySelectorAll(what).length;
    if (count !== 1) wrong.push(`${count} times ${what}`);
  }
  const levels = [...document.querySelectorAll("main :is(h1, h2, h3, h4, h5, h6)")].filter((one) => one.checkVisibility()).map((one) => +one.tagName[1]);
  levels.forEach((level, at) => { if (level > (levels[at - 1] ?? 0) + 1) wrong.push(`a heading of level ${level} follows one of level ${levels[at - 1] ?? 0}`); });
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) wrong.push(`the id ${id} twice`);
  for (const one of document.querySelectorAll("h1, h2, h3, button, a.button")) {
    if (!one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || one.closest(".sidebar, .skip, .visually-hidden")) continue;
    const box = one.getBoundingClientRect();
    if (box.width <= 1 || !one.textContent.trim() || one.closest("pre, .table, .hidden-wide")) continue;
    if (box.left < -1 || box.right > innerWidth + 1) wrong.push(`${one.tagName} "${one.textContent.trim()}" from ${box.left} to ${box.right}`);
    if (one.tagName === "BUTTON" && one.scrollWidth > one.clientWidth + 1) wrong.push(`"${one.textContent.trim()}" does not fit its button`);
  }
  return wrong;
}
"""
NAMED: Final = """
() => [...document.querySelectorAll("button, [role=menuitem], h1, h2, h3, label > .label, nav a, summary")]
  .filter((one) => one.checkVisibility() && !one.closest(".sessions, .suggestions, .gate .schema-form, .message.user, .tool-card summary, pre, code"))
  .map((one) => (one.getAttribute("aria-label") || one.innerText || "").replace(/\\s+/g, " ").trim())
"""
SHORT: Final = {("light", "phone", "zh"), ("dark", "desk", "en")}  # what CI looks at: each of the six once
LOOKS: Final = [
    pytest.param(*look, id="-".join(look), marks=[] if look in SHORT else [pytest.mark.long])
    for look in product(("light", "dark"), ("desk", "phone"), ("en", "zh"))
]


@pytest.fixture(scope="module")
def talks(rig: Rig) -> dict[str, str]:
    """A conversation of each kind, as far as it goes without anybody."""
    sessions = {word: rig.say(word)["session"] for word in TALKS}
    wait_until_sync(lambda: len(rig.gates()) == 3, 15, "the three questions were not asked")
    for word in ("parallel", "table", "error"):
        rig.wait_idle(sessions[word])
    return sessions


@pytest.mark.parametrize(("theme", "width", "language"), LOOKS)
def test_every_screen_stands(visit: Visit, talks: dict[str, str], theme: str, width: str, language: str) -> None:
    """Each screen fits, has one heading of the first level and one middle, skips no level of headings, and speaks one language."""
    options: dict[str, Any] = {**(PHONE if width == "phone" else DESK), "device_scale_factor": 1}
    locale = "zh-CN" if language == "zh" else "en-US"
    page = visit(color_scheme=theme, locale=locale, **options).open().page
    expect(page.locator("h1")).to_be_visible()
    wrong: list[str] = []
    for where in (*PAGES, *(f"#/s/{session}" for session in talks.values())):
        name = {session: word for word, session in talks.items()}.get(where[4:], where[2:] or "new")
        page.evaluate("(to) => { location.hash = to; }", where or "#/")
        _settled(page, name)
        wrong += [f"{name}: {problem}" for problem in page.evaluate(STANDS)]
        if language == "zh":
            foreign = [label for label in page.evaluate(NAMED) if re.search(r"[A-Za-z]{3,}", NAMES.sub("", label))]
            wrong += [f"{name}: not in Chinese: {label}" for label in foreign]
        if SHOTS:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(SHOTS) / f"{name}-{theme}-{width}-{language}.png")
    assert not wrong, "\n".join(wrong)


def _settled(page: Page, name: str) -> None:
    """Wait until what a screen is about is drawn."""
    inside = {"mail": ".gate", "review": ".gate", "form": ".gate", "parallel": ".tool-card", "table": "table"}
    selector = "#main [role=log] " + inside.get(name, "[data-message]") if name in TALKS else "#main h1"
    expect(page.locator(selector).first).to_be_visible()
    expect(page.locator("#main .spinner")).to_have_count(0)
