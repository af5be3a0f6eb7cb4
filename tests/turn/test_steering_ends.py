"""A message that cannot join the turn that it was to steer is the next turn's; what makes no sense is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from everturn import Chat, ModelError, TurnOptions
from everturn.core.commands import Send
from everturn.core.events import CommandDropped, MessageAdded, TurnStarted
from everturn.core.options import Budget
from everturn.core.requests import ModelRequest
from everturn.core.store_ports import Store
from everturn.errors import CommandRefused, ConfigError, UnknownTurn
from everturn.events import Phase
from everturn.running.drive_setup import TurnSettings
from everturn.testing import ScriptedFailure, ScriptedModel, call, calls, say
from everturn.tools.subagent import SubagentTool
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


async def test_where_nothing_is_under_way_it_begins_a_turn_like_any_other(store: Store) -> None:
    async with Chat(ScriptedModel(say("One."), say("Two.")), store=store) as chat:
        assert (await (await chat.send("one", steer=True))).text == "One."
        assert (await (await chat.send("two", steer=True))).text == "Two."
        assert len(await turns_of(chat)) == 2


async def fell_back(chat: Chat, steering: Any, first: str, answer: str = "Two.") -> None:
    """Its turn ended without it, and it began one of its own, once."""
    result = await steering
    assert (result.phase, result.text) == (Phase.COMPLETED, answer)
    assert await turns_of(chat) == [first, result.turn]
    assert result.messages[0].id == steering.message
    assert await chat.app.store.inbox(chat.session) == []


@pytest.mark.parametrize("limit", ["max_steps", "budget"])
async def test_a_turn_at_its_limit_takes_no_more_and_the_message_is_the_next_ones(limit: str, store: Store) -> None:
    model = Slow(say("One."), say("Two."))
    budget = Budget(steps=1) if limit == "budget" else Budget()
    options = TurnOptions(max_steps=1 if limit == "max_steps" else 9, budget=budget)
    async with Chat(model, store=store, options=options) as chat:
        turn = await chat.send("one")
        await model.asked.wait()
        steering = await chat.send("two", steer=True)
        await wait_until_processed(chat)
        model.go_on.set()
        await fell_back(chat, steering, turn.id)
    assert [summarize_messages(request)[-1] for request in model.requests] == ["one", "two"]


async def test_what_a_session_has_used_up_no_message_asks_a_model_with(store: Store) -> None:
    model = Slow(say("One."), say("Two."))
    async with Chat(model, store=store, settings=TurnSettings(session_budget=Budget(steps=1))) as chat:
        turn = await chat.send("one")
        await model.asked.wait()
        steering = await chat.send("two", steer=True)
        await wait_until_processed(chat)
        model.go_on.set()
        result = await steering
        assert result.turn != turn.id
        assert "limit" in result.text
        assert (await turn).text == "One."
    assert len(model.requests) == 1


@pytest.mark.parametrize("hard", [False, True])
async def test_a_cancel_ends_the_turn_and_not_what_was_to_join_it(hard: bool, store: Store) -> None:
    model = Slow(say("One."), say("Two."))
    async with Chat(model, store=store) as chat:
        turn = await chat.send("one")
        await model.asked.wait()
        steering = await chat.send("two", steer=True)
        await wait_until_processed(chat)
        await turn.cancel(hard=hard)
        assert (await turn).phase is Phase.CANCELLED
        model.go_on.set()
        await fell_back(chat, steering, turn.id, "One.")  # to the model it is the first


async def test_of_a_cancel_and_a_message_that_race_neither_is_lost() -> None:
    for pause in range(12):
        model = Slow(say("One."), *[say("More.")] * 3)
        async with Chat(model) as chat:
            turn = await chat.send("one")
            await model.asked.wait()
            steering = await chat.send("two", steer=True)
            model.go_on.set()
            for _ in range(pause * 2):
                await asyncio.sleep(0)
            await turn.cancel()
            async with asyncio.timeout(SOON):
                result = await steering
            log = await events_in(chat)
            taken = [e for e in log if isinstance(e, MessageAdded | TurnStarted) and e.command == steering._key]
            assert len(taken) == 1
            assert [message.id for message in result.messages].count(steering.message) == 1
            left = await chat.app.store.inbox(chat.session)
            assert not [command for command in left if isinstance(command, Send)]


async def test_it_can_be_taken_back_until_it_has_joined(store: Store) -> None:
    model = Slow(say("One."), say("Three."))
    async with Chat(model, store=store) as chat:
        turn = await chat.send("one")
        await model.asked.wait()
        for word in ("two", "three"):
            await chat.send(word, steer=True)
        await wait_until_processed(chat)
        own = [command.turn for command in await store.inbox(chat.session) if isinstance(command, Send)]
        await chat.turn(own[0]).cancel()
        await wait_until_processed(chat)
        model.go_on.set()
        assert (await turn).phase is Phase.COMPLETED
        assert await texts(chat) == ["one", "One.", "three", "Three."]
        await chat.turn(own[1]).cancel()  # too late, and nothing comes of it
        await wait_until_processed(chat)
        assert await texts(chat) == ["one", "One.", "three", "Three."]
        dropped = [event.reason for event in await events_in(chat) if isinstance(event, CommandDropped)]
        assert [why for why in dropped if why != "no call waits for it"] == [
            "cancelled before it began",
            *["the turn is not under way"] * 2,
        ]
        assert await turns_of(chat) == [turn.id]


async def test_a_turn_that_makes_a_picture_takes_nothing_more(store: Store) -> None:
    class Painter(Slow):
        modality = "image-gen"

    model = Painter(say("A picture."))
    async with Chat(model, store=store) as chat:
        turn = await chat.send("a cat")
        await model.asked.wait()
        steering = await chat.send("a dog", steer=True)
        await wait_until_processed(chat)
        model.go_on.set()
        await fell_back(chat, steering, turn.id, "A picture.")
    assert [summarize_messages(request) for request in model.requests] == [["a cat"], ["a dog"]]


async def test_a_stream_that_breaks_takes_nothing_with_it(store: Store) -> None:
    model = Slow([say("On"), ScriptedFailure(ModelError("gone", kind="broken"))], say("Two."))
    async with Chat(model, store=store) as chat:
        turn = await chat.send("one")
        await model.asked.wait()
        steering = await chat.send("two", steer=True)
        await wait_until_processed(chat)
        model.go_on.set()
        await fell_back(chat, steering, turn.id)


# At the door --------------------------------------------------------------------------------------------------------


async def test_a_sub_turn_is_not_steered_but_the_turn_above_it_is(store: Store) -> None:
    def answer(request: ModelRequest) -> Any:
        is_above, is_first = summarize_messages(request)[0] == "go", len(request.messages) == 1
        if not is_first:
            return say("Done, and thanks." if "thanks" in summarize_messages(request) else "Done.")
        return calls(call("helper", task="pay") if is_above else call("pay", amount=1))

    model = ScriptedModel(answer, answer)
    async with Chat(
        model, tools=[pay_with_approval, SubagentTool("helper", "Helps.", tools=["pay"])], store=store
    ) as chat:
        turn = await chat.send("go")
        await wait_for_gates(chat, 1)
        [gate] = await chat.gates()
        below = Chat(model, app=chat.app, session=gate.session)
        for steer in (True, gate.turn):
            with pytest.raises(CommandRefused, match="sub-agent run"):
                await below.send("thanks", steer=steer)
        assert (await chat.send("thanks", steer=True)).id == turn.id
        await chat.answer(gate, allow="once")
        assert (await turn).text == "Done, and thanks."
        assert await texts(below) == ["pay", "Done."]


async def test_what_makes_no_sense_is_refused_and_nothing_is_kept(store: Store) -> None:
    async with Chat(ScriptedModel(say("One.")), store=store) as chat:
        turn = await chat.send("one")
        result = await turn
        hows: Sequence[dict[str, Any]] = (
            {"after": result.messages[0].id},
            {"beside": turn},
            {"alone": True},
        )
        for how in hows:
            with pytest.raises(ConfigError, match="steers"):
                await chat.send("two", steer=True, **how)
        with pytest.raises(UnknownTurn):
            await chat.send("two", steer="never")
        assert await store.inbox(chat.session) == []
