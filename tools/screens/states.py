"""The states of the web UI: where each is, and what to press to see it. Selectors are CSS, so that every language finds them."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from playwright.sync_api import Page
from tests.helpers.scripted_server.server import Rig

from everturn.core.session_claims import MAX_QUICK_CLAIMS, RETRY_PAUSES
from everturn.errors import SessionQuarantined
from everturn.stores.registry import get_store
from everturn.testing.contracts.samples import send_message

Act = Callable[[Page], None]
HEAR: Final = "import sys; sys.stdin.buffer.read(); print('heard')"
SPEAK: Final = "import sys; sys.stdin.read()"
MORE_CONFIG: Final = f"""
[auth]
passwords = true

[auth.oidc]
issuer = "http://127.0.0.1:9"
audience = "everturn"
client_id = "everturn"

[audio.transcription]
command = [{sys.executable!r}, "-c", {HEAR!r}]

[audio.speech]
command = [{sys.executable!r}, "-c", {SPEAK!r}]

[agents.stepper]
description = "Asks at every third step whether to continue."
model = "rig-model"
max_steps = 2
"""


@dataclass(frozen=True)
class State:
    """A screen: the hash of its address, and what is done there before the picture is taken."""

    name: str
    path: str = "#/"
    act: Act | None = None
    user: str = "local"  # "": nobody is logged in
    wait: str = ""  # what has to be there, as a selector

    @property
    def is_app(self) -> bool:
        """Whether the web UI draws it; pages of the server take the language that the browser asks for."""
        return self.path.startswith("#")


@dataclass
class World:
    """Sessions by name, made once over the API."""

    rig: Rig
    sessions: dict[str, str] = field(default_factory=dict[str, str])

    def path(self, name: str, behind: str = "") -> str:
        """The hash of a session, or of a page of it."""
        return f"#/s/{self.sessions[name]}{behind}"


# ---------------------------------------------------------------------------------------------------------- what to press


def click(*selectors: str, last: bool = False) -> Act:
    """Press one thing after another."""

    def act(page: Page) -> None:
        for selector in selectors:
            found = page.locator(selector).locator("visible=true")
            (found.last if last else found.first).click(timeout=5_000)
            page.wait_for_timeout(250)

    return act


def fill(selector: str, text: str, press: str = "") -> Act:
    """Write into a field."""

    def act(page: Page) -> None:
        page.locator(selector).last.fill(text, timeout=5_000)
        if press:
            page.keyboard.press(press)
        page.wait_for_timeout(500)

    return act


def after(*acts: Act) -> Act:
    """One act after another."""

    def act(page: Page) -> None:
        for each in acts:
            each(page)

    return act


def answer_with(key: str) -> Act:
    """Open a panel of the first gate by its key, once it may be answered."""

    def act(page: Page) -> None:
        gate = page.locator("[data-gate][data-open]").first
        gate.scroll_into_view_if_needed()
        page.wait_for_timeout(700)
        gate.focus()
        page.wait_for_timeout(700)
        page.keyboard.press(key)
        page.wait_for_timeout(400)

    return act


def hover_last(page: Page) -> None:
    """Show the actions of the last answer."""
    page.locator('[data-message][data-role="assistant"]').last.hover()


def menu_item(at: int) -> Act:
    """Open the menu of the last answer, and choose."""

    def act(page: Page) -> None:
        hover_last(page)
        page.locator('[data-message][data-role="assistant"]').last.locator(
            ".message-actions .menu > button"
        ).last.click()
        page.wait_for_timeout(200)
        if at < 99:
            page.locator("[role=menuitem]").nth(at).click()
            page.wait_for_timeout(300)

    return act


def go_offline(page: Page) -> None:
    """Cut the network, and send something."""
    page.context.set_offline(True)
    page.evaluate("() => dispatchEvent(new Event('offline'))")
    fill("textarea.composer-text", "Are you still there?", "Enter")(page)
    page.wait_for_timeout(2500)


def hold_loading(page: Page) -> None:
    """Reload, and keep the server from answering."""
    page.route("**/api/sessions/**", lambda route: None)
    page.reload()
    page.wait_for_timeout(1200)


def fail_loading(page: Page) -> None:
    """Reload, and let the server fail."""
    error = '{"error": {"code": "internal", "message": "internal error; the log of the server has it under 1f2e"}}'
    page.route(
        "**/api/sessions/**", lambda route: route.fulfill(status=500, content_type="application/json", body=error)
    )
    page.reload()
    page.wait_for_timeout(1200)


def scroll_main(page: Page) -> None:
    """To the end of what a person can scroll."""
    page.evaluate(
        """() => {
          for (const one of document.querySelectorAll('main, main *'))
            if (/auto|scroll/.test(getComputedStyle(one).overflowY) && one.scrollHeight > one.clientHeight + 40) one.scrollTop = 1e6;
        }"""
    )
    page.wait_for_timeout(300)


# ------------------------------------------------------------------------------------------------------------ what exists

WORDS: Final = (
    "story", "mail", "mails", "review", "form", "manual", "loop", "shell", "piped", "hidden", "nested", "trip", "files",
    "parallel", "subagent", "fails", "unknown", "forbidden", "error", "cut", "refuse", "retry", "picture", "page", "reason",
    "table", "math", "code", "long 900",
)  # fmt: skip


def prepare(rig: Rig) -> World:
    """Have every conversation."""
    world = World(rig)
    for word in WORDS:
        world.sessions[word.split()[0]] = rig.say(f"{word} pace 0")["session"]
    stepper = rig.api("POST", "/api/sessions", {"text": "story pace 0", "agent": "stepper", "at_step_limit": "ask"})
    world.sessions["limit"] = stepper["session"]
    world.sessions["brief"] = rig.api("POST", "/api/sessions", {"text": "story pace 0", "agent": "brief"})["session"]
    world.sessions["timely"] = rig.api("POST", "/api/sessions", {"text": "mail pace 0", "agent": "timely"})["session"]
    world.sessions["empty"] = rig.say("call nothing pace 0")["session"]
    plan = (
        ("Look at the hall", "completed"),
        ("Write the report", "in_progress"),
        ("Send it to Ann, with the table of all three offers", "pending"),
    )
    todos = ", ".join(f'{{"content": "{text}", "status": "{status}"}}' for text, status in plan)
    world.sessions["todos"] = rig.say(f'call write_todos {{"todos": [{todos}]}}')["session"]
    preview = "```mermaid\nflowchart LR\n  A[Ask] --> B{Allowed?}\n  B -->|yes| C[Run the tool]\n```\n```html\n<h1>Hello</h1><p>A preview.</p>\n```\n"
    world.sessions["preview"] = rig.say(f"echo:{preview}")["session"]
    mails = " ".join(
        f"call send_mail {json.dumps({'to': f'p{number}@example.org', 'subject': 'Rain'})}" for number in range(100)
    )
    world.sessions["hundred"] = rig.say(mails)["session"]
    world.sessions["reverted"] = _edited_files(rig)
    compared = rig.api("POST", "/api/sessions", {"text": "plain 80 pace 0", "compare_with": ["rig-other"]})
    world.sessions["compared"] = compared["session"]
    _administrate(rig, world)
    world.sessions["quarantined"] = _quarantined(rig)
    world.sessions["versions"] = _versions(rig)
    world.sessions["compacted"] = _compacted(rig)
    world.sessions["shared"] = _shared(rig)
    private = rig.say("A private matter of the local operator pace 0")["session"]
    world.sessions["private"] = private
    link = rig.api("POST", f"/api/sessions/{world.sessions['table']}/links", {})
    world.sessions["link"] = link["link"]
    for path, text in (
        ("likes.md", "Tea, no sugar.\nAnswers in metric units."),
        ("work/offices.md", "Lisbon and Oslo."),
    ):
        rig.api("PUT", "/api/memory/file", {"path": path, "text": text})
    time.sleep(3)
    return world


def _edited_files(rig: Rig) -> str:
    """A conversation whose tools changed files, with a person's leave."""
    session = rig.say("files pace 0")["session"]
    for _ in range(40):
        for gate in rig.gates(session):
            gate_path = f"/api/sessions/{session}/gates/{gate['gate']['id']}/answer"
            rig.api("POST", gate_path, {"allow": "once", "hash": gate["gate"]["hash"]})
        if rig.is_idle(session):
            break
        time.sleep(0.5)
    return session


