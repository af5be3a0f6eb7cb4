"""A person at the page: a browser that logs in by the link and the button, says things, and notes all that goes wrong."""

from __future__ import annotations

import re
from typing import Any, Final

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Request, expect

from tests.helpers.scripted_server.server import Rig
from tests.helpers.waiting import wait_until_sync
from tests.web.question_cards import ENGLISH, Question

NOISY: Final = ("error", "warning")
WATCH: Final = """
addEventListener('securitypolicyviolation', (event) =>
  console.error(`CSP ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
"""
PHONE: Final[dict[str, Any]] = {
    "viewport": {"width": 390, "height": 780},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}
DESK: Final[dict[str, Any]] = {"viewport": {"width": 1280, "height": 860}}


class Visitor:
    """Somebody with a browser of their own: one login, any number of tabs."""

    def __init__(self, rig: Rig, context: BrowserContext) -> None:
        self.rig, self.context = rig, context
        self.wrong: list[str] = []  # errors on a console, violations of the policy, requests to elsewhere
        self._forgiven: list[re.Pattern[str]] = []
        context.set_default_timeout(60_000)
        context.add_init_script(WATCH)
        context.on("console", self._said)
        context.on("request", self._asked)
        context.on("weberror", lambda error: self.wrong.append(f"thrown: {error.error}"))

    def forgive(self, pattern: str) -> None:
        """What this test brings about by itself, such as a server that is not there."""
        self._forgiven.append(re.compile(pattern))

    def check(self) -> None:
        """Nothing went wrong.

        Raises:
            AssertionError: something did.
        """
        wrong = [text for text in self.wrong if not any(pattern.search(text) for pattern in self._forgiven)]
        assert not wrong, "\n".join(wrong)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in NOISY:
            self.wrong.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self.rig.url}/", "data:", "blob:")):
            self.wrong.append(f"asked for {request.url}")

    def log_in(self, user: str = "local", link: str = "") -> None:
        """By a link such as the command prints, and the button behind it."""
        page = self.context.new_page()
        page.goto(link or self.rig.login_link(user))
        page.get_by_role("button").click()
        page.wait_for_url(f"{self.rig.url}/")
        page.close()

    def open(self, session: str = "", path: str = "") -> Screen:
        """A tab: with a session, another page of it (`#/inbox`), or where a new conversation begins."""
        page = self.context.new_page()
        page.goto(f"{self.rig.url}/{path or (f'#/s/{session}' if session else '')}")
        return Screen(self.rig, page)


class Screen:
    """A tab, by what a person finds there: roles and labels, in the language that it speaks."""

    def __init__(self, rig: Rig, page: Page) -> None:
        self.rig, self.page = rig, page

    @property
    def session(self) -> str:
        """The session that is shown."""
        found = re.search(r"#/s/([^/]+)", self.page.url)
        return found[1] if found else ""

    # ------------------------------------------------------------------------------------------------- what is there

    @property
    def box(self) -> Locator:
        """Where one writes."""
        return self.page.locator("#main form.composer textarea.composer-text").last

    @property
    def log(self) -> Locator:
        """What was said."""
        return self.page.get_by_role("log")

    def said(self) -> Locator:
        """The messages of people."""
        return self.log.locator('[data-message][data-role="user"]')

    def answer(self) -> Locator:
        """The last answer."""
        return self.log.locator('[data-message][data-role="assistant"]').last

    def answer_text(self) -> Locator:
        """The text of the last answer, where it is one piece."""
        return self.answer().locator(".part.text")

    def cards(self, tool: str) -> Locator:
        """The cards of the calls of a tool."""
        return self.log.locator(f'[data-call][aria-label^="{tool}:"]')

    def question(self, tool: str, words: dict[str, str] = ENGLISH) -> Question:
        """The first question about a tool that stands open."""
        heading = self.page.get_by_role("heading", name=tool)
        place = self.page.locator("[data-gate][data-open]").filter(has=heading).first
        self._open_row(place, self.page.locator(f'[data-gate-row][data-tool="{tool}"]').first)
        return Question(self.page, place, words)

    def question_of(self, gate: str) -> Question:
        """A question by its id."""
        place = self.page.locator(f'[data-gate="{gate}"][data-open]')
        self._open_row(place, self.page.locator(f'[data-gate-row="{gate}"]'))
        return Question(self.page, place)

    def _open_row(self, card: Locator, row: Locator) -> None:
        """Many questions are rows: open one, unless its card is there."""
        expect(card.or_(row).first).to_be_visible(timeout=60_000)
        if not card.count():
            row.locator(".toggle").click()

    def sees(self, text: str | re.Pattern[str], seconds: float = 60.0) -> None:
        """It is somewhere in what was said."""
        expect(self.log).to_contain_text(text, timeout=seconds * 1000)

    def wait_idle(self, seconds: float = 60.0) -> None:
        """Wait until the session is at rest, and the page shows it."""
        wait_until_sync(
            lambda: self.session and self.rig.is_idle(self.session), seconds, "the session did not come to rest"
        )
        expect(self.log.locator(".turn-status")).to_have_count(0)

    # -------------------------------------------------------------------------------------------------- what one does

    def say(self, text: str) -> str:
        """Write it and press Enter; the session that it is said in."""
        known = self.session
        self.box.fill(text)
        self.box.press("Enter")
        if known:
            expect(self.said().last).to_contain_text(text.split()[0])
        else:
            self.page.wait_for_url(re.compile(r"#/s/"))
        return self.session

    def queue(self, text: str) -> None:
        """Say something while a turn runs: it waits."""
        self.box.fill(text)
        self.box.press("Enter")
        expect(self._queued(text)).to_be_visible()

    def take_back(self, text: str) -> None:
        """Take back what waits."""
        self._queued(text).get_by_role("button", name="Take back").click()

    def _queued(self, text: str) -> Locator:
        return self.page.locator("ul.queue li").filter(has_text=text)

    def edit(self, old: str, new: str) -> None:
        """Put another text in the place of a message."""
        message = self.said().filter(has_text=old)
        message.hover()
        message.get_by_role("button", name="Edit").click()
        self.log.get_by_role("textbox", name="Edit your message").fill(new)
        self.log.get_by_role("textbox", name="Edit your message").press("Enter")

    def more(self, message: Locator, label: str) -> None:
        """Choose from the menu of a message."""
        message.hover()
        message.get_by_role("button", name="More").click()
        self.page.get_by_role("menuitem", name=label).click()

    def stop(self) -> None:
        """Press the button that stops the turn."""
        self.page.get_by_role("button", name="Stop", exact=True).click()

    def reload(self) -> None:
        """Load the page anew."""
        self.page.reload()


def visitor(rig: Rig, browser: Browser, state: Any = None, **options: Any) -> Visitor:
    """Somebody new; `state` is a login from before."""
    how: dict[str, Any] = {**DESK, "locale": "en-US", "color_scheme": "light", "reduced_motion": "reduce", **options}
    return Visitor(rig, browser.new_context(storage_state=state, **how))
