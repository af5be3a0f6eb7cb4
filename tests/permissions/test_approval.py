"""Built-in tools that act ask unless a rule or a remembered answer allows the call; and for whom an answer holds."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.access.house import settle, somebody, until
from tests.permissions.explained_tools import shell

from everturn import Chat, api
from everturn.access.access import House
from everturn.access.agents import Agents, AgentSpec, TenantLimits
from everturn.cli.run_gates import Nobody
from everturn.config.loading import load
from everturn.config.tools import bring
from everturn.core.asking import Gate
from everturn.core.events import CallStarted, GateOpened
from everturn.core.options import TurnOptions
from everturn.core.policy import Rule
from everturn.core.requests import ToolSpec
from everturn.errors import ConfigError
from everturn.stores.memory import MemoryStore
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools.code import shell as shell_tool
from everturn.tools.files import files
from everturn.turn.permit import Permits
from everturn.wiring import Runtime

NOTES = Rule("write_file", "allow", {"path": "notes/**"})  # as the file says that the first start writes


async def test_the_rule_of_the_first_file_lets_a_file_be_written_and_any_other_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    model = ScriptedModel(
        calls(call("write_file", path="notes/a.md", content="x"), call("write_file", path="b.md", content="y")),
        say("ok"),
    )
    asked: list[Gate] = []
    async with Chat(model, tools=[files(tmp_path).enabled()], rules=[NOTES]) as chat:
        async for event in await chat.send("go"):
            if isinstance(event, GateOpened):
                asked.append(event.gate)
                await chat.answer(event.gate, allow="always")
    assert [gate.offers[0] for gate in asked] == [Rule("write_file", "allow", {"path": "b.md"}, "grants")]
    assert ((tmp_path / "notes/a.md").read_text(), (tmp_path / "b.md").read_text()) == ("x", "y")


@pytest.mark.parametrize(
    ("fields", "pattern", "action"),
    [
        ({}, "*", "ask"),
        ({}, "?*", "ask"),
        ({}, "p*", "allow"),
        ({"effects": "write"}, "*", "ask"),
        ({"effects": "read"}, "*", "allow"),
        ({"execute": "auto"}, "*", "allow"),
        ({"effects": "read", "origin": "mcp:bank"}, "*", "ask"),
        ({"effects": "read", "origin": "mcp:bank"}, "pay", "allow"),
    ],
)
def test_a_rule_for_every_tool_allows_none_that_acts(fields: dict[str, Any], pattern: str, action: str) -> None:
    chosen: dict[str, Any] = {"execute": "ask_once", **fields}
    spec = ToolSpec("pay", "", {}, **chosen)
    for rules, own in (((Rule(pattern, "allow"),), ()), ((), (Rule(pattern, "allow", layer="agent"),))):
        assert Permits(rules).judge(spec, [{}], TurnOptions(rules=own)).action == action
    assert Permits([Rule(pattern, "deny")]).judge(spec, [{}], TurnOptions()).action == "deny"


@pytest.mark.parametrize(
    ("written", "is_personal", "execute"),
    [
        ("shell = true", True, "ask_once"),
        ("shell = true", False, "ask"),  # a server
        ("[tools.shell]", False, "ask"),
        ('[tools.shell]\napproval = "ask"', False, "ask_once"),
        ('[tools.shell]\napproval = "always"', True, "ask"),
        ('[tools.shell]\napproval = "auto"', False, "auto"),
        ('files = "{0}"', False, "ask_once"),
        ('[tools.files]\nfolder = "{0}"\napproval = "always"', True, "ask"),
        ('[tools.files]\nfolder = "{0}"\napproval = "deny"', True, "deny"),
    ],
)
def test_a_configuration_says_who_decides(tmp_path: Path, written: str, is_personal: bool, execute: str) -> None:
    if "shell" in written and shell_tool.absent():
        pytest.skip(f"no shell here: {shell_tool.absent()}")
    (tmp_path / "work").mkdir()
    (tmp_path / "c.toml").write_text("[tools]\n" + written.format(tmp_path / "work"), encoding="utf-8")
    environ = {"HOME": str(tmp_path)}
    brought = bring(load(str(tmp_path / "c.toml"), environ), environ, is_personal)
    specs = {one.spec.name: one.spec for tool in brought.tools for one in getattr(tool, "tools", [tool])}
    assert (specs.get("run_shell") or specs["write_file"]).execute == execute


def test_an_approval_that_is_none_is_told_with_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[tools.shell]\napproval = "sometimes"', encoding="utf-8")
    with pytest.raises(ConfigError, match="approval"):
        load(str(tmp_path / "c.toml"), {"HOME": str(tmp_path)})


async def test_a_run_that_denies_names_the_parts_that_no_rule_covers() -> None:
    rules = [Rule("shell", "allow", {"command": "python3 *"}), Rule("shell", "allow", {"command": "tail *"})]
    model = ScriptedModel(calls(call("shell", command="python3 -m unittest -q | tail -5")), say("ok"))
    told: list[str] = []
    async with Chat(model, tools=[shell], rules=rules) as chat:
        nobody = Nobody(chat, told.append, TurnOptions())
        async for event in await chat.send("go"):
            if isinstance(event, GateOpened):
                await nobody.ask(event.gate)
    (line,) = told
    assert "no rule covers command = python runs a command (-m): python3 -m unittest -q" in line
    assert "'!python' -m unittest -q" in line.replace("'\"'\"'", "'")
    assert "covers command = tail" not in line


# On a server -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def a_server() -> AsyncGenerator[House]:
    store = MemoryStore()
    once = (calls(call("shell", command="git log")), say("Done."))
    runtime = Runtime(ScriptedModel(*once * 3, name="scripted"), tools=[shell], store=store)
    agents = Agents([AgentSpec("one", TurnOptions(model="scripted"))], default_limits=TenantLimits(requests=0))
    house = House(runtime, store.accounts, agents)
    await settle(house.accounts)
    await runtime.start()
    try:
        yield house
    finally:
        await runtime.aclose()


async def _events(house: House, session: str, turn: str, kind: type) -> list[Any]:
    log: list[Any] = [entry.event for entry in await house.runtime.store.events(session)]
    return [event for event in log if isinstance(event, kind) and event.turn == turn]


async def test_a_command_that_was_allowed_is_allowed_to_whoever_asked_and_to_nobody_else() -> None:
    async with a_server() as house:
        member, approver = house.access(somebody()), house.access(somebody(role="approver"))
        sent = await member.begin(api.NewSession(text="go"))
        (view,) = await until(lambda: _gates(approver, sent.session))
        await approver.answer(sent.session, view.gate.id, api.Answered(hash=view.gate.hash, allow="always"))
        await until(lambda: _events(house, sent.session, sent.turn, CallStarted))
        again = await member.send(sent.session, api.NewMessage(text="go"))
        await until(lambda: _events(house, sent.session, again.turn, CallStarted))
        about = api.Explain(tool="shell", arguments={"command": "git log"}, session=sent.session)
        assert [(await who.explain(about)).action for who in (member, approver)] == ["allow", "ask"]
        other = await approver.send(sent.session, api.NewMessage(text="go"))
        await until(lambda: _events(house, sent.session, other.turn, GateOpened))


async def _gates(access: Any, session: str) -> list[api.GateView]:
    return list((await access.gates(session)).gates)


async def test_a_command_is_not_allowed_everywhere() -> None:
    async with a_server() as house:
        owner = house.access(somebody(role="owner"))
        sent = await owner.begin(api.NewSession(text="go"))
        (view,) = await until(lambda: _gates(owner, sent.session))
        assert view.gate.session_only  # and no screen offers more
        answered = api.Answered(hash=view.gate.hash, allow="always", everywhere=True)
        with pytest.raises(ConfigError, match="in one session"):
            await owner.answer(sent.session, view.gate.id, answered)
        await owner.answer(sent.session, view.gate.id, replace(answered, everywhere=False))
