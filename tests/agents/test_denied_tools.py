"""An agent that can use none of its tools is refused when it is made, or a warning says so; it is never silent."""

from __future__ import annotations

import pytest

from everturn import Agent, App, Rule, TurnOptions, handoff, tool
from everturn.core.events import StepFinished
from everturn.errors import ConfigError
from everturn.models.scripted import ScriptedModel, call, calls, say
from everturn.testing import MemoryStore
from everturn.tools.groups import ToolGroup


@tool
async def refund() -> str:
    """Give money back."""
    return "refunded"


@tool
async def look_up() -> str:
    """Look an order up."""
    return "order 1"


DENY = Rule("refund", "deny")


def test_an_agent_whose_rules_deny_all_its_tools_is_refused_when_it_is_made() -> None:
    with pytest.raises(
        ConfigError, match="agent 'desk' cannot use any of its tools: rules deny refund; change the rules"
    ):
        Agent(name="desk", tools=[refund], rules=[DENY])
    with pytest.raises(ConfigError, match="rules deny look_up, refund"):
        Agent(name="desk", tools=[ToolGroup("orders", [look_up]), refund], rules=[Rule("*", "deny")])
    Agent(name="desk", tools=[refund, look_up], rules=[DENY])
    Agent(name="desk", tools=[refund], rules=[Rule("refund", "deny", match={"order": "1"})])  # not whatever it is given
    Agent(name="desk", tools=[refund, handoff("billing")], rules=[DENY])
    Agent(name="desk", tools=[], rules=[DENY])
    Agent(name="desk", tools=[refund, "look_*"], rules=[DENY])  # others may be added later


def test_an_agent_whose_sub_agent_could_use_none_of_its_tools_is_refused_when_it_is_made() -> None:
    helper = Agent(name="helper", tools=[refund])
    middle = Agent(name="middle", tools=[helper.as_tool(), look_up])
    with pytest.raises(
        ConfigError, match="'boss': its sub-agent: agent 'middle': its sub-agent: agent 'helper' cannot use any"
    ):
        Agent(name="boss", tools=[middle.as_tool()], rules=[DENY])
    Agent(name="boss", tools=[middle.as_tool(), look_up], rules=[DENY, Rule("middle", "deny")])  # it is never called
    Agent(name="boss", tools=[handoff(helper), look_up], rules=[DENY])  # rules of an agent end with its handoff


def test_an_app_whose_rules_deny_all_tools_of_an_agent_is_refused_when_it_is_made() -> None:
    model = ScriptedModel(say("hello"))
    with pytest.raises(ConfigError, match="agent 'desk' cannot use any of its tools"):
        App(agents=[Agent(model, name="desk", tools=[refund])], rules=[DENY])
    with pytest.raises(ConfigError, match="agent 'desk' cannot use any of its tools"):
        App(agents=[Agent(model, name="desk", tools=["refund"])], tools=[refund, look_up], rules=[DENY])
    App(agents=[Agent(model, name="desk", tools=["refund", "look_up"])], tools=[refund, look_up], rules=[DENY])


async def test_a_run_that_was_offered_none_of_its_tools_has_a_warning() -> None:
    store = MemoryStore()
    desk = Agent(ScriptedModel(say("I cannot."), say("Now neither.")), name="desk", tools=[refund])
    async with App(agents=[desk], store=store) as app:
        chat = app.chat("s", agent=desk, options=TurnOptions(rules=(DENY,)))
        result = await chat.run("Refund me.")
        (warning,) = result.warnings
        assert warning.startswith("a turn is offered no tools, though there are some: rules deny refund")
        assert [
            event.warning for entry in await store.events("s") if isinstance(event := entry.event, StepFinished)
        ] == [warning]
        assert (await app.turn(result.id).result()).warnings == (warning,)  # it is in the log
        assert (await app.chat("other", agent=desk).run("Hello.")).warnings == ()


async def test_a_failed_sub_agent_run_is_a_warning_of_the_run_above_it() -> None:
    helper = Agent(ScriptedModel(), name="helper", tools=[refund])
    boss = Agent(
        ScriptedModel(calls(call("helper", task="refund")), say("Tried.")), name="boss", tools=[helper.as_tool()]
    )
    async with App(agents=[boss]) as app:
        result = await app.chat(agent=boss, options=TurnOptions(rules=(DENY,))).run("Go.")
        (warning,) = result.warnings
        assert "agent 'helper' cannot use any of its tools here: rules deny refund" in warning
