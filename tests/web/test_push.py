"""The service worker of push notifications in a browser: it shows what it is sent, and a click opens the question."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import BrowserContext, CDPSession, Page, expect

from tests.helpers.scripted_server.server import Rig
from tests.web.conftest import Visit

REGISTER = """async () => {
  const policy = trustedTypes.createPolicy("everturn-push", { createScriptURL: () => "/push-worker.js" });
  await navigator.serviceWorker.register(policy.createScriptURL(""), { scope: "/" });
  await navigator.serviceWorker.ready;
}"""
SHOWN = """async () => {
  const registration = await navigator.serviceWorker.getRegistration("/");
  return (await registration.getNotifications()).map(({ title, body, tag, data }) => ({ title, body, tag, data }));
}"""


def registration_of(cdp: CDPSession, page: Page) -> str:
    """The id of the registration of the worker, as the browser tells it."""
    found: list[str] = []

    def note(event: dict[str, Any]) -> None:
        found.extend(row["registrationId"] for row in event["registrations"] if not row["isDeleted"])

    cdp.on("ServiceWorker.workerRegistrationUpdated", note)
    cdp.send("ServiceWorker.enable")
    while not found:
        page.evaluate("1")
    return found[0]


def test_a_push_is_shown_and_a_click_on_it_opens_the_question(visit: Visit, rig: Rig) -> None:
    session = rig.say("mail pace 0")["session"]
    screen = visit().open()
    page, context = screen.page, screen.page.context
    context.grant_permissions(["notifications"])
    page.evaluate(REGISTER)
    cdp = context.new_cdp_session(page)
    message = {"title": "Approval needed: send_mail", "body": "mail pace 0", "tag": "g1", "url": f"/#/s/{session}"}
    registration = registration_of(cdp, page)
    where = {"origin": rig.url, "registrationId": registration, "data": json.dumps(message)}
    cdp.send("ServiceWorker.deliverPushMessage", where)
    page.wait_for_function(f"({SHOWN})().then((all) => all.length === 1)")
    [shown] = page.evaluate(SHOWN)
    assert shown == {**{name: message[name] for name in ("title", "body", "tag")}, "data": {"url": message["url"]}}
    worker = worker_of(context)
    worker.evaluate(
        """async () => {
          const [notification] = await self.registration.getNotifications();
          self.dispatchEvent(new NotificationEvent("notificationclick", { notification }));
        }"""
    )
    expect(page.locator("[data-gate][data-open]")).to_be_visible()
    assert page.url.endswith(f"#/s/{session}")


def worker_of(context: BrowserContext) -> Any:
    """The service worker."""
    return context.service_workers[0] if context.service_workers else context.wait_for_event("serviceworker")


def test_the_worker_has_no_cache_and_catches_no_request(visit: Visit) -> None:
    screen = visit().open()
    page = screen.page
    page.evaluate(REGISTER)
    assert page.evaluate("async () => (await caches.keys()).length") == 0
    response = page.request.get(f"{screen.rig.url}/push-worker.js")
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["content-security-policy"] == "default-src 'none'"
    assert "fetch" not in response.text().replace("no fetch handler", "")


def test_the_settings_offer_push_and_say_why_the_browser_refuses(visit: Visit) -> None:
    screen = visit().open(path="#/settings")
    section = screen.page.locator("section.card", has=screen.page.get_by_role("heading", name="Push notifications"))
    expect(section).to_be_visible()
    expect(
        section.get_by_role("button", name="Turn on in this browser").or_(section.get_by_role("status"))
    ).to_be_visible()
