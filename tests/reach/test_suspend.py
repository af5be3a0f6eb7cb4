"""A tool that asks while it runs: suspended, resumed with what it was told, held where it cannot be resumed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from everturn import Gate, ToolContext, tool
from everturn.core.events import (
    CallFinished,
    CallResumed,
    CallStarted,
    CallSuspended,
    GateOpened,
    NestedCallRequested,
    TurnCompleted,
    TurnSuspended,
)
from everturn.core.parts import ToolPart
from everturn.core.ports import Question, SubagentRequest
from everturn.core.requests import RequestResult, ToolSpec
from everturn.core.store_ports import Store
from everturn.errors import AnswerUnfit, ToolError
from everturn.testing import call, calls, say
from tests.helpers.conversations import Scenes, Talk

COLOUR = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"]}


class Painter:
    """Asks for a colour, and counts how often it was begun and how often it painted."""

    def __init__(self, repeat: str = "idempotent", resumable: bool = False) -> None:
        self.begun = self.painted = 0
        schema = {"type": "object", "properties": {}}
        self.spec = ToolSpec("paint", "Paint.", schema, idempotent=repeat == "idempotent", resumable=resumable)

    def validate(self, arguments: Any) -> None:
        pass

    async def run(self, arguments: Any, context: ToolContext) -> str:
        self.begun += 1
        context.save_state(f"begun {self.begun}")
        resolution = await context.ask(Question("Which colour?", schema=COLOUR))
        if not resolution.allowed:
            raise ToolError(f"no colour: {resolution.reason}")
        self.painted += 1
        return f"painted {json.loads(resolution.result or '')['colour']}, kept {context.saved_state!r}"


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_tool_that_asks_is_suspended_and_begun_again_with_the_answer(is_restarted: bool, store: Store) -> None:
    painter = Painter()
    talk = Talk(painter, store=store)
    script = [calls(call("paint")), say("Nice.")]
    async with talk.process(*script) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        assert not chat.app.tool_tasks.running_calls(turn.id)
        assert (gate.kind, gate.arguments, json.loads(gate.form)) == ("form", "Which colour?", COLOUR)
        if not is_restarted:
            await chat.answer(gate, result='{"colour": "red"}')
            await turn
    if is_restarted:
        async with talk.process(*script) as chat:
            await chat.answer(gate, result='{"colour": "red"}')
            await chat.turn(turn.id)
    assert (painter.begun, painter.painted) == (2, 1)
    [came] = await talk.settled()
    assert came.output.text == "painted red, kept 'begun 1'"
    kinds = [type(event) for event in await talk.events(CallStarted, CallSuspended, CallResumed, CallFinished)]
    assert kinds == [CallStarted, CallSuspended, CallResumed, CallFinished]


async def test_an_answer_that_does_not_fit_is_refused_on_arrival(store: Store) -> None:
    talk = Talk(Painter(), store=store)
    async with talk.process(calls(call("paint")), say("Well.")) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        for wrong in ('{"colour": "green"}', "{}", "red", "[]", '{"colour": 1}'):
            with pytest.raises(AnswerUnfit):
                await chat.answer(gate, result=wrong)
        with pytest.raises(AnswerUnfit):
            await chat.answer(gate, allow="once")
        await chat.answer(gate, deny="none is left")
        await turn
    [came] = await talk.settled()
    assert (came.state, came.output.text) == ("failed", "no colour: none is left")


async def test_a_tool_that_must_not_be_repeated_is_held_while_it_asks() -> None:
    painter = Painter("at_most_once")
    talk = Talk(painter)
    async with talk.process(calls(call("paint")), say("Nice.")) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await asyncio.sleep(0.05)
        assert await talk.events(CallSuspended, TurnSuspended) == []
        talk.clock.advance(1000.0)  # its own time does not pass meanwhile
        await chat.answer(gate, result='{"colour": "blue"}')
        await turn
    assert (painter.begun, painter.painted) == (1, 1)


async def test_one_that_must_not_be_repeated_and_says_that_it_resumes_is_suspended() -> None:
    painter = Painter("at_most_once", resumable=True)
    talk = Talk(painter)
    async with talk.process(calls(call("paint")), say("Nice.")) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        await chat.answer(gate, result='{"colour": "blue"}')
        await turn
    assert (painter.begun, painter.painted) == (2, 1)


async def test_questions_at_once_are_answered_in_any_order() -> None:
    begun: list[int] = []

    @tool(idempotent=True)
    async def survey(ctx: ToolContext) -> str:
        begun.append(1)
        resolutions = await asyncio.gather(*(ctx.ask(Question(f"Number {n}?")) for n in range(3)))
        return ",".join(resolution.result or "-" for resolution in resolutions)

    talk = Talk(survey)
    async with talk.process(calls(call("survey")), say("So.")) as chat:
        turn = await chat.send("go")
        gates = await talk.waiting(chat, 3)
        for gate in reversed(gates):
            await talk.until(TurnSuspended)
            await chat.answer(gate, result=gate.arguments)
        await turn
    assert [came.output.text for came in await talk.settled()] == ["Number 0?,Number 1?,Number 2?"]
    assert len(begun) == 2


async def test_a_tool_calls_others_and_each_is_judged_and_written_down(store: Store) -> None:
    ran: list[int] = []

    @tool()
    def double(number: int) -> int:
        ran.append(number)
        return number * 2

    @tool(approval="always")
    def triple(number: int) -> int:
        ran.append(number)
        return number * 3

    @tool(idempotent=True)
    async def work(ctx: ToolContext) -> str:
        doubled = await ctx.run_tool("double", {"number": 1})
        two = await ctx.run_tool("triple", {"number": int(doubled.text)})
        return (await ctx.run_tool("double", {"number": int(two.text)})).text

    talk = Talk(double, triple, work, store=store)
    script = [calls(call("work")), say("Done.")]
    async with talk.process(*script) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        assert (gate.tool, gate.arguments) == ("triple", '{"number":2}')
    async with talk.process(*script) as chat:
        await chat.answer(gate, allow="once")
        await chat.turn(turn.id)
    assert ran == [1, 2, 6]
    [*inner, outer] = await talk.settled()
    assert [event.output.text for event in inner] == ["2", "6", "12"]
    assert outer.output.text == "12"
    assert [event.parent for event in await talk.events(NestedCallRequested)] == [outer.call] * 3
    # No model is told of them.
    [_, request] = talk.requests if len(talk.requests) == 2 else talk.requests[-2:]
    results = [part for message in request.messages for part in message.parts if isinstance(part, RequestResult)]
    assert [part.call for part in results] == [outer.call]


async def test_a_denied_call_within_a_tool_is_an_error_in_it() -> None:
    @tool(approval="deny")
    def never() -> str:
        return "never"

    @tool(idempotent=True)
    async def work(ctx: ToolContext) -> str:
        assert "never" not in ctx.tools()
        try:
            await ctx.run_tool("never", {})
        except ToolError as error:
            return f"caught: {error}"
        return "?"

    talk = Talk(never, work)
    await talk.tell(calls(call("work")), say("Done."))
    assert (await talk.settled())[-1].output.text.startswith("caught: This call is not allowed")


async def test_as_many_tools_as_may_run_at_once_can_all_call_others() -> None:
    @tool(read_only=True, repeatable=True)
    async def leaf(number: int) -> int:
        return number

    @tool(idempotent=True, repeatable=True)
    async def branch(number: int, ctx: ToolContext) -> str:
        return (await ctx.run_tool("leaf", {"number": number})).text

    from everturn.calls.output import OutputLimits

    talk = Talk(leaf, branch, limits=OutputLimits(parallel=2))
    result = await talk.tell(calls(*(call("branch", number=n) for n in range(8))), say("Done."))
    assert result.text == "Done."


async def test_a_turn_above_is_suspended_while_one_below_asks(store: Store) -> None:
    begun: list[str] = []

    @tool(approval="always")
    def ring() -> str:
        return "rang"

    @tool(idempotent=True)
    async def hand_on(ctx: ToolContext) -> str:
        begun.append("hand_on")
        return (await ctx.run_subagent(SubagentRequest("below"))).text

    talk = Talk(ring, hand_on, store=store)
    scenes = Scenes(go=[calls(call("hand_on")), say("Done.")], below=[calls(call("ring")), say("It rang.")])
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        assert not chat.app.tool_tasks.running_calls(turn.id)
    async with talk.process(model=scenes) as chat:
        assert [gate.id for gate in await chat.gates()] == [gate.id]
        await chat.answer(gate, allow="once")
        result = await chat.turn(turn.id)
    assert result.text == "Done."
    assert [event.output.text for event in await talk.settled()] == ["It rang."]
    assert begun == ["hand_on", "hand_on"]


async def test_a_cancel_while_a_tool_is_suspended_ends_it_and_what_it_asked(store: Store) -> None:
    painter = Painter()
    talk = Talk(painter, store=store)
    async with talk.process(calls(call("paint")), say("Never.")) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        await turn.cancel()
        result = await turn
        assert str(result.phase) == "cancelled"
        assert await chat.gates() == []
    assert painter.painted == 0
    assert gate.kind == "form"


def shown(gates: list[Gate]) -> list[str]:
    return [gate.arguments for gate in gates]


async def test_the_log_of_a_tool_that_asked_says_so() -> None:
    talk = Talk(Painter())
    async with talk.process(calls(call("paint")), say("Nice.")) as chat:
        turn = await chat.send("go")
        gates = await talk.waiting(chat)
        assert shown(gates) == ["Which colour?"]
        await talk.until(TurnSuspended)
        [message] = [message for message in await chat.messages() if message.role == "assistant"]
        assert [part.state for part in message.parts if isinstance(part, ToolPart)] == ["waiting"]
        await chat.answer(gates[0], result='{"colour": "red"}')
        await turn
    assert len(await talk.events(GateOpened)) == len(await talk.events(TurnCompleted)) == 1