def _administrate(rig: Rig, world: World) -> None:
    """What an administrator and a person may have stored."""
    instructions = "Answer in two sentences. Cite the ticket that you used."
    for version, text in enumerate((instructions, instructions + "\nNever promise a refund.")):
        agent = {"description": "Answers customers.", "instructions": text, "model": "rig-other"}
        rig.api("PUT", "/api/settings/agents/support", {"settings": agent, "version": version})
    rules = [
        {"tool": "send_mail", "action": "ask", "note": "Mail leaves the house."},
        {"tool": "weather", "action": "allow"},
    ]
    rig.api("PUT", "/api/settings/rules", {"rules": rules})
    rig.api(
        "POST",
        "/api/schedules",
        {"id": "weekly", "text": "Summarize the week.", "cron": "0 17 * * 5", "timezone": "Europe/Berlin"},
    )
    rig.api(
        "POST", "/api/webhooks", {"url": "https://example.com/hook", "description": "Pager", "events": ["turn.failed"]}
    )
    rig.say("error pace 0")  # the receiver has no address here: its delivery fails
    rig.api(
        "PUT", "/api/settings/hooks/issues", {"scheme": "github", "text": "Triage {{issue.title}}", "agent": "support"}
    )
    rig.api(
        "PUT", "/api/prompts", {"name": "standup", "text": "Write my standup from {{notes}}", "description": "Daily"}
    )
    rig.api("PUT", "/api/users/member/budget", {"cost": 5.0, "period": 86_400})
    invitation = rig.api("POST", "/api/invitations", {"user": "ben", "role": "member"})
    world.sessions["invitation"] = invitation["secret"]


