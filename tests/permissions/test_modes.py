"""Permission modes: what plan denies, what auto-edit allows, and that neither overrules a rule."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.core.options import Lineage, PermissionMode, TurnOptions, TurnPermissions
from everturn.core.requests import ToolSpec
from everturn.core.rules.policy import Rule
from everturn.running.permissions import Permissions

READ = ToolSpec("read_file", "", {}, read_only=True, subjects={"path": "path"}, origin="files:/w")
EDIT = ToolSpec("edit_file", "", {}, idempotent=True, approval="ask", subjects={"path": "path"}, origin="files:/w")
ALWAYS = ToolSpec("write_file", "", {}, approval="always", subjects={"path": "path"}, origin="files:/w")
SHELL = ToolSpec("run", "", {}, approval="ask", origin="code:bubblewrap")
FREE = ToolSpec("note", "", {})
MCP = ToolSpec("look", "", {}, read_only=True, approval="ask", origin="mcp:x")
AGENT = ToolSpec("helper", "", {}, idempotent=True, origin="agent")
ARGUMENTS: dict[str, Any] = {"path": "a.py"}


async def decided(spec: ToolSpec, options: TurnOptions, *rules: Rule) -> str:
    async def none() -> list[Rule]:
        return []

    arguments = ARGUMENTS if spec.subjects else {}
    return (await Permissions(rules).decide(spec, arguments, arguments, options, none)).decision.action


@pytest.mark.parametrize(
    ("mode", "spec", "action"),
    [
        ("plan", READ, "allow"),
        ("plan", EDIT, "deny"),
        ("plan", SHELL, "deny"),
        ("plan", FREE, "deny"),
        ("plan", MCP, "deny"),
        ("plan", AGENT, "allow"),
        ("ask", EDIT, "ask"),
        ("ask", FREE, "allow"),
        ("auto_edit", EDIT, "allow"),
        ("auto_edit", ALWAYS, "ask"),
        ("auto_edit", SHELL, "ask"),
        ("auto_edit", MCP, "ask"),
        ("", EDIT, "ask"),
    ],
)
async def test_what_a_mode_makes_of_a_call(mode: PermissionMode, spec: ToolSpec, action: str) -> None:
    assert await decided(spec, TurnOptions(mode=mode)) == action


async def test_rules_hold_in_every_mode() -> None:
    auto, plan = TurnOptions(mode="auto_edit"), TurnOptions(mode="plan")
    assert await decided(EDIT, auto, Rule("edit_file", "deny", {"path": "a.*"})) == "deny"
    assert await decided(EDIT, auto, Rule("edit_file", "ask", {"path": "a.*"})) == "ask"
    assert await decided(EDIT, plan, Rule("edit_file", "allow")) == "deny"


async def test_a_sub_agent_cannot_do_more_than_its_parents() -> None:
    planned = Lineage("s", "t", ancestors=(TurnPermissions(mode="plan"),))
    assert await decided(EDIT, TurnOptions(lineage=planned, mode="auto_edit")) == "deny"
    lineage = Lineage("s", "t", ancestors=(TurnPermissions(mode="ask"),))
    assert await decided(EDIT, TurnOptions(lineage=lineage, mode="auto_edit")) == "ask"


def test_plan_does_not_offer_what_it_denies() -> None:
    class Held:
        def __init__(self, spec: ToolSpec) -> None:
            self.spec = spec

    tools: Any = {spec.name: Held(spec) for spec in (READ, EDIT, SHELL, AGENT)}
    offered = Permissions().offered_tools(tools, TurnOptions(mode="plan"))
    assert [spec.name for spec in offered] == ["read_file", "helper"]
