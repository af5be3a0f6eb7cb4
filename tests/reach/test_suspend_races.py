"""A tool that asks while it runs, where something else happens meanwhile."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from everturn import Chat, ToolContext, TurnOptions, tool
from everturn.app import App
from everturn.core.events import CallStarted, CallSuspended, GateOpened, GateResolved, LimitReached, TurnSuspended
from everturn.core.gates import GateResolution
from everturn.core.options import Budget
from everturn.core.ports import Question
from everturn.core.store_ports import Store
from everturn.errors import GateClosed
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from tests.helpers.conversations import Talk
from tests.helpers.waiting import wait_until
from tests.reach.test_suspend import COLOUR, Painter

RED = '{"colour": "red"}'
SCRIPT = [calls(call("paint")), say("Nice.")]


async def test_a_tool_that_swallows_its_end_is_suspended_all_the_same() -> None:
    begun: list[str] = []

    @tool(idempotent=True)
    async def stubborn(ctx: ToolContext) -> str:
        begun.append("once more")
        try:
            return (await ctx.ask(Question("Well?"))).result or ""
        except asyncio.CancelledError:
            raise ValueError("I was cancelled, and say something else") from None

    talk = Talk(stubborn)
    async with talk.process(calls(call("stubborn")), say("So.")) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        await chat.answer(gate, result="yes")
        await turn
    assert [event.output.text for event in await talk.settled()] == ["yes"]
    assert len(begun) == 2


async def test_a_tool_that_returns_instead_of_being_suspended_has_returned() -> None:
    @tool(idempotent=True)
    async def hasty(ctx: ToolContext) -> str:
        try:
            return (await ctx.ask(Question("Well?"))).result or ""
        except asyncio.CancelledError:
            return "I did not wait"

    talk = Talk(hasty)
    async with talk.process(calls(call("hasty")), say("So.")) as chat:
        assert (await (await chat.send("go"))).text == "So."
        assert await chat.gates() == []
    assert [(event.state, event.output.text) for event in await talk.settled()] == [("completed", "I did not wait")]


async def test_a_plain_function_that_asks_is_told_that_it_cannot() -> None:
    @tool(idempotent=True)
    def plain(ctx: ToolContext) -> str:
        asking: Any = ctx.ask(Question("Well?"))
        asking.close()  # it runs in a thread, where nothing can be awaited
        return "asked"

    talk = Talk(plain)
    await talk.tell(calls(call("plain")), say("So."))
    [came] = await talk.settled()
    assert came.state == "failed"
    assert "async def" in came.output.text
    assert await talk.events(GateOpened) == []


@pytest.mark.parametrize("is_killed", [False, True])
async def test_one_that_must_not_be_repeated_and_asked_when_its_process_ended_has_an_unknown_outcome(
    is_killed: bool, store: Store
) -> None:
    painter = Painter("at_most_once")
    talk = Talk(painter, store=store)
    async with talk.process(*SCRIPT) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
    async with talk.process(*SCRIPT) as chat:
        if is_killed:  # the answer is there before anybody looks
            with pytest.raises(GateClosed):
                await (await _settled(talk, chat)).answer(gate, result=RED)
        assert (await chat.turn(turn.id)).text == "Nice."
        assert await chat.gates() == []
        with pytest.raises(GateClosed):
            await chat.answer(gate, result=RED)
    [came] = await talk.settled()
    assert (came.state, painter.begun, painter.painted) == ("outcome_unknown", 1, 0)


async def _settled(talk: Talk, chat: Chat) -> Chat:
    for _ in range(1000):
        if await talk.settled():
            return chat
        await asyncio.sleep(0.005)
    raise AssertionError("it was not settled")


async def test_a_tool_that_asks_something_else_when_it_is_begun_again_is_stopped() -> None:
    begun: list[int] = []

    @tool(idempotent=True)
    async def fickle(ctx: ToolContext) -> str:
        begun.append(1)
        return (await ctx.ask(Question(f"Number {len(begun)}?"))).result or ""

    talk = Talk(fickle)
    async with talk.process(calls(call("fickle")), say("So.")) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        await chat.answer(gate, result="one")
        await turn
    [came] = await talk.settled()
    assert came.state == "failed"
    assert came.output.text.startswith("fickle was resumed and does not ask as it did before")
    assert len(await talk.events(GateOpened)) == 1


async def test_a_question_with_a_name_is_known_again_wherever_it_stands() -> None:
    begun: list[int] = []

    @tool(idempotent=True)
    async def survey(ctx: ToolContext) -> str:
        begun.append(1)
        names = ["a", "b"] if len(begun) == 1 else ["b", "a"]
        resolutions = await asyncio.gather(*(ctx.ask(Question(f"{name}?", name=name)) for name in names))
        return ",".join(
            sorted(f"{name}={resolution.result}" for name, resolution in zip(names, resolutions, strict=True))
        )

    talk = Talk(survey)
    async with talk.process(calls(call("survey")), say("So.")) as chat:
        turn = await chat.send("go")
        gates = await talk.waiting(chat, 2)
        await talk.until(TurnSuspended)
        for gate in gates:
            await chat.answer(gate, result=gate.arguments.rstrip("?").upper())
        await turn
    assert [event.output.text for event in await talk.settled()] == ["a=A,b=B"]


async def test_a_call_may_ask_only_so_often() -> None:
    @tool(idempotent=True)
    async def nosy(ctx: ToolContext) -> str:
        for number in range(100):
            await ctx.ask(Question(f"{number}?"))
        return "?"

    talk = Talk(nosy)
    await talk.tell(calls(call("nosy")), say("So."), reply=lambda gate: {"result": "yes"})
    [came] = await talk.settled()
    assert (came.state, len(await talk.events(GateOpened))) == ("failed", 32)
    assert "may ask 32 questions" in came.output.text


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("repeat", ["idempotent", "at_most_once"])
async def test_a_cancel_while_somebody_is_asked_closes_the_gate(repeat: str, hard: bool, store: Store) -> None:
    painter = Painter(repeat)
    talk = Talk(painter, store=store)
    async with talk.process(*SCRIPT) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        if repeat == "idempotent":
            await talk.until(TurnSuspended)
        await turn.cancel(hard=hard)
        assert str((await turn).phase) == "cancelled"
        assert await chat.gates() == []
        with pytest.raises(GateClosed):
            await chat.answer(gate, result=RED)
        await wait_until(lambda: not chat.app.tool_tasks.has_undelivered(turn.id))
        assert not chat.app.tool_tasks.running_calls(turn.id)
    assert (painter.begun, painter.painted) == (1, 0)
    assert [event.state for event in await talk.settled()] == ["cancelled"]


class Clerk:
    """Fills in forms on the spot."""

    name = "clerk"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_gate(self, ctx: Any) -> None:
        self.seen.append(ctx.gate.kind)
        ctx.resolution = GateResolution(True, result='{"colour":"blue"}')


async def test_a_plugin_that_fills_in_a_form_on_the_spot_spares_the_person() -> None:
    painter, clerk, store = Painter(), Clerk(), MemoryStore()
    model = ScriptedModel(*SCRIPT)
    app = App(model, tools=[painter], plugins=[clerk], store=store)
    async with Chat(model, app=app, session="s", options=TurnOptions()) as chat:
        assert (await (await chat.send("go"))).text == "Nice."
    log = [entry.event for entry in await store.events("s")]
    assert clerk.seen == ["form"]
    assert (painter.begun, painter.painted) == (1, 1)
    assert [event.resolution.by for event in log if isinstance(event, GateResolved)] == ["plugin:clerk"]
    assert not any(isinstance(event, CallSuspended | TurnSuspended) for event in log)


async def test_when_the_time_of_a_turn_is_over_nobody_is_asked_any_more(store: Store) -> None:
    painter = Painter()
    talk = Talk(painter, store=store, budget=Budget(seconds=60.0))
    async with talk.process(*SCRIPT) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        talk.clock.advance(61.0)
        assert (await turn).text == "Nice."
        with pytest.raises(GateClosed):
            await chat.answer(gate, result=RED)
    [came] = await talk.settled()
    assert (came.state, painter.painted) == ("cancelled", 0)


async def test_a_limit_of_calls_that_is_reached_while_somebody_is_asked_leaves_them_their_time(store: Store) -> None:
    @tool(read_only=True)
    def look() -> str:
        return "seen"

    talk = Talk(Painter(), look, store=store, budget=Budget(calls=1))
    async with talk.process(calls(call("paint"), call("look")), say("Nice.")) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(LimitReached)
        await talk.until(TurnSuspended)
        await chat.answer(gate, result=RED)
        await turn
    assert sorted(event.state for event in await talk.settled()) == ["completed", "failed"]
    assert len(await talk.events(CallStarted)) == 1


async def test_what_somebody_was_asked_in_time_is_answered_with_no_after_it(store: Store) -> None:
    talk = Talk(Painter(), store=store, gate_timeout=30.0)
    async with talk.process(*SCRIPT) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        assert gate.expires == talk.clock.now() + 30.0
        talk.clock.advance(31.0)
        await turn
    [came] = await talk.settled()
    assert (came.state, came.output.text) == ("failed", "no colour: nobody answered in time")


async def test_the_form_that_a_person_sees_is_the_one_the_answer_is_held_against() -> None:
    talk = Talk(Painter())
    async with talk.process(*SCRIPT) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        assert json.loads(gate.form) == COLOUR
        await chat.answer(gate, result='{"colour":"red"}')
        await turn
    assert [event.state for event in await talk.settled()] == ["completed"]
