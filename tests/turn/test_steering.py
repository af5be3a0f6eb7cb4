"""A message that a person sends while a turn is under way joins it between two steps, once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everturn import Chat, RunResult, Turn
from everturn.core.commands import Send
from everturn.core.events import CommandDropped, MessageAdded, StepStarted
from everturn.core.requests import RequestResult
from everturn.core.store_ports import Store
from everturn.errors import KeyConflict
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from tests.helpers.tools import pay_with_approval
from tests.turn.steering import (
    SOON,
    Slow,
    events_in,
    store,
    summarize_messages,
    texts,
    turns_of,
    wait_for_gates,
    wait_until_processed,
)

__all__ = ["store"]


async def test_what_is_said_while_a_model_answers_is_answered_in_the_same_turn(store: Store) -> None:
    model = Slow(say("It is warm."), say("In Rome, too."))
    async with Chat(model, store=store) as chat:
        turn = await chat.send("How is the weather?")
        await model.asked.wait()
        steering = await chat.send("And in Rome?", steer=True, key="k")
        assert (steering.id, steering.is_new) == (turn.id, True)
        await wait_until_processed(chat)
        [waiting] = [command for command in await store.inbox(chat.session) if isinstance(command, Send)]
        assert (waiting.joins, waiting.message, waiting.key) == (turn.id, steering.message, "k")
        model.go_on.set()
        result = await steering
        assert (result.turn, result.text) == (turn.id, "In Rome, too.")
        assert [message.id for message in result.messages].count(steering.message) == 1
        assert await texts(chat) == ["How is the weather?", "It is warm.", "And in Rome?", "In Rome, too."]
        assert await turns_of(chat) == [turn.id]
        assert await store.inbox(chat.session) == []
        [added] = [event for event in await events_in(chat) if isinstance(event, MessageAdded)]
        assert (added.command, added.request, added.message.role) == ("k", True, "user")
    assert [summarize_messages(request) for request in model.requests] == [
        ["How is the weather?"],
        ["How is the weather?", "assistant", "And in Rome?"],
    ]


async def test_it_waits_until_every_call_has_its_result_and_the_gate_its_answer(store: Store) -> None:
    model = ScriptedModel(calls(call("pay", amount=1), call("pay", amount=2)), say("Paid."))
    async with Chat(model, tools=[pay_with_approval], store=store) as chat:
        turn = await chat.send("pay")
        await wait_for_gates(chat, 2)
        await chat.send("and say thanks", steer=turn)
        await wait_until_processed(chat)
        first, second = await chat.gates()
        await chat.answer(first, allow="once")
        await wait_until_processed(chat)
        assert not [event for event in await events_in(chat) if isinstance(event, MessageAdded)]
        await chat.answer(second, allow="once")
        assert (await turn).text == "Paid."
    last = model.requests[-1]
    assert summarize_messages(last) == ["pay", "assistant", "tool", "and say thanks"]
    assert [type(part) for part in last.messages[2].parts] == [RequestResult, RequestResult]


async def test_who_waits_for_the_turn_that_it_would_have_begun_is_shown_the_one_that_it_joined(store: Store) -> None:
    model = Slow(say("One."), say("Two."))
    async with Chat(model, store=store) as chat:
        turn = await chat.send("one")
        await model.asked.wait()
        await chat.send("two", steer=True, key="k")
        [own] = [command.turn for command in await store.inbox(chat.session) if isinstance(command, Send)]
        waits = asyncio.ensure_future(_collected(Turn(chat.app, chat.session, own, "k")))
        await wait_until_processed(chat)
        model.go_on.set()
        async with asyncio.timeout(SOON):
            result = await waits
        assert (result.turn, result.text) == (turn.id, "Two.")


async def _collected(turn: Turn) -> RunResult:
    return await turn


async def test_several_join_together_in_the_order_in_which_they_were_sent(store: Store) -> None:
    model = Slow(say("One."), say("All of it."))
    async with Chat(model, store=store) as chat:
        turn = await chat.send("one")
        await model.asked.wait()
        for word in ("two", "three", "four"):
            await chat.send(word, steer=True)
        await wait_until_processed(chat)
        model.go_on.set()
        assert (await turn).text == "All of it."
        assert await texts(chat) == ["one", "One.", "two", "three", "four", "All of it."]
    assert summarize_messages(model.requests[1]) == ["one", "assistant", "two", "three", "four"]


async def test_a_message_that_only_waits_is_overtaken_and_keeps_its_own_turn(store: Store) -> None:
    model = Slow(say("One."), say("Three."), say("Two."))
    async with Chat(model, store=store) as chat:
        turn = await chat.send("one")
        await model.asked.wait()
        queued = await chat.send("two")
        await chat.send("three", steer=True)
        await wait_until_processed(chat)
        model.go_on.set()
        await queued
        assert await texts(chat) == ["one", "One.", "three", "Three.", "two", "Two."]
        assert await turns_of(chat) == [turn.id, queued.id]


async def test_it_joins_a_turn_that_is_still_to_begin() -> None:
    model, hold = ScriptedModel(say("Both."), say("Both, again.")), asyncio.Event()

    class Late(MemoryStore):
        async def claim(self, session: str, now: float) -> Any:
            await hold.wait()
            return await super().claim(session, now)

    store: Store = Late()
    async with Chat(model, store=store) as chat:
        turn = await chat.send("one")
        steering = await chat.send("two", steer=True)
        assert steering.id == turn.id
        hold.set()
        assert (await turn).text == "Both."
        assert await texts(chat) == ["one", "two", "Both."]


async def test_where_two_branches_grow_it_joins_the_one_that_is_selected_or_named() -> None:
    model = Slow(*[lambda request: say(f"Yes, {summarize_messages(request)[-1]}.")] * 3)
    async with Chat(model) as chat:
        first = await chat.send("one")
        await model.asked.wait()
        second = await chat.send("other", beside=first)
        await wait_until_processed(chat)
        assert (await chat.send("more", steer=True)).id == second.id
        assert (await chat.send("most", steer=first.id)).id == first.id
        await wait_until_processed(chat)
        model.go_on.set()
        results = [await first, await second]
        assert [result.text for result in results] == ["Yes, most.", "Yes, more."]


async def test_no_step_is_begun_before_what_was_said_is_in_the_log(store: Store) -> None:
    """Every event has one place: the message, then its answer, then the step that reads it."""
    model = Slow(say("One."), say("Two."))
    async with Chat(model, store=store) as chat:
        turn = await chat.send("one")
        await model.asked.wait()
        await chat.send("two", steer=True)
        await wait_until_processed(chat)
        model.go_on.set()
        await turn
        kinds = [type(e).__name__ for e in await events_in(chat) if not isinstance(e, CommandDropped)]
        at = kinds.index("MessageAdded")
        assert kinds[at - 1 : at + 3] == ["StepFinished", "MessageAdded", "AnswerStarted", "StepStarted"]
        assert [e.step for e in await events_in(chat) if isinstance(e, StepStarted)] == [1, 2]


async def test_sent_again_with_its_key_it_is_the_same_message_whatever_runs_by_then(store: Store) -> None:
    model = Slow(say("One."), say("Two."), say("Three."))
    async with Chat(model, store=store) as chat:
        turn = await chat.send("one")
        await model.asked.wait()
        sent = [await chat.send("two", steer=True, key="k") for _ in range(3)]
        await wait_until_processed(chat)
        model.go_on.set()
        await turn
        sent.append(await chat.send("two", steer=True, key="k"))
        assert [steering.is_new for steering in sent] == [True, False, False, False]
        assert {(steering.id, steering.message) for steering in sent} == {(turn.id, sent[0].message)}
        assert (await sent[-1]).text == "Two."
        assert await texts(chat) == ["one", "One.", "two", "Two."]
        others: tuple[dict[str, Any], ...] = ({"message": "else", "steer": True}, {"message": "two"})
        for other in others:
            with pytest.raises(KeyConflict):
                await chat.send(**other, key="k")


async def test_sent_again_after_it_began_a_turn_of_its_own_it_is_that_turn(store: Store) -> None:
    model = Slow(say("One."), say("Two."))
    async with Chat(model, store=store) as chat:
        turn = await chat.send("one", max_steps=1)
        await model.asked.wait()
        steering = await chat.send("two", steer=True, key="k")
        model.go_on.set()
        result = await steering
        again = await chat.send("two", steer=True, key="k")
        assert (again.id, again.message, again.is_new) == (result.turn, steering.message, False)
        assert again.id != turn.id
