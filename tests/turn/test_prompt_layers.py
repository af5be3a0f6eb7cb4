"""The layers of the system prompt: their order, and that the log has them, whichever process continues the turn."""

from __future__ import annotations

import pytest

from everturn import Agent, App, Prompt, TurnOptions, TurnSettings
from everturn.agents.handoff import handoff
from everturn.core.events import AgentSwitched, TurnStarted
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from everturn.tools.function import tool
from everturn.turn.request import instruction_layers, system_prompt

LAYERS = Prompt(
    header="header",
    model="model",
    agent="app",
    workspace="workspace",
    shared="shared",
    custom="custom",
    user="user",
    session="session",
    privacy="privacy",
    timezone="UTC",
)


def test_the_layers_are_sent_in_one_order_and_that_of_the_model_gives_way_to_instructions() -> None:
    options = TurnOptions(system="agent", prompt=LAYERS)
    sent = system_prompt(options, 0.0)
    assert [text for text in sent if text] == [
        *("header", "app", "workspace", "shared", "custom", "user", "agent", "session"),
        *("Today is 1970-01-01 (UTC).", "privacy"),
    ]
    assert dict(instruction_layers(TurnOptions(prompt=LAYERS)))["model"] == "model"
    assert system_prompt(TurnOptions(), 0.0) == ["", ""]


@tool(approval="ask")
def pay() -> str:
    """Pay."""
    return "paid"


async def test_a_process_with_another_configuration_continues_with_the_layers_of_the_log() -> None:
    store = MemoryStore()
    first = ScriptedModel(calls(call("pay")), name="m")
    async with App(first, tools=[pay], store=store, settings=TurnSettings(prompt=Prompt(header="old"))) as app:
        turn = await app.chat("s").send("pay")
        (gate,) = (await turn.result()).gates
    second = ScriptedModel([], say("Done."), say("Done."), name="m")
    async with App(second, tools=[pay], store=store, settings=TurnSettings(prompt=Prompt(header="new"))) as app:
        chat = app.chat("s")
        await chat.answer(gate.gate, allow="once")
        await chat.turn(turn.id)
        await (await chat.send("again"))
    assert [request.system.split("\n\n")[0] for request in (*first.requests, *second.requests)] == ["old", "old", "new"]
    events = [entry.event for entry in await store.events("s")]
    headers = [
        event.options.prompt.header for event in events if isinstance(event, TurnStarted) and event.options.prompt
    ]
    assert headers == ["old", "new"]


@pytest.mark.parametrize(("instructions", "sent"), [("", "Be precise."), ("Be kind.", "Be kind.")])
async def test_the_instructions_of_a_model_are_for_agents_that_have_none(instructions: str, sent: str) -> None:
    model = ScriptedModel(say("Done."), name="m")
    agent = Agent(model, name="helper", instructions=instructions)
    async with App(agents=[agent], settings=TurnSettings(model_instructions={"m": "Be precise."})) as app:
        await app.run("helper", "hello")
    assert model.requests[0].system == sent


async def test_instructions_that_a_function_writes_count_as_instructions() -> None:
    model = ScriptedModel(say("Done."), name="m")
    agent = Agent(model, name="helper", instructions=lambda: "Be swift.")
    async with App(agents=[agent], settings=TurnSettings(model_instructions={"m": "Be precise."})) as app:
        await app.run("helper", "hello")
    assert model.requests[0].system == "Be swift."


async def test_after_a_handoff_the_layer_of_the_model_is_that_of_the_new_agents_model() -> None:
    writer_model = ScriptedModel([], say("Done."), name="big")
    writer = Agent(writer_model, name="writer")
    desk = Agent(ScriptedModel(calls(call("transfer_to_writer")), name="small"), name="desk", tools=[handoff(writer)])
    settings = TurnSettings(prompt=Prompt(header="h"), model_instructions={"small": "Be quick.", "big": "Be thorough."})
    async with App(agents=[desk, writer], settings=settings) as app:
        result = await app.run("desk", "write", session="s")
        events = [entry.event for entry in await app.store.events("s")]
    assert result.status == "completed"
    started = next(event for event in events if isinstance(event, TurnStarted))
    switched = next(event for event in events if isinstance(event, AgentSwitched))
    assert started.options.prompt == Prompt(header="h", model="Be quick.")
    assert switched.options.prompt == Prompt(header="h", model="Be thorough.")
    assert writer_model.requests[0].system == "h\n\nBe thorough."


async def test_a_turn_without_layers_records_none() -> None:
    async with App(ScriptedModel(say("Done."))) as app:
        await (await app.chat("s").send("hello"))
        started = (await app.store.events("s"))[0].event
    assert isinstance(started, TurnStarted)
    assert started.options.prompt is None
