"""Permission rules of administrators: stored, in effect at once and everywhere, with versions, and never wider than a file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.config.test_settings import Node, open_node
from tests.helpers.tenants import BELL, a_house, access_of, gate_in, over, start_session

from everturn import api
from everturn.access import Access
from everturn.access.context.server_context import ServerContext
from everturn.config.load import load_config
from everturn.config.reload import ConfigReloader
from everturn.config.stored_settings import add_settings
from everturn.core.events import PermissionDecided
from everturn.core.parts import ToolPart
from everturn.core.rules.policy import Rule
from everturn.core.tenants.accounts import Principal, Tenant
from everturn.core.tenants.settings import RULES, RuleSettings, Setting, StoredRule, encode_body
from everturn.errors import ConfigError, Forbidden, HashMismatch, UnknownSetting, UnknownTool
from everturn.models.offline import OFFLINE
from everturn.testing import MemoryStore

FILE = """
[[permissions]]
tool = "pay"
match = { amount = "13" }
action = "deny"
"""


class House:
    """A server with tools, whose settings can be changed."""

    def __init__(self, context: ServerContext, reloader: ConfigReloader) -> None:
        self.context, self.reloader = context, reloader

    def rules(self, role: Any = "owner", tenant: str = "ada") -> Any:
        return access_of(self.context, role, tenant).rule_settings

    async def put(self, *rules: StoredRule, version: int | None = None) -> api.RuleSettingsView:
        return await self.rules().put(api.NewRuleSettings(rules=rules, version=version))

    async def dry_run(self, *rules: StoredRule, role: Any = "owner", **how: Any) -> api.DryRunView:
        return await self.rules(role).dry_run(api.DryRunRules(rules=rules, **how))


@asynccontextmanager
async def a_server(folder: Path, toml: str = "", tenants: Sequence[str] = ("ada",)) -> AsyncGenerator[House]:
    """A server with the tools of `a_house`; other tenants than these are not active."""
    file = folder / "everturn.toml"
    file.write_text(toml)
    environ = {"HOME": str(folder)}
    loaded = load_config(str(file), environ)
    async with a_house(MemoryStore(), rules=loaded.rules) as context:
        for name in ("ada", "bob", "local"):
            await context.accounts.put_tenant(Tenant(name, created=1.0, is_active=name in tenants))
        reloader = ConfigReloader(loaded, context.app, context, OFFLINE, str(file), environ)
        await reloader.open_settings()
        yield House(context, reloader)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with a_server(tmp_path) as opened:
        yield opened


def rule(tool: str, action: Any, match: dict[str, str] | None = None, **more: Any) -> StoredRule:
    return StoredRule(tool, action, match or {}, **more)


async def result_of(access: Access, text: str, private: bool = False) -> ToolPart:
    """The call of a turn that runs to its end."""
    sent = await start_session(access, text, private=private)
    await over(access, sent)
    answer = (await access.sessions.messages(sent.session)).messages[-1]
    return next(part for part in answer.parts if isinstance(part, ToolPart))


# In effect ---------------------------------------------------------------------------------------------------------------


async def test_a_rule_decides_the_next_call_and_the_log_names_it(house: House) -> None:
    owner = access_of(house.context, "owner")
    await house.put(rule("look", "deny", note="not now"), rule("pay", "allow"))
    assert (await result_of(owner, "look")).state == "denied"
    sent = await start_session(owner, "pay")
    await over(owner, sent)
    events = [entry.event for entry in await house.context.app.store.events(sent.session)]
    decided = next(event for event in events if isinstance(event, PermissionDecided))
    assert decided.allowed
    assert decided.rule == Rule("pay", "allow", source="settings:2")
    await house.put(version=1)
    assert (await result_of(owner, "look")).state == "completed"


async def test_a_gate_that_is_open_stays_open_and_a_denial_counts_when_it_is_answered(house: House) -> None:
    owner = access_of(house.context, "owner")
    first, second = await start_session(owner, "pay"), await start_session(owner, "pay")
    gates = [await gate_in(owner, sent.session) for sent in (first, second)]
    await house.put(rule("pay", "allow"))
    assert len((await owner.gates.page()).gates) == 2, "no gate closes by itself"
    await house.put(rule("pay", "deny"))
    for sent, view in zip((first, second), gates, strict=True):
        await owner.gates.resolve(sent.session, view.gate.id, api.AnswerGate(hash=view.gate.hash, allow="once"))
        await over(owner, sent)
        part = next(
            p for p in (await owner.sessions.messages(sent.session)).messages[-1].parts if isinstance(p, ToolPart)
        )
        assert part.state == "denied", "rules count until a call starts, also after an approval"


async def test_a_denial_of_a_file_stays_and_its_allowance_can_be_narrowed(tmp_path: Path) -> None:
    toml = '[[permissions]]\ntool = "look"\naction = "deny"\n[[permissions]]\ntool = "pay"\naction = "allow"\n'
    async with a_server(tmp_path, toml) as house:
        owner = access_of(house.context, "owner")
        await house.put(rule("look", "allow"), rule("pay", "deny"))
        assert (await result_of(owner, "look")).state == "denied"
        assert (await result_of(owner, "pay")).state == "denied"
        shown = await house.rules().get()
        assert [(row.rule.tool, row.rule.source) for row in shown.fixed] == [
            ("look", "everturn.toml:1"),
            ("pay", "everturn.toml:4"),
        ]
        assert "denies" in shown.stored.rules[0].shadow


async def test_a_rule_that_is_not_enabled_decides_nothing_and_keeps_its_place(house: House) -> None:
    await house.put(rule("look", "deny", enabled=False), rule("pay", "ask"))
    assert house.context.app.permissions.policy.rules == (Rule("pay", "ask", source="settings:2"),)
    assert [row.rule.enabled for row in (await house.rules().get()).stored.rules] == [False, True]


async def test_other_processes_have_the_rules_when_they_are_signalled_and_after_a_start(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        other = ConfigReloader(node.reloader.files, node.context.app, None, OFFLINE)
        await other.open_settings()
        watching = asyncio.create_task(other.watch_settings(pause=3600))
        try:
            await asyncio.sleep(0)
            await rules_of(node).put(api.NewRuleSettings(rules=(rule("current_time", "deny"),)))
            async with asyncio.timeout(20):
                while not other.loaded.rules:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        finally:
            watching.cancel()
        assert node.context.app.permissions.policy.denies_outright("current_time")
    async with open_node(tmp_path) as node:
        assert node.context.app.permissions.policy.denies_outright("current_time")
    async with open_node(tmp_path, "[settings]\neditable = false\n") as node:
        assert not node.context.app.permissions.policy.rules
        assert (await rules_of(node).get()).is_editable is False
        with pytest.raises(ConfigError, match="editable"):
            await rules_of(node).put(api.NewRuleSettings(rules=()))


async def test_calls_wait_until_the_stored_rules_are_read(tmp_path: Path) -> None:
    async with a_house(MemoryStore()) as context:
        row = Setting(kind="rules", name=RULES, version=1, body=encode_body(RuleSettings((rule("look", "deny"),))))
        await context.app.store.settings.add(row)
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


async def test_rules_that_cannot_be_read_let_every_call_be_asked_about(tmp_path: Path) -> None:
    async with a_server(tmp_path, FILE) as house:
        for version, body in enumerate(
            (
                b'{"rules": [{"tool": "pay", "newer": 1}]}',
                b'{"rules": [{"tool": "a", "action": "deny", "match": {"path": "a/*/.."}}]}',
            ),
            1,
        ):
            await house.context.app.store.settings.add(Setting(kind="rules", name=RULES, version=version, body=body))
            await house.reloader.apply_settings()
            rules = house.context.app.permissions.policy.rules
            assert [(row.tool, row.action) for row in rules] == [("pay", "deny"), ("*", "ask")]
            assert (await house.rules().get()).stored.problem
        await house.put(rule("look", "allow"))
        assert [row.tool for row in house.context.app.permissions.policy.rules] == ["pay", "look"]
        assert (await house.rules().get()).stored.problem == ""


async def test_another_setting_that_is_wrong_keeps_no_denial_from_counting(tmp_path: Path) -> None:
    async with a_server(tmp_path) as house:
        row = Setting(kind="rules", name=RULES, version=1, body=encode_body(RuleSettings((rule("look", "deny"),))))
        await house.context.app.store.settings.add(row)

        def fail(new: object) -> None:
            raise ConfigError("an agent names a tool that is not there")

        house.reloader._apply = fail
        await house.reloader.apply_settings()
        assert house.context.app.permissions.policy.denies_outright("look")


def test_a_reference_in_a_pattern_is_text(tmp_path: Path) -> None:
    (tmp_path / "everturn.toml").write_text("")
    loaded = load_config(str(tmp_path / "everturn.toml"), {"HOME": str(tmp_path)})
    body = encode_body(RuleSettings((rule("look", "deny", {"at": "${env:HOME}"}),)))
    applied = add_settings(loaded, [Setting(kind="rules", name=RULES, version=1, body=body)], None)
    assert applied.loaded.rules[0].match == {"at": "${env:HOME}"}


def rules_of(node: Node) -> Any:
    return node.access().rule_settings


# Changes -----------------------------------------------------------------------------------------------------------------


async def test_rules_have_versions_that_can_be_restored_and_every_change_is_audited(house: House) -> None:
    assert (await house.rules().get()).stored.version == 0
    await house.put(rule("pay", "deny"), version=0)
    await house.put(rule("pay", "ask"), rule("look", "deny"), version=1)
    with pytest.raises(HashMismatch):
        await house.put(version=1)
    versions = (await house.rules().versions()).versions
    assert [(row.version, row.by, len(row.rules)) for row in versions] == [(2, "owner-ada", 2), (1, "owner-ada", 1)]
    restored = await house.rules().restore(api.RestoreVersion(version=1))
    assert (restored.version, [row.text for row in restored.rules]) == (3, ['{tool = "pay", action = "deny"}'])
    assert house.context.app.permissions.policy.denies_outright("pay")
    with pytest.raises(UnknownSetting):
        await house.rules().restore(api.RestoreVersion(version=9))
    records = [row for row in await house.context.accounts.audit("ada") if row.did == "setting.put"]
    detail = msgspec.json.decode(records[-1].detail)
    assert (records[-1].on, detail["version"], detail["restored"]) == ("rules:permissions", 3, 1)
    assert detail["added"] == ['{tool = "pay", action = "deny"}']
    assert len(detail["removed"]) == 2


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (rule(" pay", "deny"), "rule 2: no tool has a name"),
        (rule("pay", "deny", {"path": ""}), "rule 2: .* it is empty"),
        (rule("run", "allow", {"command": "git 'log"}), "rule 2: .*quotation mark"),
        (rule("read", "deny", {"path": "a/*/.."}, enabled=False), "rule 2: .*wildcard"),
    ],
)
async def test_an_invalid_rule_is_named_by_its_number_and_nothing_changes(
    house: House, wrong: StoredRule, reason: str
) -> None:
    for change in (house.put(rule("look", "deny"), wrong), house.dry_run(rule("look", "deny"), wrong)):
        with pytest.raises(ConfigError, match=reason):
            await change
    assert (await house.rules().get()).stored.rules == []


async def test_owners_change_the_rules_of_one_tenant_and_operators_those_of_several(tmp_path: Path) -> None:
    async with a_server(tmp_path) as house:
        with pytest.raises(Forbidden):
            await house.rules("approver").get()
        await house.put(rule("pay", "deny"))
    async with a_server(tmp_path, tenants=("ada", "bob", "local")) as house:
        draft = api.DryRunRules(rules=())
        explained = api.ExplainDraft(rules=(), tool="pay")
        for change in (
            house.rules().get("installation"),
            house.put(rule("pay", "deny")),
            house.rules().versions(),
            house.rules().restore(api.RestoreVersion(version=1)),
            house.rules().dry_run(draft),
            house.rules().explain(explained),
        ):
            with pytest.raises(Forbidden, match="operator"):
                await change
        await house.rules("operator", "local").put(api.NewRuleSettings(rules=(rule("pay", "deny"),)))
        assert house.context.app.permissions.policy.denies_outright("pay")


async def test_a_rule_for_a_tool_that_is_not_there_is_marked(house: House) -> None:
    await house.put(rule("pya", "deny"), rule("PAY", "deny"), rule("lo*", "ask"))
    assert [row.is_idle for row in (await house.rules().get()).stored.rules] == [True, False, False]
    changes = (await house.dry_run(rule("pya", "ask"))).changes
    assert [change.is_idle for change in changes if change.is_added] == [True]


async def test_a_draft_is_explained_as_it_would_decide(tmp_path: Path) -> None:
    async with a_server(tmp_path, FILE) as house:
        for amount, action in ((7, "allow"), (13, "deny")):
            call = api.ExplainDraft(rules=(rule("pay", "allow"),), tool="pay", arguments={"amount": amount})
            explanation = await house.rules().explain(call)
            assert explanation.action == action
            assert explanation.rule is not None
        with pytest.raises(UnknownTool):
            await house.rules().explain(api.ExplainDraft(rules=(), tool="nothing"))
        assert house.context.app.permissions.policy.rules == house.reloader.files.rules


# Dry run -----------------------------------------------------------------------------------------------------------------


async def test_a_dry_run_shows_what_a_draft_would_have_decided_and_changes_nothing(house: House) -> None:
    owner = access_of(house.context, "owner")
    for text in ("look", "look", "pay"):
        sent = await start_session(owner, text)
        if text == "look":
            await over(owner, sent)
        else:
            await gate_in(owner, sent.session)
    before = house.context.app.permissions.policy
    shown = await house.dry_run(rule("look", "ask"), rule("pay", "allow", {"amount": "7"}))
    assert (shown.calls, shown.skipped) == (3, 0)
    groups = [(row.tool, row.before, row.after, row.count, row.private, row.loosens) for row in shown.groups]
    assert groups == [("pay", "ask", "allow", 1, 0, True), ("look", "allow", "ask", 2, 0, False)]
    example = shown.groups[0].examples[0]
    assert (example.arguments, example.recorded) == ('{"amount":7}', "ask")
    assert example.rule is not None
    assert example.rule.rule.source == "settings:2"
    assert [(row.is_added, row.loosens) for row in shown.changes] == [(True, False), (True, True)]
    assert house.context.app.permissions.policy is before
    assert (await house.rules().get()).stored.version == 0
    assert len((await owner.gates.page()).gates) == 1


async def test_it_compares_with_the_rules_in_effect_so_no_change_shows_no_calls(house: House) -> None:
    owner = access_of(house.context, "owner")
    await result_of(owner, "look")
    await house.put(rule("look", "deny"))
    assert (await house.dry_run(rule("look", "deny"))).groups == []
    shown = await house.dry_run()
    assert [(row.before, row.after, row.loosens) for row in shown.groups] == [("deny", "allow", True)]
    assert shown.groups[0].examples[0].recorded == "allow"


async def test_calls_of_sub_agents_count_and_grants_are_taken_into_account(house: House) -> None:
    owner = access_of(house.context, "owner")
    sent = await start_session(owner, "clerk")
    gate = (await gate_in(owner, sent.session)).gate
    await owner.gates.resolve(sent.session, gate.id, api.AnswerGate(hash=gate.hash, allow="always"))
    await over(owner, sent)
    groups = {row.tool: (row.before, row.after) for row in (await house.dry_run(rule("*", "deny"))).groups}
    assert groups["pay"] == ("allow", "deny"), "the grant allows it now"
    assert groups["clerk"][1] == "deny"


async def test_only_the_last_calls_are_read(house: House) -> None:
    owner = access_of(house.context, "owner")
    for text in ("look", "pay", "look"):
        sent = await start_session(owner, text)
        await (over(owner, sent) if text == "look" else gate_in(owner, sent.session))
    shown = await house.dry_run(rule("*", "deny"), calls=2)
    assert shown.calls == 2
    assert {row.tool: row.count for row in shown.groups} == {"look": 1, "pay": 1}


async def test_of_private_conversations_only_numbers_are_shown(house: House) -> None:
    """Neither a title nor an argument; and where patterns are tried, not even a small number."""
    member = access_of(house.context, "member")
    for number in range(6):
        sent = await start_session(member, f"pay secret-{number}", private=True)
        await gate_in(member, sent.session)
    await start_session(access_of(house.context, "owner"), "look")
    shown = await house.dry_run(rule("pay", "deny"))
    (group,) = shown.groups
    assert (group.count, group.private, group.examples) == (6, 6, [])
    assert shown.hidden_below == 0
    assert "secret" not in str(shown)
    assert "amount" not in str(shown.groups)
    probing = await house.dry_run(rule("pay", "deny", {"amount": "7"}))
    assert ([row.count for row in probing.groups], probing.hidden_below) == ([6], 5)
    record = (await house.context.accounts.audit("ada"))[-1]
    assert (record.did, record.by) == ("setting.dry_run", "owner-ada")
    assert "amount" in record.detail, "what was tried on private conversations can be looked up"


async def test_a_pattern_finds_no_single_call_in_a_private_conversation(house: House) -> None:
    member = access_of(house.context, "member")
    sent = await start_session(member, "pay", private=True)
    await gate_in(member, sent.session)
    hit = await house.dry_run(rule("pay", "deny", {"amount": "7"}))
    miss = await house.dry_run(rule("pay", "deny", {"amount": "8"}))
    assert (hit.groups, hit.calls, hit.skipped) == (miss.groups, miss.calls, miss.skipped) == ([], 1, 0)
    own = await access_of(house.context, "member").sharing.share(sent.session, api.NewShare(user="owner-ada"))
    assert own
    shared = await house.dry_run(rule("pay", "deny", {"amount": "7"}))
    assert shared.groups[0].examples[0].arguments == '{"amount":7}'


async def test_calls_of_other_tenants_do_not_count(tmp_path: Path) -> None:
    async with a_server(tmp_path, tenants=("ada", "bob", "local")) as house:
        for tenant in ("ada", "bob"):
            sent = await start_session(access_of(house.context, "member", tenant), "look")
            await over(access_of(house.context, "member", tenant), sent)
        operator = Access(house.context, Principal("ada", "root", "operator", "key"))
        shown = await operator.rule_settings.dry_run(api.DryRunRules(rules=(rule("look", "deny"),)))
        assert [row.count for row in shown.groups] == [1]
        nobody = await house.rules("operator", "local").dry_run(api.DryRunRules(rules=(rule("look", "deny"),)))
        assert (nobody.calls, nobody.groups, nobody.since) == (0, [], 0.0)


async def test_a_call_of_a_tool_that_the_server_does_not_have_is_counted_as_skipped(house: House) -> None:
    owner = access_of(house.context, "owner")
    sent = await start_session(owner, "bell", clients=[BELL])
    await gate_in(owner, sent.session)
    shown = await house.dry_run(rule("*", "deny"))
    assert (shown.calls, shown.skipped, shown.groups) == (0, 1, [])
