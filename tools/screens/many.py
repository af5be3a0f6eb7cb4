"""Many rows, and texts that are hard to lay out: long ones, words without a break, right-to-left ones, labels."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Page

from tools.screens.states import State, World, after, click, fill, open_sidebar

SECTIONS: Final = (
    "users", "invitations", "apiKeys", "models", "agents", "mcp", "rules", "schedules", "webhooks", "hooks", "usage", "audit",
    "quarantine",
)  # fmt: skip
LONG_TITLE: Final = "The lamp in the hall, and " + "what every supplier asked of us about it, " * 4
WORD: Final = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 2
RIGHT_TO_LEFT: Final = "كيف حال الطقس في برلين اليوم؟ أرسل بريدًا إلى ada@example.org من فضلك"
ROWS: Final = 45
PEOPLE: Final = 30


def prepare_many(world: World) -> None:
    """Add the rows, after every other state was drawn."""
    rig, sessions = world.rig, world.sessions
    for name, text in (("long", f"plain 20 pace 0 {WORD}"), ("rtl", f"echo: {RIGHT_TO_LEFT} pace 0")):
        sessions[f"odd-{name}"] = rig.say(text)["session"]
    rig.api("PATCH", f"/api/sessions/{sessions['odd-long']}", {"title": LONG_TITLE[:200]})
    rig.api("PATCH", f"/api/sessions/{sessions['odd-rtl']}", {"title": RIGHT_TO_LEFT})
    sessions["odd-word"] = rig.say(f"echo: `{WORD}` {WORD} https://example.org/{WORD} pace 0")["session"]
    labels = [f"label {number} of a customer" for number in range(40)]
    rig.api("PATCH", f"/api/sessions/{sessions['odd-word']}", {"title": WORD, "labels": labels[:20]})
    rig.api("PATCH", f"/api/sessions/{sessions['odd-long']}", {"labels": labels[20:]})
    for number in range(PEOPLE):
        user = f"person.{number}@a-long-department-name.example.org" if number % 7 == 3 else f"person{number}"
        rig.api("PUT", f"/api/users/{user}", {"role": "member", "name": f"Person {number}"})
        rig.api("POST", f"/api/sessions/{sessions['odd-rtl']}/shares", {"user": user, "level": "write"})
    for number in range(ROWS):
        rig.say("hello pace 0")
        rig.api("POST", "/api/invitations", {"user": f"guest{number}", "role": "viewer"})
        rig.api("POST", "/api/keys", {"name": f"key of the pipeline {number}", "role": "member"})
        cron = {"id": f"daily{number}", "text": "Summarize the day.", "cron": "0 17 * * *", "timezone": "UTC"}
        rig.api("POST", "/api/schedules", cron)
        prompt = {"name": f"prompt{number}", "text": "Translate {{text}}", "description": "Into plain English " * 4}
        rig.api("PUT", "/api/prompts", prompt)
    for number in range(12):
        name = f"agent-with-a-rather-long-name-{number}"
        rig.api(
            "PUT",
            f"/api/settings/agents/{name}",
            {"settings": {"model": "rig-other", "description": "Answers customers of one region. " * 3}, "version": 0},
        )
        rig.api(
            "PUT",
            f"/api/settings/models/model-{number}",
            {
                "settings": {
                    "model": f"compatible:a-model-with-a-long-name-{number}",
                    "base_url": f"https://models-{number}.example.org/a/rather/long/path/v1",
                },
                "version": 0,
                "key": "",
            },
        )
        rig.api(
            "PUT",
            f"/api/settings/hooks/hook{number}",
            {"scheme": "github", "text": "Triage {{issue.title}}", "agent": "support"},
        )
        rig.api(
            "PUT",
            f"/api/settings/mcp/server{number}",
            {"url": f"https://mcp-{number}.example.org/a/rather/long/path", "version": 0},
        )
        rig.api(
            "POST",
            "/api/webhooks",
            {
                "url": f"https://example.org/a/rather/long/path/to/a/receiver/{number}?team=operations",
                "description": "Pager of the night shift",
            },
        )
    rules = [
        {
            "tool": f"tool_{number}_*",
            "action": ("allow", "ask", "deny")[number % 3],
            "match": {"path": f"projects/{number}/**"},
            "note": "Because of an incident.",
        }
        for number in range(ROWS)
    ]
    rig.api("PUT", "/api/settings/rules", {"rules": rules, "version": 1})
    rig.api("PUT", "/api/tenants/branch", {"name": "The branch office"})  # with a second tenant, rules have a scope
    rig.wait_idle(sessions["odd-word"], 60)


def many_states(world: World) -> list[State]:
    """What is there after `prepare_many`."""
    path = world.path
    return [
        State("odd-long", path("odd-long")), State("odd-word", path("odd-word")), State("odd-rtl", path("odd-rtl")),
        State("many-sidebar", act=open_sidebar), State("many-share", path("odd-rtl"), open_share), State("many-share-search", path("odd-rtl"), after(open_share, fill("dialog [type=search]", "person 1"))),
        State("many-labels", act=after(open_sidebar, fill(".sidebar .find input", "hello"))),
        State("many-prompts", "#/prompts"), State("many-schedules", "#/schedules"), State("many-mcp", "#/mcp"), State("many-permissions", "#/permissions"),
        State("many-slash", act=fill("textarea.composer-text", "/prompt")), State("many-agents", act=click(".pickers .menu > button")), State("many-models", act=click(".model-button")),
        State("rules-tenant", "#/admin/rules", choose_tenant), State("rules-owner", "#/admin/rules", user="owner"), State("rules-draft", "#/admin/rules", draft_in_scope),
    ] + [State(f"many-admin-{section}", f"#/admin/{section}") for section in SECTIONS]  # fmt: skip


def open_share(page: Page) -> None:
    """The share dialog, once it has its people."""
    click(".conversation-head .share")(page)
    page.locator("dialog .shares li").nth(5).wait_for(timeout=10_000)


def choose_tenant(page: Page) -> None:
    """The rules of one tenant."""
    page.locator("#main .rules select").first.select_option("tenant")
    page.wait_for_timeout(600)


def draft_in_scope(page: Page) -> None:
    """Remove a rule of all tenants, and look at those of one: the draft waits."""
    page.locator("#main .rules .item button:last-child").first.click(timeout=5_000)
    choose_tenant(page)


def fail_requests(page: Page) -> None:
    """Reload, and let every request for data fail."""
    error = '{"error": {"code": "internal", "message": "internal error; the log of the server has it under 1f2e"}}'
    for part in ("settings", "users", "mcp", "memory", "usage**", "schedules**"):
        page.route(
            f"**/api/{part}", lambda route: route.fulfill(status=500, content_type="application/json", body=error)
        )
    page.reload()
    page.wait_for_timeout(1200)


def hold_requests(page: Page) -> None:
    """Reload, and keep the server from answering."""
    for part in ("settings", "users", "mcp", "memory", "usage**", "schedules**"):
        page.route(f"**/api/{part}", lambda route: None)
    page.reload()
    page.wait_for_timeout(1200)


def broken_states() -> list[State]:
    """Pages whose data fail to load, or are still loading."""
    pages = ("admin/users", "admin/models", "mcp", "memory", "usage", "schedules")
    return [
        State(f"{kind}-{page.replace('/', '-')}", f"#/{page}", act)
        for kind, act in (("failing", fail_requests), ("loading", hold_requests))
        for page in pages
    ]
