"""Schedules, webhooks and inbound hooks on the page: a schedule fires, a delivery is replayed, a signed request starts a turn."""

from __future__ import annotations

import http.client
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from everturn.core.webhooks import sign_payload
from everturn.inbound_hooks import sign_delivery
from everturn.server.routes.web_ui import BUILD_DIRECTORY, BUILD_VARIABLE
from tests.helpers.browser import DESK, PHONE
from tests.helpers.scripted_server.server import Rig, a_rig
from tests.helpers.waiting import wait_until_sync
from tests.web.conftest import Visit, missing
from tests.web.page_measurements import AXE, axe

PICTURES = os.environ.get("EVERTURN_PICTURES", "")
CONFIGURED = """
[[schedules]]
id = "weekly"
text = "Summarize the week."
cron = "0 17 * * 5"
timezone = "Europe/Berlin"

[webhooks]
allow = ["127.0.0.1:{port}"]

[[webhooks.endpoints]]
id = "audit"
url = "http://127.0.0.1:{port}/audit"
events = ["turn.failed"]

[hooks.payments]
scheme = "standard"
secret = "${file:{secret}}"
action = "complete"
token = "data.reference"
"""
LOOKS: dict[str, dict[str, Any]] = {
    "desk": {**DESK, "viewport": {"width": 1440, "height": 900}},
    "desk-dark-zh": {**DESK, "viewport": {"width": 1440, "height": 900}, "locale": "zh-CN", "color_scheme": "dark"},
    "phone": PHONE,
    "phone-dark-zh": {**PHONE, "locale": "zh-CN", "color_scheme": "dark"},
}
SHORT = ("desk", "phone-dark-zh")


