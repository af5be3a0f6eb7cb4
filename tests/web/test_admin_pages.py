"""The pages about what is set up: why a call would be allowed, what was allowed, how servers are, and a first run."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest
from playwright.sync_api import Route, expect

from tests.helpers.browser import PHONE, Screen
from tests.helpers.scripted_server.server import Rig
from tests.helpers.waiting import wait_until_sync
from tests.web.conftest import Visit

OPTION: Final[dict[str, Any]] = {
    "kind": "server",
    "name": "Ollama",
    "address": "http://127.0.0.1:11434",
    "models": ["qwen3:8b", "llama3.2"],
    "toml": '[agents.assistant]\nmodel = "ollama:qwen3:8b"\n',
    "needs_restart": False,
}


def explain(screen: Screen, tool: str, arguments: dict[str, Any]) -> None:
    page = screen.page
    page.get_by_role("combobox", name="Tool").select_option(tool)
    page.get_by_label("Arguments, as JSON").fill(json.dumps(arguments))
    page.get_by_role("button", name="Explain").click()


@pytest.mark.parametrize("how", [{}, PHONE], ids=["desk", "phone"])
def test_a_call_is_explained_and_the_rule_that_decides_is_marked(how: dict[str, Any], visit: Visit) -> None:
    screen = visit("member", **how).open(path="#/permissions")
    explain(screen, "read_file", {"path": "private/diary.txt"})
    explanation = screen.page.locator(".explanation")
    expect(explanation).to_contain_text("It would be denied")
    decides = screen.page.locator(".rule[data-decides]")
    expect(decides).to_have_count(1)
    expect(decides).to_contain_text('path = "private/**"')
    explain(screen, "read_file", {"path": "notes.txt"})
    expect(explanation).to_contain_text("It would run at once.")
    expect(decides).to_have_count(0)
    screen.page.get_by_label("Arguments, as JSON").fill("{")
    screen.page.get_by_role("button", name="Explain").click()
    expect(screen.page.get_by_role("alert")).to_contain_text("not a JSON object")


def test_arguments_begin_with_what_a_tool_needs(visit: Visit) -> None:
    page = visit("member").open(path="#/permissions").page
    page.get_by_role("combobox", name="Tool").select_option("send_mail")
    expect(page.get_by_label("Arguments, as JSON")).to_have_value(re.compile(r'"to": "",\s+"subject": ""'))
    page.get_by_role("button", name="Explain").click()
    expect(page.locator(".explanation")).to_contain_text("A person would be asked.")


def test_what_was_allowed_is_listed_and_taken_back_by_whoever_may(rig: Rig, visit: Visit) -> None:
    session = rig.share(rig.say('call run {"command": "make it so"}')["session"])
    (waits,) = wait_until_sync(lambda: rig.gates(session))
    gate = waits["gate"]
    rig.api("POST", f"/api/sessions/{session}/gates/{gate['id']}/answer", {"hash": gate["hash"], "allow": "always"})
    label = f"Revoke the grant for {gate['tool']}"
    member = visit("member").open(path="#/permissions").page
    expect(member.get_by_role("button", name=label)).to_be_disabled()
    page = visit("approver").open(path="#/permissions").page
    expect(page.locator(".rule", has=page.get_by_role("button", name=label))).to_contain_text("by local")
    page.get_by_role("button", name=label).click()
    expect(page.get_by_role("button", name=label)).to_have_count(0)
    assert rig.api("GET", "/api/grants") == {"grants": []}


def test_servers_show_how_they_are_and_operators_what_to_do(visit: Visit) -> None:
    page = visit().open(path="#/mcp").page
    expect(page.get_by_role("article", name="garden")).to_contain_text("connected", timeout=60_000)
    missing = page.get_by_role("article", name="missing")
    expect(missing).to_contain_text("failed")
    expect(missing).to_contain_text("/nowhere/server")
    missing.get_by_role("button", name="Reconnect").click()
    expect(missing.get_by_role("button", name="Reconnect")).to_be_enabled()
    member = visit("member").open(path="#/mcp").page
    theirs = member.get_by_role("article", name="missing")
    expect(theirs).to_contain_text("Ask the operator of this server")
    expect(theirs).not_to_contain_text("/nowhere/server")
    expect(member.get_by_role("button", name="Reconnect")).to_have_count(0)


def test_what_is_trusted_is_what_was_shown(visit: Visit) -> None:
    page = visit().open().page
    shown: dict[str, Any] = {
        "name": "docs",
        "transport": "http",
        "state": "ready",
        "since": 1.0,
        "title": "",
        "tools": [{"name": "docs_read", "description": "", "is_changed": True}],
        "reason": "",
        "problems": [],
        "runs": "https://docs.example.org/mcp",
        "variables": ["Authorization"],
        "changes": ["changed tool read", "    + Read. <img src=x onerror=alert(1)>"],
        "hash": "as-shown",
        "can_log_in": False,
        "is_logging_in": False,
        "login_problem": "",
    }
    sent: list[Any] = []

    def servers(route: Route) -> None:
        route.fulfill(json={"servers": [shown]})
        shown["hash"] = "another"  # it has changed since

    def trust(route: Route) -> None:
        sent.append(route.request.post_data_json)
        route.fulfill(status=204)

    page.route("**/api/mcp", servers)
    page.route("**/api/mcp/docs/trust", trust)
    page.goto(page.url.split("#")[0] + "#/mcp")
    page.get_by_role("button", name="Review and trust").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("<img src=x onerror=alert(1)>")
    page.wait_for_timeout(5500)  # the list is read again meanwhile
    dialog.get_by_role("button", name="Trust it as shown").click()
    expect(dialog).to_have_count(0)
    assert sent == [{"hash": "as-shown"}]


def test_a_first_run_shows_a_way_in_and_is_silent_once_it_was_dismissed(rig: Rig, visit: Visit) -> None:
    somebody = visit()
    page = somebody.open().page
    agents = rig.api("GET", "/api/agents")
    agents["agents"] = [agents["agents"][0] | {"model": "offline:demo", "models": []}]
    setup = {"agent": "assistant", "model": "offline:demo", "is_offline": True, "file": "/etc/everturn/everturn.toml"}
    setup |= {"has_file": False, "has_agent": False, "options": [OPTION]}
    page.route("**/api/agents", lambda route: route.fulfill(json=agents))
    page.route("**/api/setup", lambda route: route.fulfill(json=setup))
    page.reload()
    welcome = page.get_by_role("region", name="No model is set up yet")
    expect(welcome).to_contain_text("Use Ollama on this machine")
    expect(welcome).to_contain_text("/etc/everturn/everturn.toml")
    welcome.get_by_label("Model").select_option("llama3.2")
    expect(welcome.locator("pre")).to_have_text('[agents.assistant]\nmodel = "ollama:llama3.2"\n')
    welcome.get_by_role("button", name="Use the demo").click()
    expect(welcome).to_have_count(0)
    page.reload()
    expect(page.get_by_role("main")).to_be_visible()
    page.wait_for_timeout(500)
    expect(welcome).to_have_count(0)
