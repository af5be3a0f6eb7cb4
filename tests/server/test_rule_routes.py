"""The routes of the rules of administrators: roles, versions, a dry run of one tenant, and no cookie that changes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from everturn.access.context.server_context import ServerContext
from everturn.app import App
from everturn.config.load import load_config
from everturn.config.reload import ConfigReloader
from everturn.core.tenants.accounts import Tenant
from everturn.models.offline import OFFLINE
from everturn.models.scripted import ScriptedModel, call, calls
from everturn.stores.memory import MemoryStore
from tests.helpers.server_app import ask, make, make_house, word
from tests.helpers.tools import pay

RULES = "/api/settings/rules"
DENY = {"tool": "pay", "action": "deny", "match": {"amount": "7"}, "note": "on Fridays"}


async def server(folder: Path, has_several_tenants: bool = False) -> tuple[Any, ServerContext]:
    """A server whose settings can be changed."""
    house = await make_house(App(ScriptedModel(calls(call("pay", amount=7))), tools=[pay], store=MemoryStore()))
    await house.accounts.put_tenant(Tenant("theirs", is_active=has_several_tenants))
    (folder / "everturn.toml").write_text("")
    loaded = load_config(str(folder / "everturn.toml"), {"HOME": str(folder)})
    await ConfigReloader(loaded, house.app, house, OFFLINE, "everturn.toml", {}).open_settings()
    return make(house), house


async def test_rules_are_stored_compared_explained_and_restored_over_http(tmp_path: Path) -> None:
    app, house = await server(tmp_path)
    owner = word("owner")
    empty = await ask(app, "GET", RULES, owner)
    assert (empty.json["is_editable"], empty.json["fixed"], empty.json["stored"]["version"]) == (True, [], 0)
    stored = await ask(app, "PUT", RULES, owner, json={"rules": [DENY], "version": 0})
    assert (stored.status, stored.json["version"], stored.json["rules"][0]["rule"]) == (200, 1, DENY)
    assert [rule.source for rule in house.app.permissions.policy.rules] == ["settings:1"]
    late = await ask(app, "PUT", RULES, owner, json={"rules": [], "version": 0})
    assert (late.status, "reload" in late.json["error"]["message"]) == (409, True)
    draft = {"rules": [{"tool": "pay", "action": "allow"}], "tool": "pay", "arguments": {"amount": 7}}
    assert (await ask(app, "POST", f"{RULES}/explain", owner, json=draft)).json["action"] == "allow"
    run = await ask(app, "POST", f"{RULES}/dry-run", owner, json={"rules": []})
    assert (run.status, run.json["calls"], run.json["groups"]) == (200, 0, [])
    assert [(row["is_added"], row["loosens"]) for row in run.json["changes"]] == [(False, True)]
    await ask(app, "PUT", RULES, owner, json={"rules": [], "version": 1})
    restored = await ask(app, "POST", f"{RULES}/restore", owner, json={"version": 1})
    assert (restored.status, restored.json["version"]) == (200, 3)
    versions = (await ask(app, "GET", f"{RULES}/versions", owner)).json["versions"]
    assert [(row["version"], len(row["rules"])) for row in versions] == [(3, 1), (2, 0), (1, 1)]


async def test_what_is_invalid_is_refused_with_the_number_of_the_rule(tmp_path: Path) -> None:
    app, house = await server(tmp_path)
    for body in (
        {"rules": [{"tool": "pay", "action": "never"}]},
        {"rules": [{"tool": "pay", "action": "deny", "plugin": "os:system"}]},
        {"rules": [{"tool": "pay", "action": "deny"}] * 501},
        {"rules": [{"tool": "pay", "action": "deny", "match": {"path": ""}}]},
    ):
        assert (await ask(app, "PUT", RULES, word("owner"), json=body)).status == 422
    response = await ask(app, "PUT", RULES, word("owner"), json={"rules": [DENY, {"tool": " x", "action": "deny"}]})
    assert response.json["error"]["message"].startswith("rule 2: ")
    for calls_ in (0, 1001):
        refused = await ask(app, "POST", f"{RULES}/dry-run", word("owner"), json={"rules": [], "calls": calls_})
        assert refused.status == 422
    assert house.app.permissions.policy.rules == ()


async def test_only_owners_and_with_several_tenants_only_operators_are_let_in(tmp_path: Path) -> None:
    requests: list[tuple[str, str, Any]] = [
        ("GET", RULES, None),
        ("PUT", RULES, {"rules": []}),
        ("GET", f"{RULES}/versions", None),
        ("POST", f"{RULES}/restore", {"version": 1}),
        ("POST", f"{RULES}/dry-run", {"rules": []}),
        ("POST", f"{RULES}/explain", {"rules": [], "tool": "pay"}),
    ]
    alone, _ = await server(tmp_path)
    shared, _ = await server(tmp_path, has_several_tenants=True)
    for method, path, body in requests:
        assert (await ask(alone, method, path, json=body)).status == 401
        assert (await ask(alone, method, path, word("approver"), json=body)).status == 403
        refused = await ask(shared, method, f"{path}?scope=installation", word("owner"), json=body)
        assert refused.status == 403
        assert "operator" in refused.json["error"]["message"]
        assert (await ask(shared, method, path, word("operator"), json=body)).status in (200, 404)
        if method != "GET":
            assert (await ask(alone, method, path, cookie=word("owner"), json=body)).code == "csrf"