def _quarantined(rig: Rig) -> str:
    """A session that was claimed too often without progress, as by processes that died of it."""
    session = rig.say("A night report pace 0")["session"]
    rig.wait_idle(session, 30)

    async def claim() -> None:
        store: Any = get_store(str(rig.home / "talks.db"))
        try:
            await store.admit(send_message("night", session, "trn_night", at=time.time()))
            at = time.time() - sum(RETRY_PAUSES)
            for pause in (*(0.0 for _ in range(MAX_QUICK_CLAIMS)), *RETRY_PAUSES, 0.0):
                at += pause
                await store.claim(session, at)
        except SessionQuarantined:
            pass
        finally:
            await store.aclose()

    with ThreadPoolExecutor(1) as pool:  # beside the loop of the browser's driver
        pool.submit(asyncio.run, claim()).result()
    return session


def _versions(rig: Rig) -> str:
    session = rig.say("plain 20 pace 0")["session"]
    for _ in range(2):
        rig.wait_idle(session, 30)
        rig.api("POST", f"/api/sessions/{session}/messages/{rig.messages(session)[-1]['id']}/rerun", {})
    rig.wait_idle(session, 30)
    last = rig.messages(session)[-1]["id"]
    rig.api("PUT", f"/api/sessions/{session}/messages/{last}/rating", {"rating": "down", "reason": "too long"})
    return session


def _compacted(rig: Rig) -> str:
    session = rig.say("plain 300 pace 0")["session"]
    for _ in range(2):
        rig.wait_idle(session, 30)
        rig.say("plain 300 pace 0", session)
    rig.wait_idle(session, 30)
    rig.api("POST", f"/api/sessions/{session}/compact", {"focus": "the words"})
    rig.wait_idle(session, 30)
    return session


def _shared(rig: Rig) -> str:
    session = rig.say("hello to somebody with a title that is rather long for a header")["session"]
    rig.wait_idle(session, 30)
    for body in ({"user": "member", "level": "write"}, {"role": "viewer"}):
        rig.api("POST", f"/api/sessions/{session}/shares", body)
    rig.api("POST", f"/api/sessions/{session}/links", {})
    return session


# --------------------------------------------------------------------------------------------------------------- the list


