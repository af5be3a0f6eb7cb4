"""The plugins of the guide do what the guide says of them."""

import asyncio
import logging

import pytest
from docs_src.plugins.continue_on_length import ContinueOnLength
from docs_src.plugins.guardrails import no_secrets, no_ssn
from docs_src.plugins.redactor import Redactor
from docs_src.plugins.timing import Timing

from everturn import App, Chat, Message, ToolError, tool
from everturn.core.chunks import FinishChunk
from everturn.core.hooks import AppendContext, StepContext, TurnContext
from everturn.core.parts import ToolPart
from everturn.core.ports import Model, Tool
from everturn.events import CallStarted, TurnSuspended
from everturn.testing import FakeClock, MemoryStore, ScriptedModel, call, calls, say

CARD = "4111 1111 1111 1111"
CUT = [[FinishChunk("length")]]


def tool_part(message: Message) -> ToolPart:
    return next(part for part in message.parts if isinstance(part, ToolPart))


# Go on after `length` ----------------------------------------------------------------------------------------------


async def test_a_model_that_was_cut_off_is_asked_to_go_on() -> None:
    model = ScriptedModel([*say("It is a long "), *CUT], [*say("and winding "), *CUT], say("road."))
    async with Chat(model, plugins=[ContinueOnLength()]) as chat:
        result = await (await chat.send("Tell me", params={"max_tokens": 16}))
    assert "".join(message.text for message in result.messages if message.role == "assistant") == (
        "It is a long and winding road."
    )
    assert result.text == "road."
    notices = [message for message in result.messages if message.role == "notice"]
    assert [message.by for message in notices] == ["continue_on_length"] * 2
    assert "cut off" in model.requests[-1].messages[-1].text


async def test_it_gives_up_after_so_many_times() -> None:
    model = ScriptedModel(*([*say("and "), *CUT] for _ in range(5)))
    async with Chat(model, plugins=[ContinueOnLength(times=2)]) as chat:
        await (await chat.send("Tell me", params={"max_tokens": 16}))  # otherwise the turn continues it
    assert len(model.requests) == 3


async def test_a_call_that_was_cut_off_needs_no_asking() -> None:
    ran: list[str] = []

    @tool
    async def look() -> None:
        ran.append("look")

    model = ScriptedModel(calls(call("look"), finish="length"), say("Never mind."))
    async with Chat(model, tools=[look], plugins=[ContinueOnLength()]) as chat:
        result = await (await chat.send("Look"))
    assert (result.text, ran) == ("Never mind.", [])
    assert not any(message.role == "notice" for message in result.messages)


# Redact ------------------------------------------------------------------------------------------------------------


def shown_to(model: ScriptedModel) -> str:
    return "".join(repr(request.messages) for request in model.requests)


async def everything_written(chat: Chat) -> str:
    return repr(await chat.app.store.events(chat.session))


async def test_a_card_number_out_of_a_tool_reaches_neither_model_nor_log() -> None:
    @tool(read_only=True)
    async def account() -> str:
        return f"paid with {CARD}"

    @tool(read_only=True)
    async def broken() -> str:
        raise ToolError(f"{CARD} was refused")

    model = ScriptedModel(calls(call("account"), call("broken")), say("Seen."))
    async with Chat(model, tools=[account, broken], plugins=[Redactor()]) as chat:
        await (await chat.send("What did I pay with?"))
        assert CARD not in await everything_written(chat)
    assert CARD not in shown_to(model)
    assert "paid with [card number]" in shown_to(model)
    assert "[card number] was refused" in shown_to(model)


async def test_what_a_person_typed_is_in_the_log_and_not_shown_to_the_model() -> None:
    model = ScriptedModel(say("All right."))
    async with Chat(model, plugins=[Redactor()]) as chat:
        await (await chat.send(f"My card is {CARD}"))
        assert (await chat.messages())[0].text == f"My card is {CARD}"
    assert CARD not in shown_to(model)
    assert "My card is [card number]" in shown_to(model)


async def test_a_late_result_is_redacted_too() -> None:
    may_end = asyncio.Event()

    @tool
    async def slow() -> str:
        await may_end.wait()
        return CARD

    model = ScriptedModel(calls(call("slow")), say("I see."))
    async with Chat(model, tools=[slow], plugins=[Redactor()]) as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, CallStarted):
                await turn.cancel()
        may_end.set()
        await chat.app.tool_tasks.wait_idle()
        await (await chat.send("And?"))
        assert CARD not in await everything_written(chat)
    assert CARD not in shown_to(model)
    assert "late_tool_result" in shown_to(model)


