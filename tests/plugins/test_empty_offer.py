"""A turn that was to have tools and has none: that is said, and never merely an empty list."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from everturn import Chat, ToolGroup, TurnOptions, tool
from everturn.core.parts import ToolPart
from everturn.core.rules.policy import Rule
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools.subagent import SubagentTool


@tool(read_only=True)
async def invoices(customer: str) -> str:
    """Find invoices."""
    return "2 invoices"


@tool(read_only=True)
async def parcels(customer: str) -> str:
    """Find parcels."""
    return "1 parcel"


GIVEN: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "the router has the agents only": (
        [SubagentTool("billing", "Bills.", tools=["invoices"]), invoices],
        {"tools": ["billing"]},
    ),
    "a group that is off": ([SubagentTool("billing", "Bills.", tools=["@bills"]), ToolGroup("bills", [invoices])], {}),
    "a pattern": ([SubagentTool("billing", "Bills.", tools=["inv*"]), ToolGroup("bills", [invoices])], {}),
}


def asked_for(*more: Any) -> ScriptedModel:
    return ScriptedModel([calls(call("billing", task="Look."))], *(more or [[say("Done.")]] * 3))


async def result_of(chat: Chat, **options: Any) -> ToolPart:
    async with chat:
        message = (await (await chat.send("Look", **options))).message
    assert message is not None
    return next(part for part in message.parts if isinstance(part, ToolPart))


@pytest.mark.parametrize("case", GIVEN)
async def test_a_sub_agent_that_is_left_with_none_of_its_tools_fails_and_says_what_to_do(case: str) -> None:
    tools, options = GIVEN[case]
    part = await result_of(Chat(asked_for(), tools=tools), **options)
    assert part.state == "failed"
    assert part.output is not None
    assert "none of them is available: a sub-agent has at most the tools of the turn that calls it" in part.output.text


async def test_a_sub_agent_whose_tools_are_all_denied_fails_and_names_them() -> None:
    agent = SubagentTool("billing", "Bills.", tools=["invoices"], rules=[Rule("invoices", "deny")])
    part = await result_of(Chat(asked_for(), tools=[agent, invoices]))
    assert part.state == "failed"
    assert part.output is not None
    assert "rules deny invoices" in part.output.text


async def test_a_sub_agent_that_is_left_with_some_of_its_tools_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    agent = SubagentTool("billing", "Bills.", tools=["invoices", "parcels"])
    chat = Chat(asked_for(), tools=[agent, invoices, parcels])
    part = await result_of(chat, tools=["billing", "invoices"])
    assert part.state == "completed"
    assert "a sub-agent was to have parcels and has not" in caplog.text


async def test_a_sub_agent_that_was_to_have_no_tools_has_none(caplog: pytest.LogCaptureFixture) -> None:
    part = await result_of(Chat(asked_for(), tools=[SubagentTool("billing", "Bills.", tools=[]), invoices]))
    assert (part.state, caplog.text) == ("completed", "")


async def test_a_turn_whose_groups_are_all_off_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel(*[[say("Hi.")]] * 3)
    rules = (Rule("x", "deny", layer="session"),)  # it is looked at anew for each turn
    async with Chat(model, tools=[ToolGroup("bills", [invoices])], options=TurnOptions(rules=rules)) as chat:
        await (await chat.send("one"))
        await (await chat.send("two"))
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert "Group(…).enabled()" in caplog.text
        await (await chat.send("three", tools=["@bills"]))
    assert [len(request.tools) for request in model.requests] == [0, 0, 1]


@pytest.mark.parametrize("tools", [[ToolGroup("bills", [invoices]).enabled()], [invoices], []])
async def test_a_turn_that_has_tools_or_was_given_none_is_not_told_of(
    tools: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with Chat(ScriptedModel([say("Hi.")]), tools=tools) as chat:
        await (await chat.send("one"))
    assert caplog.text == ""