def states(world: World) -> dict[str, list[State]]:
    """Groups of states, each a contact sheet."""
    path, rig = world.path, world.rig
    versions = [
        message["id"] for message in rig.api("GET", f"/api/sessions/{world.sessions['versions']}/tree")["messages"]
    ]
    turn = next(message["turn"] for message in rig.messages(world.sessions["retry"]) if message.get("turn"))
    other = next(message["turn"] for message in rig.messages(world.sessions["parallel"]) if message.get("turn"))
    gate = "[data-gate][data-open]"
    turns = [
        message["turn"]
        for message in rig.api("GET", f"/api/sessions/{world.sessions['versions']}/tree")["messages"]
        if message.get("role") == "assistant"
    ]
    admin = (
        "users",
        "invitations",
        "apiKeys",
        "models",
        "agents",
        "mcp",
        "rules",
        "schedules",
        "webhooks",
        "hooks",
        "usage",
        "audit",
        "quarantine",
    )
    return {
        "entrance": [
            State("login", user=""), State("login-link", "LINK", user=""), State("oidc-away", "oidc/login", user=""), State("dead-link", "#/link/nothing"),
            State("dead-invite", "#/invite/nothing", user=""), State("invite", f"#/invite/{world.sessions['invitation']}", user=""),
            State("login-wrong", user="", act=wrong_password), State("no-session", "#/s/ses_nothing"),
            State("unknown-page", "#/nowhere"), State("loading", path("table"), hold_loading),
            State("failing", path("table"), fail_loading), State("offline", path("table"), go_offline),
        ],
        "new": [
            State("new"), State("narrow-sidebar", act=collapse_sidebar), State("parameters", act=click(".composer .button:has(path[d^='M4 7h10'])")),
            State("compare-models", act=click(".composer .button:has(path[d^='M4 4h6v16'])")), State("attached", act=attach), State("prompt", act=after(fill("textarea.composer-text", "/sta"), click(".prompt-picker .button"))),
            State("dictating", act=click(".composer .button:has(path[d^='M12 15a3'])")), State("temporary", act=click(".temporary button")), State("agents", act=click(".pickers .menu > button")),
            State("models", act=click(".model-button")), State("model-search", act=after(click(".model-button"), fill("dialog input", "oth"))),
            State("slash", act=fill("textarea.composer-text", "/")), State("palette", act=lambda page: page.keyboard.press("Control+k")),
            State("search", act=after(open_sidebar, fill(".sidebar .find input", "weather"))),
            State("sidebar", act=open_sidebar), State("row-menu", act=after(open_sidebar, open_row_menu)),
            State("account", act=after(open_sidebar, click(".sidebar .account .menu > button"))), State("viewer-new", user="viewer"),
        ],
        "conversation": [
            State("parallel", path("parallel")), State("narrow", path("table"), after(collapse_sidebar, hover_table)), State("preview", path("preview"), after(hover_last, lambda page: page.frame_locator("iframe.sandboxed").locator("svg").first.wait_for(timeout=20_000))),
            State("compared", path("compared")), State("temporary-chat", act=temporary_chat), State("card-open", path("parallel"), click(".tool-card summary")),
            State("story", path("story")), State("reason", path("reason"), click(".reasoning summary, .reasoning button")),
            State("table", path("table")), State("math", path("math")), State("code", path("code")), State("long", path("long")),
            State("files", path("files")), State("subagent", path("subagent")), State("fails", path("fails")),
            State("unknown", path("unknown")), State("forbidden", path("forbidden")), State("error", path("error")),
            State("cut", path("cut")), State("refuse", path("refuse")), State("empty", path("empty")),
            State("picture", path("picture")), State("page", path("page")), State("todos", path("todos")),
            State("compacted", path("compacted")), State("compacted-open", path("compacted"), click("[data-compaction=summary] button")),
            State("compact-hint", path("compacted"), fill("textarea.composer-text", "/com")),
            State("context", path("compacted"), click(".context-gauge")), State("find", path("table"), after(click(".conversation-head [aria-expanded]"), fill(".find-bar input", "lamp"))),
            State("running", path("table"), fill("textarea.composer-text", "slow 4", "Enter")),
            State("queue", path("code"), after(fill("textarea.composer-text", "slow 6", "Enter"), fill("textarea.composer-text", "and then the table please, with all columns", "Enter"))),
        ],
        "gates": [
            State("mail", path("mail"), wait=gate), State("mail-edit", path("mail"), answer_with("e"), wait=gate),
            State("mail-deny", path("mail"), answer_with("n"), wait=gate), State("shell", path("shell"), wait=gate),
            State("shell-always", path("shell"), answer_with("a"), wait=gate), State("mails", path("mails")),
            State("mails-open", path("mails"), click("[data-gate-row] .toggle")), State("review", path("review"), wait=gate),
            State("form", path("form"), wait=gate), State("manual", path("manual"), wait=gate), State("loop", path("loop"), wait=gate),
            State("limit", path("limit")), State("limit-end", path("limit"), scroll_main), State("piped", path("piped")),
            State("hidden", path("hidden"), wait=gate), State("nested", path("nested"), wait=gate), State("trip", path("trip"), wait=gate),
            State("expired", path("timely")), State("limit-ended", path("brief")), State("hundred", path("hundred")), State("hundred-all", path("hundred"), click(".gate-batch .button.primary")),
            State("not-shared", path("mail"), user="owner"), State("browser", act=after(fill("textarea.composer-text", "browser pace 0", "Enter"), lambda page: page.wait_for_timeout(1500))),
        ],
        "dialogs": [
            State("share", path("shared"), click(".conversation-head .share")),
            State("share-link", path("shared"), after(click(".conversation-head .share"), click("dialog .link-form button"))),
            State("export", path("shared"), click(".conversation-head .menu > button")),
            State("message-menu", path("versions"), menu_item(99)), State("raw", path("versions"), menu_item(-2)),
            State("delete", path("versions"), menu_item(-1)), State("rating", path("versions"), after(hover_last, click(".message-actions [aria-pressed]", last=True))),
            State("edit", path("table"), after(lambda page: page.locator('[data-message][data-role="user"]').last.hover(), click('[data-role="user"] .message-actions button:nth-of-type(2)'))),
            State("files-changed", path("reverted"), scroll_main), State("revert", path("reverted"), after(scroll_main, click(".files-changed summary", ".files-changed .ways button", last=True))),
            State("tree", path("versions", "/tree")), State("compare", path("versions", f"/compare/{versions[-1]}/{versions[-2]}")),
            State("trace", path("retry", f"/trace/{turn}")), State("trace-parallel", path("parallel", f"/trace/{other}")),
            State("request", path("parallel", f"/trace/{other}"), click(".timeline button")), State("trace-compared", path("versions", f"/trace/{turns[-1]}/{turns[0]}")),
            State("reader", path("shared"), user="viewer"), State("writer", path("shared"), user="member"),
            State("by-link", f"#/link/{world.sessions['link']}", user="member"),
            State("administrator", path("private"), click("#main .page .button", last=True), user="owner"), State("administrator-open", path("private"), open_as_administrator, user="owner"),
        ],
        "pages": [
            State("inbox", "#/inbox"), State("inbox-approver", "#/inbox", user="approver"), State("inbox-empty", "#/inbox", user="viewer"), State("permissions", "#/permissions"),
            State("explain", "#/permissions", explain), State("mcp", "#/mcp"), State("mcp-end", "#/mcp", scroll_main),
            State("memory", "#/memory"), State("memory-file", "#/memory", click(".memory li button, .memory .files button, .memory a")),
            State("memory-empty", "#/memory", user="viewer"), State("prompts", "#/prompts"), State("usage", "#/usage"),
            State("usage-viewer", "#/usage", user="viewer"), State("schedules", "#/schedules"), State("schedule-form", "#/schedules", click("#main .page .button")), State("schedules-empty", "#/schedules", user="member"), State("prompts-empty", "#/prompts", user="member"), State("push", "#/settings", lambda page: page.locator("h2").nth(3).scroll_into_view_if_needed()), State("settings", "#/settings"), State("settings-end", "#/settings", scroll_main),
        ],
        "admin": [State(f"admin-{name}", f"#/admin/{name}") for name in admin]
        + [State(f"admin-{name}-form", f"#/admin/{name}", click("#main .section button.primary, #main .section header button, #main .section button")) for name in ("models", "agents", "mcp", "rules", "webhooks", "hooks")]
        + [State("admin-user-menu", "#/admin/users", click("#main tr .menu > button", last=True)), State("admin-budget", "#/admin/users", budget), State("admin-agent-versions", "#/admin/agents", click("#main .items .button:has(path[d^='M20 11a8'])")), State("admin-key-made", "#/admin/apiKeys", after(fill("#main form .field:first-child input", "deploy", "Enter"), lambda page: page.wait_for_timeout(600))), State("admin-rule-review", "#/admin/rules", review_rule), State("admin-usage-model", "#/admin/usage", click("#main .section [aria-pressed=false]")), State("admin-audit-empty", "#/admin/audit", after(fill("#main form .field:first-child input", "nobody", "Enter"), lambda page: page.wait_for_timeout(600)))]
        + [State("admin-quarantine-erase", "#/admin/quarantine", click("#main td .button.danger")), State("admin-delivery-failing", "#/admin/webhooks", after(click("#main .items summary"), lambda page: page.wait_for_timeout(600))), State("quarantined", path("quarantined"))]
        + [State("admin-viewer", "#/admin/users", user="viewer")],
    }  # fmt: skip