async def test_what_another_plugin_appends_is_redacted() -> None:
    class Careless:
        async def on_after_request(self, ctx: StepContext) -> None:
            if ctx.step == 1:
                await ctx.append_and_request(f"use {CARD}", role="notice")

    async with Chat(ScriptedModel(say("a"), say("b")), plugins=[Careless(), Redactor()]) as chat:
        await (await chat.send("Go"))
        assert CARD not in await everything_written(chat)


async def test_the_whole_of_a_long_output_is_covered_and_what_the_model_writes_is_not() -> None:
    @tool(read_only=True)
    async def statement() -> str:
        return f"{CARD} {'x' * 60_000}"

    model = ScriptedModel([*say(f"Your card is {CARD}"), *calls(call("statement"))], say("Seen."))
    async with Chat(model, tools=[statement], plugins=[Redactor()]) as chat:
        result = await (await chat.send("Go"))
        part = tool_part(result.messages[1])
        assert part.output is not None
        assert CARD not in part.output.text
        assert CARD not in (await chat.app.store.blob(part.output.blob)).decode()
    assert CARD in result.messages[1].text


# Time --------------------------------------------------------------------------------------------------------------


def timed(model: Model, tools: list[Tool], clock: FakeClock, store: MemoryStore | None = None) -> Chat:
    plugin = Timing(clock.now, logging.getLogger("timing"))
    app = App(model, tools=tools, plugins=[plugin], clock=clock, store=store)
    return Chat(model, app=app, session="s")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "timing"]


async def test_calls_and_holds_are_timed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "timing")
    clock = FakeClock()

    @tool(read_only=True)
    async def slow(seconds: int) -> None:
        clock.advance(seconds)

    @tool(read_only=True)
    async def broken() -> None:
        clock.advance(1)
        raise ValueError

    model = ScriptedModel(calls(call("slow", seconds=5)), calls(call("broken"), call("slow", wrong=1)), say("Done."))
    async with timed(model, [slow, broken], clock) as chat:
        turn = await chat.send("Go")
        await turn
    assert lines(caplog) == ["slow completed after 5.0 s", "broken failed after 1.0 s", f"held {turn.id} for 6.0 s"]


async def test_a_turn_that_waits_is_timed_once_per_hold(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "timing")
    clock, store = FakeClock(), MemoryStore()

    @tool(read_only=True, approval="always")
    async def slow() -> None:
        clock.advance(5)

    model = ScriptedModel(calls(call("slow")), say("Done."))
    async with timed(model, [slow], clock, store) as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                break
    clock.advance(3600)
    async with timed(model, [slow], clock, store) as chat:
        (gate,) = await chat.gates()
        await chat.answer(gate, allow="once")
        await chat.turn(turn.id)
    assert lines(caplog) == [f"held {turn.id} for 0.0 s", f"held {turn.id} for 5.0 s"]


# What surprises ----------------------------------------------------------------------------------------------------


async def test_an_answer_is_still_empty_when_it_joins() -> None:
    seen: list[tuple[str, str]] = []

    class Watcher:
        def on_message_append(self, ctx: AppendContext) -> None:
            seen.append((ctx.message.role, ctx.message.text))

    async with Chat(ScriptedModel(say("Hello.")), plugins=[Watcher()]) as chat:
        await (await chat.send("Hi"))
    assert seen == [("assistant", "")]


async def test_a_turn_cancelled_while_it_waits_ends_without_a_start() -> None:
    hook_calls: list[str] = []

    class Listener:
        def on_turn_start(self, ctx: TurnContext) -> None:
            hook_calls.append("start")

        def on_turn_end(self, ctx: TurnContext) -> None:
            hook_calls.append("end")

    @tool(approval="always")
    async def look() -> None: ...

    async with Chat(ScriptedModel(calls(call("look"))), tools=[look], plugins=[Listener()]) as chat:
        turn = await chat.send("Look")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                await turn.cancel()
    assert hook_calls == ["start", "end"]


# Guardrails -----------------------------------------------------------------------------------------------------------


async def test_the_guardrails_refuse_passwords_and_blacken_numbers() -> None:
    model = ScriptedModel(say("It is 078-05-1120."))
    async with Chat(model, plugins=[no_secrets, no_ssn]) as chat:
        refused = await (await chat.send("My password is hunter2"))
        assert refused.refusal is not None
        assert refused.text == "Please do not send passwords. Nobody has read this message."
        assert (await (await chat.send("What is my number?"))).text == "It is ***-**-****."
    assert "hunter2" not in str(model.requests)
