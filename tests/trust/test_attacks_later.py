"""Holes that were found in the mending of others."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import SecretStr

from everturn import Chat, Rule, ToolContext, tool
from everturn.app import App
from everturn.core.events import CallStarted
from everturn.core.parts import ToolPart
from everturn.errors import ToolError
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from everturn.tools import SubagentRequest


async def test_a_tool_that_outlives_its_turn_begins_no_sub_turn() -> None:
    may_go_on, refused, store = asyncio.Event(), list[str](), MemoryStore()

    @tool(idempotent=True)
    async def hand_on(ctx: ToolContext) -> str:
        await may_go_on.wait()
        try:
            await ctx.run_subagent(SubagentRequest(prompt="below"))
        except ToolError as error:
            refused.append(str(error))
        return "done"

    model = ScriptedModel(calls(call("hand_on")), say("Done."))
    async with Chat(model, app=App(model, tools=[hand_on], store=store), session="s") as chat:
        turn = await chat.send("please")
        async for shown in turn:
            if isinstance(shown, CallStarted):
                await turn.cancel()
        may_go_on.set()
        await chat.app.tool_tasks.wait_idle()
    assert [info.id for info in await store.sessions()] == ["s"]
    assert len(refused) == 1
    assert "is over" in refused[0]


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"key": "root0"}, Rule("enter", "deny", {"key": "root*"})),  # though it is shown as stars
        ({"key": "a", "force": "yes"}, Rule("enter", "deny", {"force": "true"})),
        ({"key": "a"}, Rule("enter", "deny", {"force": "false"})),  # which it is when nobody says so
    ],
)
async def test_a_rule_is_held_against_what_is_written_and_what_is_meant(arguments: dict[str, str], rule: Rule) -> None:
    ran: list[str] = []

    def enter(key: SecretStr, force: bool = False) -> str:
        ran.append(key.get_secret_value())
        return "in"

    model = ScriptedModel(calls(call("enter", **arguments)), say("Done."))
    async with Chat(model, tools=[tool(enter)], rules=[rule]) as chat:
        result = await (await chat.send("please"))
    assert result.message is not None
    [part] = [part for part in result.message.parts if isinstance(part, ToolPart)]
    assert (ran, part.state) == ([], "denied")