def wrong_password(page: Page) -> None:
    """Try to log in with a password that is wrong."""
    page.locator("form input").nth(0).fill("local")
    page.locator("form input[type=password]").fill("not the right one")
    page.keyboard.press("Enter")
    page.locator("[role=alert]").first.wait_for(timeout=10_000)


def attach(page: Page) -> None:
    """Attach a picture and a text."""
    files = [
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"rain in both\n"},
        {
            "name": "a-file-with-a-rather-long-name-of-the-third-quarter.pdf",
            "mimeType": "application/pdf",
            "buffer": b"%PDF-1.4",
        },
    ]
    page.locator(".composer input[type=file]").set_input_files(files)  # pyright: ignore[reportArgumentType]
    page.wait_for_timeout(800)


def temporary_chat(page: Page) -> None:
    """Begin a temporary chat."""
    click(".temporary button")(page)
    fill("textarea.composer-text", "plain 20 pace 0", "Enter")(page)
    page.wait_for_timeout(1500)


def hover_table(page: Page) -> None:
    """Show the buttons of a table."""
    page.locator(".markdown table").first.hover(timeout=5_000)
    page.wait_for_timeout(200)


def open_as_administrator(page: Page) -> None:
    """Give a reason, and open the conversation of somebody else."""
    click("#main .page .button", last=True)(page)
    page.locator("dialog input, dialog textarea").first.fill("A question of the author")
    page.locator("dialog .button.danger").click(timeout=5_000)
    page.wait_for_timeout(1200)


