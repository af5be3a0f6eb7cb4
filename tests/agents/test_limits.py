"""What a caller, an agent and the agents after it allow: the stricter holds, and each agent's own tools are the ones meant."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from everturn import (
    Agent,
    App,
    Budget,
    TurnError,
    TurnInfo,
    TurnOptions,
    handoff,
    tool,
)
from everturn.agents.definition import AgentDefinition, AgentOptions
from everturn.errors import BadArguments, ConfigError
from everturn.events import AgentSwitched
from everturn.models.scripted import ScriptedModel, call, calls, say
from everturn.tools.groups import ToolGroup
from tests.helpers.waiting import wait_until


@tool(read_only=True)
async def search(query: str) -> str:
    """Search."""
    return query


@tool(approval="ask", subjects={"command": "command"})
async def run_command(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


@tool(approval="ask")
async def pay(cents: int) -> str:
    """Pay."""
    return f"paid {cents}"


# Limits ------------------------------------------------------------------------------------------------------------


def test_of_two_budgets_the_smaller_limits_hold() -> None:
    first, other = Budget(steps=3, tokens=500, seconds=9.0), Budget(steps=5, calls=2, seconds=4.0)
    assert first.narrowed(other) == other.narrowed(first) == Budget(steps=3, calls=2, tokens=500, seconds=4.0)


def test_the_stricter_of_caller_and_agent_holds() -> None:
    agent = Agent(ScriptedModel(), name="a", budget=Budget(cost=1.0), timeout=60.0, gate_timeout=5.0, review="on_error")
    base = TurnOptions(budget=Budget(cost=0.5, steps=2), timeout=30.0, review="always")
    options = agent.options("m", base)
    assert options.budget == Budget(cost=0.5, steps=2)
    assert (options.timeout, options.gate_timeout, options.review) == (30.0, 5.0, "always")
    assert agent.options("m", TurnOptions()).review == "on_error"


async def test_a_handoff_widens_no_limit_and_keeps_no_selection_of_tools() -> None:
    billing = Agent(
        ScriptedModel([], calls(call("pay", cents=3)), say("Paid.")),
        name="billing",
        tools=[pay],
        budget=Budget(calls=50, steps=40),
        max_steps=40,
    )
    front = Agent(
        ScriptedModel(calls(call("transfer_to_billing"))),
        name="front",
        tools=[search, handoff(billing)],
        budget=Budget(calls=2),
        review="on_error",
    )
    async with App(agents=[front]) as app:
        result = await app.run(front, "Pay.", tools=["transfer_*"])
        assert [gate.tool for gate in result.gates] == ["pay"]
        log = [entry.event for entry in await app.store.events(result.session)]
        (switched,) = (event for event in log if isinstance(event, AgentSwitched) and event.call)
        assert switched.options.budget == Budget(calls=2, steps=40)
        assert (switched.options.review, switched.options.tools) == ("on_error", None)


# Which agent ---------------------------------------------------------------------------------------------------------


async def test_an_agent_without_a_name_is_the_default_of_its_app() -> None:
    async with App(agents=[Agent(ScriptedModel(say("Hi.")))]) as app:
        assert (await app.chat().run("Hello")).output == "Hi."


def test_two_agents_without_a_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="give each a name"):
        App(agents=[Agent(ScriptedModel()), Agent(ScriptedModel())])


def test_an_unknown_agent_is_named_with_those_there_are() -> None:
    app = App(agents=[Agent(ScriptedModel(), name="front")])
    with pytest.raises(ConfigError, match="unknown agent 'back'; the agents of this app: front"):
        app.chat(agent="back")


def test_every_keyword_of_an_agent_is_typed() -> None:
    keywords = set(inspect.signature(AgentDefinition.__init__).parameters) - {"self", "model", "output_type"}
    assert set(AgentOptions.__annotations__) == keywords


# Its own tools ---------------------------------------------------------------------------------------------------------


async def test_a_group_on_demand_is_chosen_for_one_turn() -> None:
    model = ScriptedModel(say("Hi."))
    agent = Agent(model, name="a", tools=[search, ToolGroup("money", [pay]).on_demand()])
    async with App(agents=[agent]) as app:
        await app.run(agent, "Hello", tools=["search", "@money"])
        assert [spec.name for spec in model.requests[0].tools] == ["search", "pay"]
        with pytest.raises(ConfigError, match="mony"):
            await app.run(agent, "Hello", tools=["@mony"])


async def test_a_command_that_is_always_allowed_is_allowed_to_its_user_alone() -> None:
    script = (calls(call("run_command", command="make test")), say("Done."))
    agent = Agent(ScriptedModel(*script * 3), name="a", tools=[run_command])
    async with App(agents=[agent]) as app:
        chat = app.chat("s", agent=agent)
        result = await chat.run("Test it.", by="ada")
        await result.gates[0].approve(always=True)
        assert (await result.resume()).status == "completed"
        assert [grant.asker for grant in await app.store.grants("s", app.clock.now())] == ["ada"]
        assert (await chat.run("Again.", by="ada")).status == "completed"
        assert (await chat.run("I, too.", by="bob")).status == "waiting"


async def test_an_answer_for_always_resolves_the_other_gates_of_the_same_tool() -> None:
    agent = Agent(ScriptedModel(calls(call("pay", cents=1), call("pay", cents=1)), say("Done.")), name="a", tools=[pay])
    async with App(agents=[agent]) as app:
        result = await app.run(agent, "Pay twice.")
        assert len(result.gates) == 2
        await result.gates[0].approve(always=True)
        assert (await result.resume()).output == "Done."


async def test_edited_arguments_are_checked_by_the_tool_of_the_agent_that_asks() -> None:
    @tool(name="pay", approval="ask")
    async def pay_in_words(cents: str) -> str:
        """Pay."""
        return cents

    script = (calls(call("pay", cents=1)), say("Done."))
    agents = [
        Agent(ScriptedModel(calls(call("pay", cents="one")), say("Done.")), name="words", tools=[pay_in_words]),
        Agent(ScriptedModel(*script), name="numbers", tools=[pay]),
    ]
    async with App(agents=agents) as app:
        result = await app.run("numbers", "Pay.")
        with pytest.raises(BadArguments):
            await result.gates[0].approve(arguments={"cents": "two"})
        await result.gates[0].approve(arguments={"cents": 2})
        assert (await result.resume()).output == "Done."


# Dependencies and runs in memory -------------------------------------------------------------------------------------


async def test_dependencies_with_a_cancel_scope_are_closed_where_they_were_opened() -> None:
    seen: list[str] = []

    async def deps(turn: TurnInfo) -> AsyncIterator[str]:
        async with anyio.create_task_group():
            seen.append("opened")
            yield turn.session
        seen.append("closed")

    agent = Agent(ScriptedModel(calls(call("search", query="x")), say("Hi.")), tools=[search], deps=deps)
    assert (await agent.run("Hello")).output == "Hi."
    await wait_until(lambda: seen == ["opened", "closed"])


async def test_a_private_run_that_fails_leaves_nothing_behind() -> None:
    agent = Agent(ScriptedModel(say("not a number")), output_type=int, output_retries=0)
    with pytest.raises(TurnError):
        await agent.run("How many?")
    assert await agent._app().store.sessions() == []


async def test_a_private_conversation_that_was_named_stays() -> None:
    agent = Agent(ScriptedModel(say("Hi."), say("Hi again.")))
    await agent.run("Hello", session="mine")
    assert (await agent.run("Hello", session="mine")).output == "Hi again."


async def test_a_model_that_is_not_for_chat_is_not_held_to_the_output_type() -> None:
    class Painter(ScriptedModel):
        modality = "image-gen"

    agent = Agent(ScriptedModel(), name="a", output_type=int)
    async with App(agents=[agent]) as app:
        turn = await app.chat(agent=agent).send("A cat.", model=Painter(say("painted"), name="painter"))
        assert (await turn.state()).id == turn.id
        await turn
        assert (await turn.state()).phase.value == "completed"


async def test_plugins_of_telemetry_come_after_those_of_an_agent() -> None:
    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        async def on_turn_start(self, ctx: Any) -> None: ...

    class Observer:
        plugins = (Named("telemetry"),)
        enter_call = None

        def observe(self, store: Any) -> Any:
            return store

    agent = Agent(ScriptedModel(), name="a", plugins=[Named("own")])
    app = App(agents=[agent], plugins=[Named("shared")], telemetry=Observer())  # pyright: ignore[reportArgumentType]
    assert [name for name, _ in app.binding("a").setup.hooks["on_turn_start"]] == ["shared", "own", "telemetry"]