class Receiver:
    """Another system: notes what it is sent, and answers with a status."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.status = 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(receiver.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def types(self, path: str) -> list[str]:
        """The types of the events that came at a path."""
        return [json.loads(body)["type"] for where, _, body in self.requests if where == path]


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    """The other system."""
    endpoint = Receiver()
    yield endpoint
    endpoint.server.shutdown()
    endpoint.server.server_close()


@pytest.fixture(scope="module")
def rig(receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """The server, whose file has a schedule, a webhook and an inbound hook."""
    web = os.environ.get(BUILD_VARIABLE, "")
    if not (Path(web or BUILD_DIRECTORY) / "index.html").is_file():
        missing("the page is not built; run scripts/web")
    secret = tmp_path_factory.mktemp("secrets") / "payments"
    secret.write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    secret.chmod(0o600)
    more = CONFIGURED.replace("{port}", str(receiver.port)).replace("{secret}", str(secret))
    with a_rig(web=web, more=more) as server:
        yield server


def look(page: Page, name: str) -> None:
    """Nothing for axe, nothing that scrolls sideways; with EVERTURN_PICTURES, also a picture to be looked at."""
    if PICTURES:
        height = page.evaluate("Math.max(...[...document.querySelectorAll('main, main *')].map((e) => e.scrollHeight))")
        size = page.viewport_size
        assert size is not None
        page.set_viewport_size({"width": size["width"], "height": min(max(size["height"], height + 80), 4000)})
        page.screenshot(path=Path(PICTURES) / f"{name}.png")
        page.set_viewport_size(size)
    found = axe(page) if AXE.is_file() else []
    assert not found, "\n".join((name, *found))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name}: it scrolls sideways"


CREATE_SCHEDULE: Final = """
async (body) => {
  const { csrf } = await (await fetch("/api/me")).json();
  const headers = { "content-type": "application/json", "x-csrf-token": csrf };
  return (await fetch("/api/schedules", { method: "POST", headers, body: JSON.stringify(body) })).status;
}
"""


def test_a_schedule_is_created_paused_and_run_and_one_fires_by_itself(rig: Rig, visit: Visit) -> None:
    page = visit("member").open(path="#/schedules").page
    fixed = page.get_by_role("article", name="Summarize the week.")
    expect(fixed).to_contain_text("Every Friday at 5:00 PM")
    expect(fixed).to_contain_text("Fixed")
    expect(fixed.get_by_role("button", name="Pause")).to_have_count(0)
    page.get_by_role("button", name="Create a schedule").click()
    form = page.get_by_role("form", name="Create a schedule")
    form.get_by_label("Message").fill("echo: All systems ran.")
    form.get_by_label("Repeats").select_option("custom")
    form.get_by_label(re.compile("^Cron expression")).fill("61 * * * *")
    expect(form.get_by_role("status")).to_contain_text("minute hour day month weekday")  # the server's words
    form.get_by_label(re.compile("^Cron expression")).fill("* * * * *")
    form.get_by_label(re.compile("^Time zone")).fill("Asia/Tokyo")
    expect(form.get_by_role("status").get_by_role("listitem")).to_have_count(5)
    expect(form.get_by_role("status")).to_contain_text("Every minute")
    form.get_by_role("button", name="Save").click()
    card = page.get_by_role("article", name="echo: All systems ran.")
    expect(card).to_contain_text("Next run:")
    card.get_by_text(re.compile("^Next times")).click()
    card.get_by_role("button", name="Pause").click()
    expect(card.get_by_text("Paused")).to_be_visible()
    before = card.locator(".runs > li").count()
    card.get_by_role("button", name="Run now").click()
    expect(card.locator(".runs > li")).to_have_count(before + 1)
    expect(card.get_by_text("Completed").first).to_be_visible()
    look(page, "schedules-story")
    card.get_by_role("link", name="Open the conversation").first.click()
    expect(page.get_by_text("All systems ran.").last).to_be_visible()
    # A cron expression and the form know no seconds: a time that is near is told to the server itself.
    status = page.evaluate(CREATE_SCHEDULE, {"id": "near", "text": "echo: It is time.", "at": time.time() + 2})
    assert status == 201
    page.goto(f"{rig.url}/#/schedules")
    once = page.get_by_role("article", name="echo: It is time.")
    once.get_by_text(re.compile("^Next times")).click()
    expect(once.get_by_text("Completed")).to_be_visible()
    once.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(once).to_have_count(0)

    owner = visit().open(path="#/admin/schedules").page  # sees that there is one, and not what it says
    expect(owner.get_by_role("row", name=re.compile("member"))).to_contain_text("1")
    expect(owner.get_by_text("private to its author")).to_be_visible()
    expect(owner.get_by_text("All systems ran.")).to_have_count(0)
    expect(owner.get_by_role("link", name="Open the conversation")).to_have_count(0)
    theirs = owner.get_by_role("article", name=re.compile("schedule_"))
    expect(theirs.get_by_role("button", name="Edit")).to_have_count(0)
    theirs.get_by_role("button", name="Delete").click()
    owner.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(theirs).to_have_count(0)


def test_a_schedule_is_edited_and_people_see_their_own_alone(rig: Rig, visit: Visit) -> None:
    rig.api("POST", "/api/schedules", {"id": "mine", "text": "Of the operator.", "cron": "0 9 * * 1-5"})
    page = visit().open(path="#/schedules").page
    card = page.get_by_role("article", name="Of the operator.")
    expect(card).to_contain_text("Monday to Friday at 9:00 AM")
    card.get_by_role("button", name="Edit").click()
    form = page.get_by_role("form", name="Edit")
    form.get_by_label("Repeats").select_option("monthly")
    form.get_by_label(re.compile("^Day of the month")).fill("31")
    form.get_by_label("Time", exact=True).fill("18:30")
    form.get_by_label(re.compile("^If runs")).select_option("all")
    form.get_by_role("button", name="Save").click()
    expect(card).to_contain_text("On day 31 of every month at 6:30 PM")
    stored = rig.api("GET", "/api/schedules/mine")
    assert (stored["cron"], stored["catch_up"], stored["text"]) == ("30 18 31 * *", "all", "Of the operator.")
    other = visit("approver").open(path="#/schedules").page
    expect(other.get_by_role("article", name="Summarize the week.")).to_be_visible()
    expect(other.get_by_role("article", name="Of the operator.")).to_have_count(0)
    viewer = visit("viewer").open(path="#/schedules").page
    expect(viewer.get_by_role("article", name="Summarize the week.")).to_be_visible()
    expect(viewer.get_by_role("button", name="Create a schedule")).to_have_count(0)


def test_an_endpoint_is_added_tested_paused_and_a_dead_letter_is_replayed(
    rig: Rig, receiver: Receiver, visit: Visit
) -> None:
    page = visit().open(path="#/admin/webhooks").page
    fixed = page.get_by_role("article", name=re.compile("audit$"))
    expect(fixed.get_by_text("Fixed")).to_be_visible()
    expect(fixed.get_by_role("button", name="Delete")).to_have_count(0)
    page.get_by_role("button", name="Add a webhook").click()
    url = f"http://127.0.0.1:{receiver.port}/events"
    page.get_by_label(re.compile("^URL")).fill(url)
    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="Signing secret")
    secret = dialog.locator("code").inner_text()
    dialog.get_by_role("button", name="Close").last.click()
    card = page.get_by_role("article", name=url)
    card.get_by_role("button", name="Send a test").click()
    expect(card.get_by_role("status")).to_contain_text("answered 200")
    assert receiver.types("/events") == ["webhook.test"]
    _, headers, body = receiver.requests[-1]
    expected = sign_payload(secret, headers["webhook-id"], int(headers["webhook-timestamp"]), body)
    assert expected in headers["webhook-signature"].split()

    card.get_by_role("button", name="Edit").click()
    form = page.get_by_role("form", name=f"Edit: {url}")
    expect(form.get_by_label(re.compile("^URL"))).to_have_value(url)
    form.get_by_label("Description").fill("for the ledger")
    form.get_by_label("Paused").check()
    look(page, "webhooks-edit")
    form.get_by_role("button", name="Save").click()
    expect(card.get_by_text("for the ledger")).to_be_visible()
    expect(card.get_by_text("Paused")).to_be_visible()
    card.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("dialog")).to_have_count(0)  # no new secret

    card.get_by_text("Deliveries", exact=True).click()
    rig.say("hello")
    rows = card.get_by_role("list", name="Deliveries").get_by_role("listitem")
    expect(rows.filter(has_text="turn.completed")).to_contain_text("Delivered")
    receiver.status = 410
    rig.say("hello again")
    expect(rows.filter(has_text="Dead letter")).to_contain_text("1 attempt: the receiver answered 410")
    expect(card.get_by_text("Nothing is sent: the receiver answered 410 Gone.")).to_be_visible()
    look(page, "webhooks-story")
    replay = card.get_by_role("button", name="Replay 1 dead letter")
    expect(replay).to_be_disabled()
    receiver.status = 200
    card.get_by_role("button", name="Resume").click()
    replay.click()
    expect(rows.filter(has_text="Delivered")).to_have_count(2)
    sent = len(receiver.types("/events"))
    assert receiver.types("/events")[1:] == ["turn.completed"] * 3  # one was refused, and came again
    card.get_by_role("button", name="Pause").click()
    expect(card.get_by_text("Paused")).to_be_visible()
    rig.wait_idle(rig.say("nobody is told")["session"])
    card.get_by_role("button", name="Resume").click()
    expect(card.get_by_text("Active")).to_be_visible()
    assert len(receiver.types("/events")) == sent


def test_a_hook_is_created_and_its_calls_are_shown(rig: Rig, visit: Visit) -> None:
    page = visit().open(path="#/admin/hooks").page
    fixed = page.get_by_role("article", name="payments")
    expect(fixed.get_by_text("Fixed")).to_be_visible()
    page.get_by_role("button", name="Create a hook").click()
    page.get_by_label(re.compile("^Name")).fill("issues")
    page.get_by_label(re.compile("^Message")).fill("echo: Issue {{number}} was opened.")
    page.get_by_label(re.compile("^Only when")).fill("action = opened")
    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="Secret of issues")
    assert dialog.locator("code").first.inner_text() == f"{rig.url}/api/hooks/issues"
    secret = dialog.locator("code").last.inner_text()
    dialog.get_by_role("button", name="Close").last.click()

    def deliver(id: str, action: str, key: str = secret) -> int:
        body = json.dumps({"action": action, "number": 7}).encode()
        headers = sign_delivery("standard", key, id, int(time.time()), body)
        connection = http.client.HTTPConnection("127.0.0.1", rig.port, timeout=15)
        try:
            connection.request("POST", "/api/hooks/issues", body, {**headers, "content-type": "application/json"})
            return connection.getresponse().status
        finally:
            connection.close()

    assert wait_until_sync(lambda: deliver("d1", "opened") == 202)
    assert [deliver("d2", "closed"), deliver("d3", "opened", "whsec_" + "A" * 32)] == [202, 401]
    card = page.get_by_role("article", name="issues")
    card.get_by_text("Last calls", exact=True).click()
    for text in ("Turn started", "Ignored", "Refused"):
        expect(card.get_by_role("listitem").filter(has_text=text)).to_be_visible()
    expect(card.get_by_role("listitem").filter(has_text="Refused")).to_contain_text("does not match")
    look(page, "hooks-story")
    card.get_by_role("button", name="New secret").click()
    page.get_by_role("dialog").get_by_role("button", name="New secret").click()
    dialog = page.get_by_role("dialog", name="Secret of issues")
    rotated = dialog.locator("code").last.inner_text()
    dialog.get_by_role("button", name="Close").last.click()
    assert [deliver("d4", "opened"), deliver("d4", "opened", rotated)] == [401, 202]
    card.get_by_role("link", name="Open the conversation").first.click()
    expect(page.get_by_text("Issue 7 was opened.").last).to_be_visible()
    texts = page.evaluate("Promise.all(['/api/hooks', '/api/audit'].map(async (u) => (await fetch(u)).text()))")
    assert secret not in "".join(texts)
    assert rotated not in "".join(texts)


@pytest.mark.parametrize(
    "how", [*SHORT, *(pytest.param(how, marks=pytest.mark.long) for how in LOOKS if how not in SHORT)]
)
def test_every_screen_in_every_look(how: str, rig: Rig, visit: Visit) -> None:
    schedule = {"id": "looked-at", "text": "Write the report.\nNo more than a page.", "cron": "30 8 * * 1-5"}
    rig.api("POST", "/api/schedules", {**schedule, "timezone": "Europe/Berlin"})
    run = rig.api("POST", "/api/schedules/looked-at/run")
    rig.wait_idle(run["session"])
    options = LOOKS[how]
    for path in ("schedules", "admin/schedules", "admin/webhooks", "admin/hooks"):
        page = visit(**options).open(path=f"#/{path}").page
        expect(page.locator("main h1")).to_be_visible()
        expect(page.locator("main .items > li").first).to_be_visible()
        for summary in page.locator("main summary").all():
            summary.click()
        expect(page.locator("main .spinner")).to_have_count(0)
        look(page, f"{how}-{path.replace('/', '-')}")
        add = page.locator("main button:has(svg)").filter(
            has_text=re.compile(r"^(Create|Add|创建|添加)")  # by what is shown in both languages
        )
        if add.count():
            add.first.click()
            expect(page.locator("main form.editor")).to_be_visible()
            look(page, f"{how}-{path.replace('/', '-')}-form")
        page.close()