def budget(page: Page) -> None:
    """The dialog of a user's budget."""
    page.locator("#main tr .menu > button").last.scroll_into_view_if_needed()
    page.wait_for_timeout(300)  # scrolling closes a menu
    click("#main tr .menu > button", last=True)(page)
    page.locator("[role=menuitem]").nth(1).click(timeout=5_000)
    page.wait_for_timeout(300)


def review_rule(page: Page) -> None:
    """Draft a rule, and see what it would have decided about past calls."""
    click("#main .section header .button:has(path[d^='M12 5v14'])")(page)
    page.locator("#main form input").first.fill("weather")
    page.locator("#main form .button.primary").first.click(timeout=5_000)
    page.wait_for_timeout(300)
    page.locator("#main .section .button.primary").first.click(timeout=5_000)
    page.wait_for_timeout(1200)


def open_row_menu(page: Page) -> None:
    """The menu of the first conversation is there when the pointer is."""
    row = page.locator(".sidebar .session").first
    row.hover()
    row.locator("button").last.click(timeout=5_000)
    page.wait_for_timeout(300)


def collapse_sidebar(page: Page) -> None:
    """Make the sidebar a strip of icons, where there is room for one."""
    if page.viewport_size and page.viewport_size["width"] >= 700:
        click(".sidebar .toggle")(page)


def open_sidebar(page: Page) -> None:
    """On a phone the sidebar is behind a button."""
    if page.viewport_size and page.viewport_size["width"] < 700:
        page.locator(".open-side").click(timeout=3_000)
        page.wait_for_timeout(400)


def explain(page: Page) -> None:
    """Ask why a call would be denied."""
    page.locator("form select").first.select_option("read_file")
    page.locator("form textarea").first.fill('{"path": "private/diary.txt"}')
    page.locator("form button[type=submit]").first.click()
    page.wait_for_timeout(600)


def users_of(groups: dict[str, list[State]]) -> set[str]:
    """Who looks at any of it."""
    return {state.user for group in groups.values() for state in group if state.user}
