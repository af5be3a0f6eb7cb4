"""Built-in tools that act ask unless a rule or a remembered answer allows the call; and for whom an answer holds."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.helpers.tenants import settle, somebody, start_session
from tests.helpers.waiting import wait_until
from tests.permissions.explained_tools import shell

from everturn import Chat, api
from everturn.access.access import Access
from everturn.access.context.agents import Agents, AgentSpec, TenantLimits
from everturn.access.context.server_context import ServerContext
from everturn.app import App
from everturn.cli.run.gates import NonInteractive
from everturn.config.load import load_config
from everturn.config.tools import create_tools
from everturn.core.events import CallStarted, GateOpened
from everturn.core.gates import Gate
from everturn.core.options import TurnOptions
from everturn.core.requests import ToolSpec
from everturn.core.rules.policy import Rule
from everturn.errors import ConfigError
from everturn.running.permissions import Permissions
from everturn.stores.memory import MemoryStore
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools.code import shell as shell_tool
from everturn.tools.files import files

NOTES = Rule("write_file", "allow", {"path": "notes/**"})  # as the file says that the first start writes


async def test_the_rule_of_the_first_file_lets_a_file_be_written_and_any_other_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    model = ScriptedModel(
        calls(call("write_file", path="notes/a.md", content="x"), call("write_file", path="b.md", content="y")),
        say("ok"),
    )
    gates: list[Gate] = []
    async with Chat(model, tools=[files(tmp_path).enabled()], rules=[NOTES]) as chat:
        async for event in await chat.send("go"):
            if isinstance(event, GateOpened):
                gates.append(event.gate)
                await chat.answer(event.gate, allow="always")
    assert [gate.offers[0] for gate in gates] == [Rule("write_file", "allow", {"path": "b.md"}, "grants")]
    assert ((tmp_path / "notes/a.md").read_text(), (tmp_path / "b.md").read_text()) == ("x", "y")


@pytest.mark.parametrize(
    ("fields", "pattern", "action"),
    [
        ({}, "*", "ask"),
        ({}, "?*", "ask"),
        ({}, "p*", "allow"),
        ({"idempotent": True}, "*", "ask"),
        ({"read_only": True}, "*", "allow"),
        ({"approval": "auto"}, "*", "allow"),
        ({"read_only": True, "origin": "mcp:bank"}, "*", "ask"),
        ({"read_only": True, "origin": "mcp:bank"}, "pay", "allow"),
    ],
)
def test_a_rule_for_every_tool_allows_none_that_acts(fields: dict[str, Any], pattern: str, action: str) -> None:
    chosen: dict[str, Any] = {"approval": "ask", **fields}
    spec = ToolSpec("pay", "", {}, **chosen)
    for rules, own in (((Rule(pattern, "allow"),), ()), ((), (Rule(pattern, "allow", layer="agent"),))):
        assert Permissions(rules).decide_cases(spec, [{}], TurnOptions(rules=own)).action == action
    assert Permissions([Rule(pattern, "deny")]).decide_cases(spec, [{}], TurnOptions()).action == "deny"


@pytest.mark.parametrize(
    ("written", "is_personal", "approval"),
    [
        ("shell = true", True, "ask"),
        ("shell = true", False, "always"),  # a server
        ("[tools.shell]", False, "always"),
        ('[tools.shell]\napproval = "ask"', False, "ask"),
        ('[tools.shell]\napproval = "always"', True, "always"),
        ('[tools.shell]\napproval = "auto"', False, "auto"),
        ('files = "{0}"', False, "ask"),
        ('[tools.files]\nfolder = "{0}"\napproval = "always"', True, "always"),
        ('[tools.files]\nfolder = "{0}"\napproval = "deny"', True, "deny"),
    ],
)
def test_a_configuration_says_who_decides(tmp_path: Path, written: str, is_personal: bool, approval: str) -> None:
    if "shell" in written and shell_tool.why_shell_unavailable():
        pytest.skip(f"no shell here: {shell_tool.why_shell_unavailable()}")
    (tmp_path / "work").mkdir()
    (tmp_path / "c.toml").write_text("[tools]\n" + written.format(tmp_path / "work"), encoding="utf-8")
    environ = {"HOME": str(tmp_path)}
    brought = create_tools(load_config(str(tmp_path / "c.toml"), environ), environ, is_personal)
    specs = {member.spec.name: member.spec for tool in brought.tools for member in getattr(tool, "tools", [tool])}
    assert (specs.get("run_shell") or specs["write_file"]).approval == approval


def test_an_approval_that_is_none_is_reported_with_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[tools.shell]\napproval = "sometimes"', encoding="utf-8")
    with pytest.raises(ConfigError, match="approval"):
        load_config(str(tmp_path / "c.toml"), {"HOME": str(tmp_path)})


async def test_a_run_that_denies_names_the_parts_that_no_rule_covers() -> None:
    rules = [Rule("shell", "allow", {"command": "python3 *"}), Rule("shell", "allow", {"command": "tail *"})]
    model = ScriptedModel(calls(call("shell", command="python3 -m unittest -q | tail -5")), say("ok"))
    lines: list[str] = []
    async with Chat(model, tools=[shell], rules=rules) as chat:
        nobody = NonInteractive(chat, lines.append, TurnOptions())
        async for event in await chat.send("go"):
            if isinstance(event, GateOpened):
                await nobody.ask(event.gate)
    (line,) = lines
    assert "no rule covers command = python runs a command (-m): python3 -m unittest -q" in line
    assert "'!python' -m unittest -q" in line.replace("'\"'\"'", "'")
    assert "covers command = tail" not in line


# On a server -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def a_server() -> AsyncGenerator[ServerContext]:
    store = MemoryStore()
    once = (calls(call("shell", command="git log")), say("Done."))
    app = App(ScriptedModel(*once * 3, name="scripted"), tools=[shell], store=store)
    agents = Agents([AgentSpec("one", TurnOptions(model="scripted"))], default_limits=TenantLimits(requests=0))
    house = ServerContext(app, store.accounts, agents)
    await settle(house.accounts)
    await app.start()
    try:
        yield house
    finally:
        await app.aclose()


async def _events(house: ServerContext, session: str, turn: str, kind: type) -> list[Any]:
    log: list[Any] = [entry.event for entry in await house.app.store.events(session)]
    return [event for event in log if isinstance(event, kind) and event.turn == turn]


async def test_a_command_that_was_allowed_is_allowed_to_whoever_asked_and_to_nobody_else() -> None:
    async with a_server() as house:
        member, approver = Access(house, somebody()), Access(house, somebody(role="approver"))
        sent = await start_session(member, "go")
        (view,) = await wait_until(lambda: _gates(approver, sent.session))
        await approver.gates.resolve(sent.session, view.gate.id, api.AnswerGate(hash=view.gate.hash, allow="always"))
        await wait_until(lambda: _events(house, sent.session, sent.turn, CallStarted))
        again = await member.sessions.send(sent.session, api.NewMessage(text="go"))
        await wait_until(lambda: _events(house, sent.session, again.turn, CallStarted))
        about = api.ExplainCall(tool="shell", arguments={"command": "git log"}, session=sent.session)
        assert [(await access.admin.explain(about)).action for access in (member, approver)] == ["allow", "ask"]
        other = await approver.sessions.send(sent.session, api.NewMessage(text="go"))
        await wait_until(lambda: _events(house, sent.session, other.turn, GateOpened))


async def _gates(access: Access, session: str) -> list[api.GateView]:
    return list((await access.gates.page(session)).gates)


async def test_a_command_is_not_allowed_everywhere() -> None:
    async with a_server() as house:
        owner = Access(house, somebody(role="owner"))
        sent = await owner.sessions.start(api.NewSession(text="go"))
        (view,) = await wait_until(lambda: _gates(owner, sent.session))
        assert view.gate.session_only  # and no screen offers more
        answered = api.AnswerGate(hash=view.gate.hash, allow="always", everywhere=True)
        with pytest.raises(ConfigError, match="in one session"):
            await owner.gates.resolve(sent.session, view.gate.id, answered)
        await owner.gates.resolve(sent.session, view.gate.id, replace(answered, everywhere=False))
