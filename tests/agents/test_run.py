"""Agents are run alone, in an app, with typed output, dependencies, approvals, sub-agents and handoffs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from everturn import (
    Agent,
    App,
    NoOutput,
    OutputRetry,
    RunContext,
    RunResult,
    StillWaiting,
    ToolContext,
    TurnError,
    TurnInfo,
    TurnOptions,
    handoff,
    tool,
)
from everturn.core.rules.policy import Rule
from everturn.errors import ConfigError, KeyConflict
from everturn.events import AgentSwitched, OutputRejected
from everturn.models.scripted import ScriptedModel, call, calls, say
from everturn.testing import FakeClock
from everturn.tools.groups import ToolGroup
from tests.helpers.waiting import wait_until


class Refund(BaseModel):
    order: int
    cents: int


GOOD = '{"order": 4512, "cents": 900}'


@dataclass
class Deps:
    customer: str
    is_open: bool = True


@tool(read_only=True)
async def look_up(ctx: ToolContext[Deps], order: int) -> str:
    """Find an order of this customer."""
    assert ctx.deps.is_open
    return f"{ctx.deps.customer} has order {order}"


@tool(approval="ask")
async def refund(order: int) -> str:
    """Pay the money back."""
    return f"refunded {order}"


async def test_one_question() -> None:
    model = ScriptedModel(say("Because of Rayleigh scattering."))
    result = await Agent(model, instructions="Answer in one sentence.").run("Why is the sky blue?")
    assert (result.status, result.output) == ("completed", "Because of Rayleigh scattering.")
    assert result.usage.output == 1
    assert model.requests[0].system == "Answer in one sentence."  # and no date, which nobody asked for


async def test_a_private_run_leaves_nothing_behind() -> None:
    agent = Agent(ScriptedModel(say("Hi.")))
    await agent.run("Hello")
    assert await agent._app().store.sessions() == []


async def test_the_same_key_is_the_same_run_in_every_process(tmp_path: Any) -> None:
    script = ScriptedModel(calls(call("refund", order=7)), say("Paid."))
    desk, other = (Agent(script, name=name, tools=[refund]) for name in ("desk", "other"))
    store = str(tmp_path / "talks.db")
    async with App(agents=[desk, other], store=store) as app:
        asks = await app.run(desk, "Pay back order 7", key="order 7")
        assert (await app.run(other, "Pay back order 7", key="order 7")).id != asks.id
        assert (await app.run(desk, "Pay back order 7", key="order 8")).id != asks.id
    async with App(agents=[desk, other], store=store) as app:
        again = await app.run("desk", "Pay back order 7", key="order 7")
        assert (again.id, again.status) == (asks.id, "waiting")
        await again.gates[0].approve()
        assert (await again.resume()).output == "Paid."
        async with app.stream(desk, "Pay back order 7", key="order 7") as run:
            assert (await run.result()).id == asks.id
        with pytest.raises(KeyConflict):
            await app.run(desk, "Pay back order 8", key="order 7")


def test_run_sync_runs_in_a_loop_of_its_own() -> None:
    agent = Agent(ScriptedModel(calls(call("refund", order=1)), say("Done.")), tools=[refund])
    result = agent.run_sync("Refund it.")
    assert result.status == "waiting"
    result.gates[0].approve_sync()
    assert result.resume_sync().output == "Done."


def test_an_error_in_run_sync_has_no_traceback_of_the_event_loop() -> None:
    with pytest.raises(ConfigError) as raised:
        Agent("nowhere:model").run_sync("Hello")
    assert raised.value.__context__ is None


async def test_run_sync_in_an_event_loop_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="await the method without _sync"):
        Agent(ScriptedModel(say("Hi."))).run_sync("Hello")


def test_one_agent_serves_several_event_loops() -> None:
    agent = Agent(ScriptedModel(say("Hi.")))
    assert [asyncio.run(agent.run("Hello")).output for _ in range(2)] == ["Hi.", "Hi."]


# Dependencies ------------------------------------------------------------------------------------------------------


async def test_dependencies_are_made_for_the_turn_and_closed_after_it() -> None:
    seen: list[Deps] = []

    async def deps(turn: TurnInfo) -> AsyncIterator[Deps]:
        seen.append(Deps(turn.metadata["customer"]))
        yield seen[-1]
        seen[-1].is_open = False

    model = ScriptedModel(calls(call("look_up", order=1)), say("Yes."))
    agent = Agent(model, name="support", tools=[look_up], deps=deps)
    async with App(agents=[agent]) as app:  # its end waits until every turn is let go
        result = await app.run(agent, "Is it there?", metadata={"customer": "ada"})
    assert result.output == "Yes."
    await wait_until(lambda: [(instance.customer, instance.is_open) for instance in seen] == [("ada", False)])
    assert result.state is not None
    assert [tool_call.output.text for tool_call in result.state.calls.values() if tool_call.output] == [
        "ada has order 1"
    ]


async def test_a_plain_object_serves_one_run_in_memory_and_no_durable_one(tmp_path: Any) -> None:
    agent = Agent(ScriptedModel(calls(call("look_up", order=1)), say("Yes.")), name="support", tools=[look_up])
    assert (await agent.run("Is it there?", deps=Deps("ada"))).output == "Yes."
    async with App(agents=[agent], store=str(tmp_path / "app.db")) as app:
        with pytest.raises(ConfigError, match="give the agent a factory"):
            await agent.run("Is it there?", app=app, deps=Deps("ada"))


async def test_a_factory_that_fails_fails_the_turn_with_its_cause() -> None:
    def deps(turn: TurnInfo) -> Deps:
        raise OSError("no database")

    with pytest.raises(TurnError, match="no database") as raised:
        await Agent(ScriptedModel(say("Hi.")), deps=deps).run("Hello")
    assert raised.value.kind == "dependencies"
    assert isinstance(raised.value.__cause__, OSError)
    assert isinstance(raised.value.result, RunResult)


async def test_an_override_is_in_force_until_its_block_ends() -> None:
    agent = Agent(ScriptedModel(say("real")), name="support", tools=[look_up])
    async with App(agents=[agent]) as app:
        with agent.override(model=ScriptedModel(calls(call("look_up", order=2)), say("fake")), deps=Deps("eve")):
            result = await app.run(agent, "Hello")
            assert (result.output, await agent.run("Hello")).__getitem__(0) == "fake"
        assert (await app.run(agent, "Hello")).output == "real"


async def test_an_overridden_agent_is_found_by_its_name_and_by_default() -> None:
    agent = Agent(ScriptedModel(say("real")), name="support")
    async with App(agents=[agent]) as app:
        with agent.override(model=ScriptedModel(say("fake"))):
            assert [(await app.chat(agent=selector).run("Hello")).output for selector in (None, "support", agent)] == [
                "fake"
            ] * 3


# Typed output ------------------------------------------------------------------------------------------------------


async def test_a_wrong_answer_is_sent_back_and_is_not_in_the_conversation() -> None:
    model = ScriptedModel(say('{"order": 4512}'), say(f"```json\n{GOOD}\n```"))
    async with App(agents=[Agent(model, name="support", output_type=Refund)]) as app:
        chat = app.chat()
        result = await chat.run("I want my money back.")
        assert result.output == Refund(order=4512, cents=900)
        assert model.requests[0].params["output_schema"]["required"] == ["order", "cents"]
        assert "cents: Field required" in model.requests[1].messages[-1].text
        assert [message.text for message in await chat.messages()] == ["I want my money back.", GOOD]
        log = [entry.event for entry in await app.store.events(chat.session)]
        assert [event.step for event in log if isinstance(event, OutputRejected)] == [1]
        await chat.run("And now?")
        sent = [message.text for message in model.requests[2].messages]
        assert sent == ["I want my money back.", GOOD, "And now?"]


async def test_when_no_attempt_is_left_the_turn_fails() -> None:
    model = ScriptedModel(say("no"), say("never"))
    with pytest.raises(TurnError, match="no valid output in 2 attempts") as raised:
        await Agent(model, output_type=Refund).run("Money!")
    assert raised.value.kind == "output"
    assert "Invalid JSON" in str(raised.value)
    assert "Answer again" not in str(raised.value)  # which is what the model reads


async def test_validators_may_change_an_output_or_send_it_back() -> None:
    agent = Agent(ScriptedModel(say('{"order": 1, "cents": -5}'), say('{"order": 1, "cents": 5}')), output_type=Refund)

    @agent.output_validator
    async def positive(ctx: RunContext, output: Refund) -> Refund:
        if output.cents < 0:
            raise OutputRetry("cents must be positive")
        return output.model_copy(update={"order": ctx.metadata["order"]})

    assert positive is not None
    assert (await agent.run("Money!", metadata={"order": 7})).output == Refund(order=7, cents=5)


async def test_unions_and_plain_types() -> None:
    class Refusal(BaseModel):
        why: str

    agent: Agent[Any] = Agent(ScriptedModel(say('{"why": "too late"}')), output_type=Refund | Refusal)
    assert (await agent.run("Money!")).output == Refusal(why="too late")
    assert (await Agent(ScriptedModel(say("[1, 2]")), output_type=list[int]).run("Numbers!")).output == [1, 2]


async def test_partial_objects_arrive_while_the_answer_streams() -> None:
    model = ScriptedModel(say('{"order": 4512, "cents": 900}', size=4))
    async with Agent(model, output_type=Refund).stream("Money!") as run:
        seen = [partial async for partial in run.stream_output()]
        result = await run.result()
    assert len(seen) > 2
    assert seen[-1] == result.output == Refund(order=4512, cents=900)
    assert any(not hasattr(partial, "cents") for partial in seen)


async def test_the_text_alone() -> None:
    async with Agent(ScriptedModel(say("one two three"))).stream("Count.") as run:
        assert "".join([piece async for piece in run.text_stream()]) == "one two three"


# Approvals ---------------------------------------------------------------------------------------------------------


async def test_a_run_returns_when_it_waits_for_somebody() -> None:
    agent = Agent(ScriptedModel(calls(call("refund", order=1), call("refund", order=2)), say("Done.")), tools=[refund])
    result = await agent.run("Refund both.")
    assert (result.status, [gate.arguments for gate in result.gates]) == ("waiting", ['{"order":1}', '{"order":2}'])
    with pytest.raises(NoOutput, match=r"result\.gates"):
        _ = result.output
    with pytest.raises(StillWaiting):
        await result.resume()
    await result.gates[0].approve(arguments={"order": 3})
    again = await result.resume()
    assert [gate.arguments for gate in again.gates] == ['{"order":2}']
    await again.gates[0].deny("not that one")
    last = await again.resume()
    assert last.output == "Done."
    assert last.state is not None
    outputs = [tool_call.output.text for tool_call in last.state.calls.values() if tool_call.output is not None]
    assert outputs[0] == "refunded 3"
    assert "not that one" in outputs[1]


async def test_another_process_resolves_what_a_run_waits_for(tmp_path: Any) -> None:
    store = str(tmp_path / "app.db")

    def make() -> App:
        model = ScriptedModel(calls(call("refund", order=1)), say("Done."))
        return App(agents=[Agent(model, name="support", tools=[refund])], store=store)

    async with make() as app:
        waiting = await app.run("support", "Refund it.")
        assert waiting.status == "waiting"
    async with make() as app:
        turn = app.turn(waiting.id)
        found = await turn.result()
        await found.gates[0].approve()
        assert (await turn.result()).output in ("Done.",)


async def test_timers_and_external_results_are_what_a_run_waits_for() -> None:
    tokens: list[str] = []

    @tool(resumable=True)
    async def deliver(ctx: ToolContext) -> str:
        """Wait a day, and then for the parcel."""
        await ctx.sleep(days=1)
        return str(await ctx.external(tokens.append))

    clock = FakeClock()
    agent = Agent(ScriptedModel(calls(call("deliver")), say("It came.")), name="post", tools=[deliver])
    async with App(agents=[agent], clock=clock) as app:
        result = await app.run(agent, "Deliver it.", wait=0.01)
        assert [(wait.kind, wait.until - clock.now()) for wait in result.waits] == [("timer", 86_400.0)]
        assert result.waiting_for == result.waits
        clock.advance(86_400)
        result = await result.resume()
        assert [wait.kind for wait in result.waits] == ["external"]
        with pytest.raises(StillWaiting, match=r"app\.complete"):
            await result.resume()
        with pytest.raises(NoOutput, match="waits"):
            _ = result.output
        await app.complete(tokens[0], "a parcel")
        assert (await result.resume()).output == "It came."


async def test_a_turn_that_is_used_like_a_result_says_so() -> None:
    turn: Any = await Agent(ScriptedModel(say("Hi."))).chat().send("Hello")
    with pytest.raises(AttributeError, match=r"await turn\.result\(\)"):
        _ = turn.output


# More than one agent -----------------------------------------------------------------------------------------------


async def test_a_sub_agent_has_tools_that_its_caller_has_not() -> None:
    model = ScriptedModel(calls(call("look_up", order=5)), say(GOOD))
    researcher = Agent(model, name="researcher", tools=[look_up], deps=lambda turn: Deps(turn.metadata["customer"]))
    writer = Agent(ScriptedModel(calls(call("researcher", task="find 5")), say("Found.")), name="writer")
    writer = Agent(writer.model, name="writer", tools=[researcher.as_tool(metadata={"customer": "bob"})])
    result = await writer.run("Go.", metadata={"customer": "ada"})
    assert result.output == "Found."
    assert [spec.name for spec in model.requests[0].tools] == ["look_up"]
    assert result.state is not None
    assert [tool_call.output.text for tool_call in result.state.calls.values() if tool_call.output is not None] == [
        GOOD
    ]


async def test_no_sub_agent_reaches_what_a_rule_above_denies() -> None:
    model = ScriptedModel(calls(call("refund", order=5)), say("sub"))
    helper = Agent(model, name="helper", tools=[refund, look_up], deps=lambda turn: Deps("ada"))
    boss = Agent(
        ScriptedModel(calls(call("helper", task="refund")), say("Tried.")),
        name="boss",
        tools=[helper.as_tool()],
        rules=[Rule("refund", "deny")],
    )
    result = await boss.run("Go.")
    assert [spec.name for spec in model.requests[0].tools] == ["look_up"]
    assert result.output == "Tried."


async def test_a_sub_agent_without_any_allowed_tool_fails_its_call_with_the_reason() -> None:
    model = ScriptedModel(say("sub"))
    helper = Agent(model, name="helper", tools=[refund])
    script = ScriptedModel(calls(call("helper", task="refund")), say("Tried."))
    boss = Agent(script, name="boss", tools=[helper.as_tool()])
    async with App(agents=[boss]) as app:
        result = await app.chat(agent=boss, options=TurnOptions(rules=(Rule("refund", "deny"),))).run("Go.")
    assert model.requests == []
    assert len(result.warnings) == 1
    assert "agent 'helper' cannot use any of its tools here: rules deny refund" in result.warnings[0]
    assert result.state is not None
    (tool_call,) = result.state.calls.values()
    assert tool_call.state == "failed"
    assert tool_call.output is not None
    assert "refund" in tool_call.output.text


async def test_a_handoff_gives_the_conversation_to_another_agent() -> None:
    billing_model = ScriptedModel([], say(GOOD))
    billing = Agent(billing_model, name="billing", instructions=lambda: "You bill.", output_type=Refund)
    front_model = ScriptedModel(calls(call("look_up", order=1), call("transfer_to_billing")))
    front = Agent(
        front_model,
        name="front",
        instructions="You greet.",
        tools=[look_up, handoff(billing)],
        deps=lambda turn: Deps("ada"),
    )
    async with App(agents=[front]) as app:
        result = await app.run(front, "Bill me.")
        assert result.output == Refund(order=4512, cents=900)
        assert billing_model.requests[0].system == "You bill."
        assert [message.role for message in billing_model.requests[0].messages] == ["user", "assistant", "tool"]
        log = [entry.event for entry in await app.store.events(result.session)]
        switched = [event for event in log if isinstance(event, AgentSwitched)]
        assert [(event.agent, bool(event.call)) for event in switched] == [("billing", True), ("billing", False)]


async def test_agents_that_hand_over_to_each_other_are_stopped() -> None:
    script = [calls(call("transfer_to_b")), calls(call("transfer_to_a"))] * 6
    a = Agent(ScriptedModel(*script), name="a", tools=[handoff("b")], max_steps=20)
    b = Agent(ScriptedModel(*script), name="b", tools=[handoff("a")], max_steps=20)
    async with App(agents=[a, b]) as app:
        turn = await app.chat(agent=a).send("Go.")
        with pytest.raises(TurnError):
            await turn.result()
        assert (await turn.state()).handoffs == 8


def test_a_handoff_to_an_agent_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="'front' hands over to 'billing'"):
        App(agents=[Agent(ScriptedModel(), name="front", tools=[handoff("billing")])])


def test_what_is_wrong_with_an_agent_is_said_when_it_is_made(tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match="tools must be a list"):
        Agent(ScriptedModel(), tools=look_up)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="a factory"):
        Agent(ScriptedModel(), deps=Deps("ada"))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="needs a name"):
        App(agents=[Agent(ScriptedModel())], store=str(tmp_path / "app.db"))
    with pytest.raises(ConfigError, match="two agents have the name 'x'"):
        App(agents=[Agent(ScriptedModel(), name="x"), Agent(ScriptedModel(), name="x")])


async def test_a_group_that_an_agent_is_given_is_on_unless_it_is_on_demand() -> None:
    model = ScriptedModel(say("Hi."))
    await Agent(model, tools=[ToolGroup("orders", [refund])]).run("Hello")
    await Agent(model, tools=[ToolGroup("orders", [refund]).on_demand(), look_up], deps=lambda turn: Deps("")).run(
        "Hello"
    )
    assert [[spec.name for spec in request.tools] for request in model.requests] == [["refund"], ["look_up"]]


async def test_tools_of_the_app_are_for_agents_that_name_them() -> None:
    models = {name: ScriptedModel(say("Hi.")) for name in ("none", "named", "both")}
    agents = [
        Agent(models["none"], name="none"),
        Agent(models["named"], name="named", tools=["refund"]),
        Agent(models["both"], name="both", tools=["refund", look_up], deps=lambda turn: Deps("ada")),
    ]
    async with App(agents=agents, tools=[refund]) as app:
        for agent in agents:
            await app.run(agent, "Hello")
    offered = {name: [spec.name for spec in model.requests[0].tools] for name, model in models.items()}
    assert offered == {"none": [], "named": ["refund"], "both": ["look_up", "refund"]}


async def test_instructions_for_each_step_are_written_with_the_step() -> None:
    model = ScriptedModel(calls(call("look_up", order=1)), say("Yes."))
    agent = Agent(model, instructions="Be brief.", tools=[look_up], deps=lambda turn: Deps("ada"))
    count = iter(range(10))

    @agent.instructions(each_step=True)
    def numbered() -> str:
        return f"Request {next(count)}."

    assert numbered is not None
    await agent.run("Hello")
    assert [request.system for request in model.requests] == ["Be brief.\n\nRequest 0.", "Be brief.\n\nRequest 1."]


async def test_a_process_that_does_not_know_an_agent_leaves_its_turn_to_one_that_does(tmp_path: Any) -> None:
    store = str(tmp_path / "app.db")
    support = Agent(ScriptedModel(calls(call("refund", order=1)), say("Done.")), name="support", tools=[refund])
    async with App(agents=[support], store=store) as app:
        waiting = await app.run(support, "Refund it.")
    async with App(agents=[Agent(ScriptedModel(say("?")), name="other")], store=store) as app:
        chat = app.chat(waiting.session, agent="other")
        await chat.answer((await chat.gates())[0], allow="once")
        await asyncio.sleep(0.1)
        assert not (await chat.turn(waiting.turn).state()).phase.is_terminal
    async with App(agents=[support], store=store) as app:
        assert (await app.turn(waiting.id).result()).output == "Done."
