"""Permission rules of one tenant: they decide its calls and no others, and never allow what the installation forbids."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.config.test_rule_settings import FILE, House, a_server, result_of, rule
from tests.helpers.tenants import a_house, access_of, gate_in, over, start_session

from everturn import api
from everturn.config.load import load_config
from everturn.config.reload import ConfigReloader
from everturn.core.events import PermissionDecided
from everturn.core.parts import ToolPart
from everturn.core.rules.policy import Rule
from everturn.core.tenants.settings import RULES, RuleSettings, Setting, StoredRule, encode_body
from everturn.errors import ConfigError, Forbidden, HashMismatch, UnknownSetting
from everturn.models.offline import OFFLINE
from everturn.running.permissions import Permissions
from everturn.testing import MemoryStore

TENANTS = ("ada", "bob", "local")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with a_server(tmp_path, tenants=TENANTS) as opened:
        yield opened


async def put(house: House, *rules: StoredRule, tenant: str = "ada", version: int | None = None) -> Any:
    return await house.rules("owner", tenant).put(api.NewRuleSettings(rules=rules, version=version), "tenant")


async def put_for_all(house: House, *rules: StoredRule) -> None:
    await house.rules("operator", "local").put(api.NewRuleSettings(rules=rules))


async def decided(house: House, tenant: str, text: str) -> PermissionDecided:
    """What the log says about the call of a turn that nobody has to answer."""
    owner = access_of(house.context, "owner", tenant)
    sent = await start_session(owner, text)
    await over(owner, sent)
    events = [entry.event for entry in await house.context.app.store.events(sent.session)]
    return next(event for event in events if isinstance(event, PermissionDecided))


async def test_it_decides_the_calls_of_its_tenant_and_no_others(house: House) -> None:
    await put(house, rule("look", "deny"), rule("pay", "allow"))
    assert (await result_of(access_of(house.context, "owner"), "look")).state == "denied"
    assert (await result_of(access_of(house.context, "owner", "bob"), "look")).state == "completed"
    allowed = await decided(house, "ada", "pay")
    assert (allowed.allowed, allowed.rule) == (True, Rule("pay", "allow", source="tenant settings:2"))
    bob = access_of(house.context, "owner", "bob")
    await gate_in(bob, (await start_session(bob, "pay")).session)


async def test_it_decides_the_calls_of_sub_agents_too(house: House) -> None:
    await put(house, rule("pay", "deny"))
    owner, bob = access_of(house.context, "owner"), access_of(house.context, "owner", "bob")
    await over(owner, await start_session(owner, "clerk"))
    assert (await gate_in(bob, (await start_session(bob, "clerk")).session)).gate.tool == "pay"


@pytest.mark.parametrize("of", ["file", "installation"])
async def test_it_never_allows_what_the_installation_denies_or_asks_about(of: str, tmp_path: Path) -> None:
    async with a_server(tmp_path, FILE.replace('"13"', '"7"') if of == "file" else "", TENANTS) as house:
        if of == "installation":
            await put_for_all(house, rule("pay", "deny", {"amount": "7"}))
        await put(house, rule("pay", "allow"), rule("look", "allow"))
        assert not (await decided(house, "ada", "pay")).allowed
        if of == "installation":
            await put_for_all(house, rule("look", "ask"))
            owner = access_of(house.context, "owner")
            await gate_in(owner, (await start_session(owner, "look")).session)


async def test_a_denial_counts_when_an_open_gate_of_the_tenant_is_answered(house: House) -> None:
    sessions: dict[str, tuple[Any, Any, Any]] = {}
    for tenant in ("ada", "bob"):
        owner = access_of(house.context, "owner", tenant)
        sent = await start_session(owner, "pay")
        sessions[tenant] = owner, sent, (await gate_in(owner, sent.session)).gate
    await put(house, rule("pay", "deny"))
    states: dict[str, str] = {}
    for tenant, (owner, sent, gate) in sessions.items():
        await owner.gates.resolve(sent.session, gate.id, api.AnswerGate(hash=gate.hash, allow="once"))
        await over(owner, sent)
        parts = (await owner.sessions.messages(sent.session)).messages[-1].parts
        states[tenant] = next(part.state for part in parts if isinstance(part, ToolPart))
    assert states == {"ada": "denied", "bob": "completed"}


async def test_a_restarted_process_decides_no_call_before_it_has_read_them(tmp_path: Path) -> None:
    async with a_house(MemoryStore()) as context:
        body = encode_body(RuleSettings((rule("look", "deny"),)))
        await context.app.store.settings.add(Setting(scope="ada", kind="rules", name=RULES, version=1, body=body))
        context.app.permissions.hold()
        owner = access_of(context, "owner")
        sent = await start_session(owner, "look")
        for _ in range(200):  # the turn gets to its call, and no further
            await asyncio.sleep(0)
        assert not (await owner.sessions.turn(sent.session, sent.turn)).phase.is_terminal
        (tmp_path / "everturn.toml").write_text("")
        loaded = load_config(str(tmp_path / "everturn.toml"), {"HOME": str(tmp_path)})
        await ConfigReloader(loaded, context.app, context, OFFLINE, "everturn.toml", {}).open_settings()
        await over(owner, sent)
        assert "not allowed" in str((await owner.sessions.messages(sent.session)).messages[-1])


async def test_other_processes_have_them_when_they_are_signalled(house: House) -> None:
    app = house.context.app
    other = ConfigReloader(house.reloader.files, app, None, OFFLINE)
    await other.open_settings()
    watching = asyncio.create_task(other.watch_settings(pause=3600))
    try:
        await asyncio.sleep(0)
        await put(house, rule("look", "deny"))
        assert other.settings is not None
        async with asyncio.timeout(20):
            while not other.settings.tenant_rules:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert [row.tool for row in other.settings.tenant_rules["ada"]] == ["look"]
    finally:
        watching.cancel()


async def test_those_that_cannot_be_read_let_every_call_of_the_tenant_be_asked_about(house: House) -> None:
    row = Setting(scope="ada", kind="rules", name=RULES, version=1, body=b'{"rules": [{"tool": "pay", "newer": 1}]}')
    await house.context.app.store.settings.add(row)
    await house.reloader.apply_settings()
    owner = access_of(house.context, "owner")
    await gate_in(owner, (await start_session(owner, "look")).session)
    assert (await result_of(access_of(house.context, "owner", "bob"), "look")).state == "completed"
    assert (await house.rules().get()).stored.problem
    assert (await house.rules("owner", "bob").get()).stored.problem == ""


async def test_an_owner_sees_their_own_and_those_of_the_installation_as_fixed(tmp_path: Path) -> None:
    async with a_server(tmp_path, FILE, TENANTS) as house:
        await put_for_all(house, rule("peek", "ask"))
        await put(house, rule("look", "deny"), rule("pay", "allow", {"amount": "13"}))
        await put(house, rule("quiz", "deny"), tenant="bob")
        view = await house.rules().get()
        assert (view.scope, view.scopes) == ("tenant", ["tenant"])
        assert [(row.rule.tool, row.scope) for row in view.fixed] == [("pay", "file"), ("peek", "installation")]
        assert [row.rule.tool for row in view.stored.rules] == ["look", "pay"]
        assert view.stored.rules[1].shadow, "the denial of the file is stricter"
        top = await house.rules("operator", "local").get()
        assert (top.scope, top.scopes) == ("installation", ["installation", "tenant"])
        shown = (await access_of(house.context, "member").admin.rules("helper")).rules
        assert {row.rule.tool: row.scope for row in shown} == {
            "pay": "tenant",
            "peek": "installation",
            "look": "tenant",
        }
        assert "quiz" not in repr(shown)
    async with a_server(tmp_path) as alone:
        assert (await alone.rules().get()).scopes == ["installation"]
        await put(alone, rule("look", "deny"))
        assert (await alone.rules().get()).scopes == ["installation", "tenant"]


async def test_an_explanation_names_the_deciding_rule_and_its_scope(house: House) -> None:
    await put_for_all(house, rule("pay", "ask"))
    await put(house, rule("look", "deny"), rule("pay", "allow"))
    member = access_of(house.context, "member").admin
    for tool, action, scope in (("look", "deny", "tenant"), ("pay", "ask", "installation")):
        explained = await member.explain(api.ExplainCall(tool=tool, arguments={"amount": 7} if tool == "pay" else {}))
        assert explained.rule is not None
        assert (explained.action, explained.rule.scope) == (action, scope)
    call = api.ExplainDraft(rules=(rule("pay", "deny"),), tool="pay", arguments={"amount": 7})
    drafted = await house.rules().explain(call, "tenant")
    assert (drafted.action, drafted.rule.scope, drafted.rule.rule.source) == ("deny", "tenant", "tenant settings:1")


async def test_a_dry_run_decides_the_calls_of_the_tenant_by_both_lists(house: House) -> None:
    for tenant in ("ada", "bob"):
        await result_of(access_of(house.context, "owner", tenant), "look")
    draft = api.DryRunRules(rules=(rule("look", "deny"),))
    shown = await house.rules().dry_run(draft, "tenant")
    assert (shown.calls, [(row.count, row.after) for row in shown.groups]) == (1, [(1, "deny")])
    assert (await house.rules("owner", "bob").dry_run(draft, "tenant")).calls == 1
    await put_for_all(house, rule("look", "deny"))
    loose = await house.rules().dry_run(api.DryRunRules(rules=(rule("look", "allow"),)), "tenant")
    assert loose.groups == [], "the installation denies it whatever the tenant says"
    assert len(loose.changes) == 1
    records = (await access_of(house.context, "owner").accounts.audit(limit=100)).records
    assert [row for row in records if row.did == "setting.dry_run" and '"scope":"tenant"' in row.detail]


async def test_versions_are_of_one_tenant_and_every_change_is_audited(house: House) -> None:
    rules, other = house.rules(), house.rules("owner", "bob")
    await put(house, rule("look", "deny"), version=0)
    with pytest.raises(HashMismatch):
        await put(house, version=0)
    await put(house, version=1)
    assert [row.version for row in (await rules.versions("tenant")).versions] == [2, 1]
    assert (await other.versions("tenant")).versions == []
    with pytest.raises(UnknownSetting):
        await other.restore(api.RestoreVersion(version=1), "tenant")
    await rules.restore(api.RestoreVersion(version=1), "tenant")
    assert (await result_of(access_of(house.context, "owner"), "look")).state == "denied"
    with pytest.raises(ConfigError, match="rule 1"):
        await put(house, rule("look", "deny", {"path": "a/*/.."}))
    records = (await access_of(house.context, "owner").accounts.audit(limit=100)).records
    assert len([row for row in records if row.did == "setting.put" and '"scope":"tenant"' in row.detail]) == 3
    theirs = (await access_of(house.context, "owner", "bob").accounts.audit(limit=100)).records
    assert not [row for row in theirs if row.did == "setting.put"]


async def test_an_owner_who_forgets_the_scope_is_told_of_it(house: House) -> None:
    with pytest.raises(Forbidden, match="scope=tenant"):
        await house.rules().put(api.NewRuleSettings(rules=()))
    for role in ("member", "approver"):
        with pytest.raises(Forbidden):
            await house.rules(role).put(api.NewRuleSettings(rules=()), "tenant")


async def test_permissions_of_a_tenant_follow_every_later_change() -> None:
    permissions = Permissions([Rule("a", "deny")])
    held = permissions.of_tenant("ada")
    assert permissions.of_tenant("ada") is held
    permissions.replace([Rule("b", "deny")], {"ada": [Rule("c", "deny")]})
    assert [row.tool for row in held.policy.rules] == ["b", "c"]
    permissions.replace([Rule("d", "deny")])
    assert [row.tool for row in held.policy.rules] == ["d", "c"], "a reload of the file keeps the tenant's rules"
    assert [row.tool for row in permissions.of_tenant("bob").policy.rules] == ["d"]
    permissions.replace([], {})
    assert held.policy.rules == ()
