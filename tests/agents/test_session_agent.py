"""The agent that has a session is part of its log: handoffs last, and a person may hand the session over."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pydantic import BaseModel

from everturn import Agent, App, Rule, TurnOptions, handoff, tool
from everturn.cluster.ps import list_open_store
from everturn.core.events import AgentSelected, TurnStarted
from everturn.core.store_ports import Store
from everturn.errors import CommandRefused, ConfigError, KeyConflict, SessionBusy, UnknownSession
from everturn.models.scripted import ScriptedModel, call, calls, say
from everturn.stores.export import export_session, import_session
from everturn.testing import MemoryStore, MortalStore
from tests.helpers.stores import store as store
from tests.helpers.waiting import wait_until


class Bill(BaseModel):
    cents: int


@tool(approval="ask")
async def refund() -> str:
    """Give money back."""
    return "refunded"


@tool
async def look_up() -> str:
    """Look an order up."""
    return "order 1"


def team(**how: Any) -> tuple[Agent[Any], Agent[Any], ScriptedModel, ScriptedModel]:
    """A front desk that hands its first question over to billing, which then answers; and their models."""
    front_model = ScriptedModel(calls(call("transfer_to_billing")), *[say("front")] * 9)
    billing_model = ScriptedModel(*[say('{"cents": 900}')] * 9)
    billing = Agent(billing_model, name="billing", instructions="You bill.", output_type=Bill, tools=[refund, look_up])
    front = Agent(front_model, name="front", instructions="You greet.", tools=[handoff(billing), refund], **how)
    return front, billing, front_model, billing_model


def desk(name: str, *texts: str, **how: Any) -> Agent[Any]:
    return Agent(ScriptedModel(*[say(text) for text in texts]), name=name, instructions=f"You are {name}.", **how)


async def events_of(store: Store, session: str, kind: type[Any]) -> list[Any]:
    return [entry.event for entry in await store.events(session) if isinstance(entry.event, kind)]


# Handoffs ---------------------------------------------------------------------------------------------------------------


async def test_a_handoff_lasts_for_the_turns_after_it() -> None:
    front, _, front_model, billing_model = team()
    async with App(agents=[front]) as app:
        chat = app.chat("s", agent=front)
        assert await chat.agent() == "front"
        assert (await chat.run("What does it cost?")).output == Bill(cents=900)
        assert await chat.agent() == "billing"
        assert (await chat.run("And again?")).output == Bill(cents=900)
        assert (await app.chat("s", agent=front).run("And from another chat?")).output == Bill(cents=900)
        assert len(front_model.requests) == 1
        assert {request.system for request in billing_model.requests} == {"You bill."}
        assert (await app.store.info("s")).agent == "billing"
        options = [event.options for event in await events_of(app.store, "s", TurnStarted)]
        assert [started.agent for started in options] == ["front", "billing", "billing"]


async def test_a_message_that_waits_while_its_turn_is_handed_over_goes_to_the_new_agent() -> None:
    front, _, front_model, _ = team()
    async with App(agents=[front]) as app:
        chat = app.chat("s", agent=front)
        first = await chat.send("What does it cost?")
        second = await chat.send("And shipping?")  # admitted before the handoff
        assert (await first).output == Bill(cents=900)
        assert (await second).output == Bill(cents=900)
        assert len(front_model.requests) == 1


async def test_a_handoff_lasts_in_another_process(store: Store) -> None:
    for question in ("What does it cost?", "And again?"):
        front, _, front_model, _ = team()
        async with App(agents=[front], store=store) as app:
            assert (await app.chat("s").run(question)).output == Bill(cents=900)
            assert await app.chat("s").agent() == "billing"
    assert front_model.requests == []


async def test_a_repeat_of_a_message_is_the_same_turn_after_a_handoff() -> None:
    front, _, _, _ = team()
    async with App(agents=[front]) as app:
        first = await app.chat("s", agent=front).send("What does it cost?", key="k", metadata={"a": 1}, max_steps=5)
        await first
        again = await app.chat("s", agent=front).send("What does it cost?", key="k", metadata={"a": 1}, max_steps=5)
        assert (again.id, again.is_new) == (first.id, False)
        with pytest.raises(KeyConflict):
            await app.chat("s", agent=front).send("What does it cost?", key="k", metadata={"a": 2}, max_steps=5)
        with pytest.raises(KeyConflict):
            await app.chat("s", agent=front).send("What does it cost?", key="k", metadata={"a": 1}, max_steps=6)


async def test_a_run_of_an_agent_in_a_session_is_of_that_agent_and_takes_the_session_back() -> None:
    front, _, front_model, _ = team()
    async with App(agents=[front]) as app:
        await app.run(front, "What does it cost?", session="s")
        result = await app.run(front, "Who are you?", session="s")
        assert result.output == "front"
        assert await app.chat("s").agent() == "front"
        assert (await app.chat("s").run("Still you?")).output == "front"
        assert (await app.chat("s").run("To billing.", agent="billing")).output == Bill(cents=900)
        assert await app.chat("s").agent() == "billing"
        async with app.stream(front, "You again?", session="s") as run:
            assert "".join([text async for text in run.text_stream()]) == "front"
        assert front_model.requests[-1].system == "You greet."


async def test_what_was_chosen_for_a_message_and_for_the_session_holds_for_the_agent_that_takes_it() -> None:
    front, _, _, billing_model = team(max_steps=7, params={"seed": 1})
    other = ScriptedModel(*[say('{"cents": 1}')] * 3, name="other")
    options = TurnOptions(rules=(Rule("refund", "deny"),), params={"top_p": 0.5}, by="ada")
    async with App(agents=[front]) as app:
        chat = app.chat("s", agent=front, options=options)
        await chat.run("What does it cost?")
        await chat.run(
            "And again?", model=other, params={"temperature": 0}, max_steps=3, tools=["look_up"], metadata={"a": 1}
        )
        await chat.run("Plainly?")
        _, chosen, plain = [event.options for event in await events_of(app.store, "s", TurnStarted)]
    assert (chosen.model, chosen.max_steps, chosen.tools, chosen.metadata) == ("other", 3, ("look_up",), {"a": 1})
    assert {key: value for key, value in chosen.params.items() if key != "output_schema"} == {
        "temperature": 0,
        "top_p": 0.5,
    }
    assert (plain.model, plain.max_steps, plain.tools, plain.metadata) == (billing_model.name, 25, None, None)
    for started in (chosen, plain):
        assert (started.agent, started.by, started.system) == ("billing", "ada", "You bill.")
        assert [(rule.tool, rule.action, rule.layer) for rule in started.rules] == [("refund", "deny", "session")]
    assert [spec.name for spec in other.requests[0].tools] == ["look_up"]


async def test_the_agent_belongs_to_the_session_and_not_to_a_branch() -> None:
    front, _, _, _ = team()
    async with App(agents=[front]) as app:
        chat = app.chat("s", agent=front)
        await chat.run("What does it cost?")
        question = (await chat.messages())[0]
        await chat.fork(None)
        assert await chat.agent() == "billing"
        assert (await chat.run("On another branch?")).output == Bill(cents=900)
        assert (await (await chat.edit(question, "What did it cost?"))).output == Bill(cents=900)
        assert (await (await chat.rerun(question))).output == Bill(cents=900)


@pytest.mark.parametrize("is_durable", [False, True], ids=["memory", "sqlite"])
async def test_an_exported_session_is_imported_with_its_agent(tmp_path: Path, is_durable: bool) -> None:
    front, _, _, _ = team()
    async with App(agents=[front]) as app:
        await app.chat("s", agent=front).run("What does it cost?")
        await export_session(app.store, "s", tmp_path / "s.jsonl")
    front, _, _, _ = team()
    async with App(agents=[front], store=f"{tmp_path}/s.db" if is_durable else None) as app:
        await import_session(app.store, tmp_path / "s.jsonl", session="new")
        assert (await app.store.info("new")).agent == "billing"
        assert (await app.chat("new", agent=front).run("And again?")).output == Bill(cents=900)


# A person's own handoff -------------------------------------------------------------------------------------------------


async def test_a_person_hands_the_session_to_another_agent() -> None:
    front, billing = desk("front", "hello", "front again"), desk("billing", "", "9 euros", "10 euros")
    async with App(agents=[front, billing]) as app:
        chat = app.chat("s", agent=front)
        with pytest.raises(UnknownSession):
            await chat.switch(billing)
        await chat.run("Hi.")
        await chat.switch(billing, by="ada", key="k")
        assert await chat.agent() == "billing"
        assert (await chat.run("What does it cost?")).output == "9 euros"
        await chat.switch("front")
        await chat.switch(billing, by="ada", key="k")  # the same command: it was carried out before
        assert await chat.agent() == "front"
        with pytest.raises(KeyConflict):
            await chat.switch("front", by="ada", key="k")
        with pytest.raises(ConfigError, match="unknown agent 'nobody'; the agents of this app: front, billing"):
            await chat.switch("nobody")
        selected = await events_of(app.store, "s", AgentSelected)
        assert [(event.agent, event.by, event.command == "k") for event in selected] == [
            ("billing", "ada", True),
            ("front", "person", False),
        ]


async def test_a_session_is_not_handed_over_while_a_turn_waits() -> None:
    model = ScriptedModel(calls(call("refund")), say("done"), say("done"))
    front, billing = Agent(model, name="front", tools=[refund]), desk("billing", "", "", "9 euros")
    async with App(agents=[front, billing]) as app:
        chat = app.chat("s", agent=front)
        result = await chat.run("Refund me.")
        with pytest.raises(SessionBusy, match="cancel it, then select the agent"):
            await chat.switch(billing)
        await result.gates[0].approve()
        await result.resume()
        await chat.switch(billing)
        assert (await chat.run("What did it cost?")).output == "9 euros"


async def test_a_turn_that_begins_before_the_session_is_handed_over_refuses_it() -> None:
    front, billing = desk("front", "hello", "hello"), desk("billing", "", "", "9 euros")
    store = MemoryStore()
    async with App(agents=[front, billing], store=store) as app:
        chat = app.chat("s", agent=front)
        await chat.run("Hi.")
        # Both are admitted before the driver sees either: the message is first.
        sent, switched = await asyncio.gather(chat.send("Again?"), chat.switch(billing), return_exceptions=True)
        assert isinstance(switched, CommandRefused | SessionBusy)
        assert not isinstance(sent, BaseException)
        assert (await sent).output == "hello"
        assert await chat.agent() == "front"


async def test_a_scheduled_message_goes_to_the_agent_that_has_the_session_then() -> None:
    front, billing = desk("front", "hello"), desk("billing", "", "9 euros")
    async with App(agents=[front, billing]) as app:
        chat = app.chat("s", agent=front)
        await chat.run("Hi.")
        turn = await chat.send("What does it cost?", at=app.clock.now() + 0.2)
        await chat.switch(billing)
        assert (await turn).output == "9 euros"


# Processes that do not know the agent -----------------------------------------------------------------------------------


async def wait_for_agent(store: Store, session: str) -> str:
    async def awaited() -> str:
        return (await store.info(session)).awaited_agent

    return await wait_until(awaited)


async def test_a_message_for_an_agent_that_a_process_does_not_know_waits_for_one_that_does(store: Store) -> None:
    front, _, _, _ = team()
    async with App(agents=[front], store=store) as app:
        await app.chat("s", agent=front).run("What does it cost?")
    lone = desk("front", "", "front")
    async with App(agents=[lone], store=store) as app:
        turn = await app.chat("s", agent=lone).send("And again?", key="k")
        assert await wait_for_agent(app.store, "s") == "billing"
        lines, _ = await list_open_store(app.store)
        assert "waits for a process that knows agent 'billing'" in lines[0]
        assert await app.store.events("s", turn=turn.id) == []
    front, _, _, _ = team()
    async with App(agents=[front], store=store) as app:
        assert (await app.turn(f"s/{turn.id}").result()).status == "completed"
        assert (await app.store.info("s")).awaited_agent == ""


async def test_a_turn_of_an_agent_that_a_process_does_not_know_is_shown_by_ps(store: Store) -> None:
    billing = Agent(ScriptedModel(calls(call("refund")), say("done")), name="billing", tools=[refund])
    async with App(agents=[billing], store=store) as app:
        result = await app.chat("s").run("Refund me.")
        assert result.status == "waiting"
    front = desk("front")
    async with App(agents=[front], store=store) as app:
        (gate,) = await app.chat("s").gates()
        await app.chat("s").answer(gate, allow="once")
        assert await wait_for_agent(app.store, "s") == "billing"
        lines, _ = await list_open_store(app.store)
        assert "waits for a process that knows agent 'billing'" in lines[0]
    async with App(agents=[billing], store=store) as app:
        assert (await app.turn(result.id).result()).output == "done"
        assert (await app.store.info("s")).awaited_agent == ""


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_turn_continues_when_its_agent_is_added_to_the_process(store: Store, is_replaced: bool) -> None:
    billing = Agent(ScriptedModel(calls(call("refund")), say("done")), name="billing", tools=[refund])
    async with App(agents=[billing], store=store) as app:
        result = await app.chat("s").run("Refund me.")
    front = desk("front")
    async with App(agents=[front], store=store) as app:
        (gate,) = await app.chat("s").gates()
        await app.chat("s").answer(gate, allow="once")
        assert await wait_for_agent(app.store, "s") == "billing"
        if is_replaced:
            app.replace_agents([front, billing])
        else:
            await app.put_agent(billing)
        assert (await app.turn(result.id).result()).output == "done"


async def test_a_turn_continues_when_its_agent_is_added_while_the_session_is_being_left(store: Store) -> None:
    billing = Agent(ScriptedModel(calls(call("refund")), say("done")), name="billing", tools=[refund])
    async with App(agents=[billing], store=store) as app:
        result = await app.chat("s").run("Refund me.")
    async with App(agents=[desk("front")], store=store) as app:
        release = app.store.release

        async def release_late(*arguments: Any, **named: Any) -> None:
            await app.put_agent(billing)
            await release(*arguments, **named)

        with patch.object(app.store, "release", release_late):
            (gate,) = await app.chat("s").gates()
            await app.chat("s").answer(gate, allow="once")
            assert (await app.turn(result.id).result()).output == "done"


async def test_a_person_may_take_a_message_from_an_agent_that_nobody_knows(store: Store) -> None:
    front, _, _, _ = team()
    async with App(agents=[front], store=store) as app:
        await app.chat("s", agent=front).run("What does it cost?")
    lone = desk("front", "", "", "front")
    async with App(agents=[lone], store=store) as app:
        turn = await app.chat("s", agent=lone).send("And again?")
        assert await wait_for_agent(app.store, "s") == "billing"
        await app.chat("s").switch(lone)
        assert (await turn).output == "front"
        assert (await app.store.info("s")).awaited_agent == ""


# Crashes ----------------------------------------------------------------------------------------------------------------


async def play(lives: int | None, before_next: bool) -> tuple[list[str], str, int]:
    """A question that is handed over, a second one, a switch by a person and a third question; then the log."""
    store = MemoryStore()
    mortal = MortalStore(store, lives, before_next=before_next)

    async def ask_all(app: App) -> None:
        chat = app.chat("s", agent="front")
        await (await chat.send("What does it cost?", key="1"))
        await (await chat.send("And again?", key="2"))
        await chat.switch("front", key="3")
        await (await chat.send("Who are you?", key="4"))

    first = App(agents=[team()[0]], store=mortal)
    over = asyncio.ensure_future(ask_all(first))
    died = asyncio.ensure_future(mortal.died.wait())
    await asyncio.wait({over, died}, return_when="FIRST_COMPLETED")
    mortal.kill()
    for task in (over, died):
        task.cancel()
    await asyncio.gather(over, died, return_exceptions=True)
    await first.aclose()
    async with App(agents=[team()[0]], store=store) as second:
        await ask_all(second)
        texts = [message.text for message in await second.chat("s").messages()]
        begun = [event.options.agent for event in await events_of(store, "s", TurnStarted)]
        agent = await second.chat("s").agent()
    assert len(await events_of(store, "s", AgentSelected)) == 1
    return [*texts, *begun], agent, len(await store.events("s"))


@pytest.mark.parametrize("before_next", [False, True], ids=["after", "before the next"])
async def test_a_session_has_the_same_agent_wherever_its_process_was_stopped(before_next: bool) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    whole, agent, count = await play(None, before_next)
    assert agent == "front"
    assert whole[-3:] == ["front", "billing", "front"]
    for lives in range(1, count):
        texts, last, _ = await play(lives, before_next)
        assert (texts, last) == (whole, agent), f"stopped at {lives}"
