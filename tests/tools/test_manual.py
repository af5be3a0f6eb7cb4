"""A call that a person carries out: the model calls, the gate is answered with what came of it, and nothing is run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from everturn import Chat, Gate, Turn, get_model, manual, tool
from everturn.app import App
from everturn.calls.pipeline import OutputLimits
from everturn.core.hooks import CallContext
from everturn.core.parts import ToolPart
from everturn.core.requests import RequestResult
from everturn.errors import ConfigError, GateClosed, HashMismatch
from everturn.events import CallStarted, GateOpened
from everturn.testing import ScriptedModel, call, calls, say
from everturn.testing.provider import Provider, Say

ran: list[str] = []


@tool(approval="always")
async def open_box(number: int) -> str:
    """Open a box in the archive."""
    ran.append(f"box {number}")
    return "a program opened it"


def model() -> ScriptedModel:
    return ScriptedModel(calls(call("open_box", number=7)), say("I see."))


async def gate_of(turn: Turn) -> Gate:
    async for event in turn:
        if isinstance(event, GateOpened):
            return event.gate
    raise AssertionError("nobody was asked")


async def done(chat: Chat, **answer: Any) -> ToolPart:
    """Send a message, answer the gate, and give the call as it is in the end."""
    turn = await chat.send("What is in box 7?")
    await turn.answer(await gate_of(turn), **answer)
    result = await turn
    assert result.message is not None
    [part] = [part for part in result.message.parts if isinstance(part, ToolPart)]
    return part


async def test_what_a_person_did_is_the_result_and_nothing_is_run() -> None:
    ran.clear()
    scripted = model()
    async with Chat(scripted, tools=[open_box]) as chat:
        part = await done(chat, result="A letter from 1921.", by="ada")

        assert (part.state, part.output and part.output.text) == ("completed", "A letter from 1921.")
        assert ran == []
        log = [entry.event for entry in await chat.app.store.events(chat.session)]
        assert not any(isinstance(event, CallStarted) for event in log)
        result = scripted.requests[1].messages[-1].parts[0]
        assert isinstance(result, RequestResult)
        assert result.text == "A letter from 1921."


@pytest.mark.parametrize(
    ("pasted", "read"),
    [
        ('{"tool_call_result": {"tool_call_id": "call_1", "result": "A letter."}}', "A letter."),
        ('{"tool_call_result": {"result": {"found": 2}}}', '{"found":2}'),
        ('{"tool_call_result": 7}', '{"tool_call_result": 7}'),
        ('{"other": 1}', '{"other": 1}'),
        ("", ""),
    ],
)
async def test_a_result_may_be_pasted_in_the_form_in_which_models_are_told(pasted: str, read: str) -> None:
    async with Chat(model(), tools=[open_box]) as chat:
        part = await done(chat, result=pasted)

    assert part.output is not None
    assert part.output.text == read


@pytest.mark.parametrize("how", ["error", "rejected"])
async def test_what_did_not_work_is_a_failure(how: str) -> None:
    async with Chat(model(), tools=[open_box]) as chat:
        part = await done(chat, result=json.dumps({"tool_call_result": {how: "It is locked."}}))

    assert part.output is not None
    assert (part.state, part.output.text) == ("failed", "It is locked.")


async def test_it_is_an_answer_like_any_other_for_these_bytes_and_once() -> None:
    async with Chat(model(), tools=[open_box]) as chat:
        turn = await chat.send("What is in box 7?")
        gate = await gate_of(turn)
        with pytest.raises(HashMismatch):
            await turn.answer(replace(gate, hash="0" * 64), result="forged")
        await turn.answer(gate, result="A letter.")
        await turn.answer(gate, result="A letter.")  # the same again is no news
        for other in ({"result": "Two letters."}, {"allow": "once"}, {"deny": True}):
            with pytest.raises(GateClosed):
                await turn.answer(gate, **other)  # pyright: ignore[reportArgumentType]
        await turn


@pytest.mark.parametrize(
    "answer",
    [
        {"result": "x", "allow": "once"},
        {"result": "x", "deny": True},
        {"result": "x", "arguments": {}},
        {"result": 7},
        {"result": '{"tool_call_result": {"name": "close_box", "result": "closed"}}'},
    ],
)
async def test_an_answer_that_says_two_things_is_none(answer: dict[str, Any]) -> None:
    async with Chat(model(), tools=[open_box]) as chat:
        turn = await chat.send("What is in box 7?")
        gate = await gate_of(turn)
        with pytest.raises(ConfigError):
            await turn.answer(gate, **answer)
        assert await chat.gates() == [gate]


async def test_a_tool_that_is_run_manual_asks_and_is_never_run() -> None:
    ran.clear()

    @tool(read_only=True)
    async def open_box(number: int) -> str:
        """Open a box in the archive."""
        ran.append("by a program")
        return ""

    async with Chat(model(), tools=[manual(open_box)]) as chat:
        part = await done(chat, allow="once")

    assert part.state == "failed"
    assert part.output is not None
    assert "is run by a person" in part.output.text
    assert ran == []


async def test_nobody_is_asked_to_do_nonsense() -> None:
    scripted = ScriptedModel(calls(call("open_box", number="seven")), say("Oh."))
    async with Chat(scripted, tools=[manual(open_box)]) as chat:
        result = await (await chat.send("What is in box seven?"))

        assert result.text == "Oh."
        assert await chat.gates() == []


async def test_what_a_person_brings_is_shaped_and_seen_by_plugins_like_any_result() -> None:
    class Shout:
        name = "shout"

        def on_call_end(self, ctx: CallContext) -> None:
            assert ctx.output is not None
            ctx.output = replace(ctx.output, text=ctx.output.text.upper())

    app = App(model(), tools=[open_box], plugins=[Shout()], limits=OutputLimits(output=20))
    async with Chat(model(), app=app) as chat:
        part = await done(chat, result="x" * 100)

        assert part.output is not None
        assert part.output.text.startswith(f"{'X' * 14}\n[… 80 characters left out")
        assert await chat.app.store.blob(part.output.blob) == b"X" * 100


async def test_a_model_without_tools_and_a_person_do_it_together() -> None:
    written = '{"tool_calls": [{"name": "open_box", "arguments": {"number": 7}}]}'
    async with Provider() as provider:
        provider.script("small", [[Say("Please look.\n\n" + written)], [Say("How nice.")]], sequence=True)
        small = get_model("compatible:small", base_url=f"{provider.url}/v1", tool_format="json")
        async with Chat(small, tools=[manual(open_box)]) as chat:
            part = await done(chat, result="A letter.")
            answer = (await chat.messages())[-1]

            assert part.state == "completed"
            assert answer.text == "Please look.\n\nHow nice."
            content = provider.seen[1].body["messages"][-1]["content"]
            assert content == '{"tool_call_result":{"name":"open_box","result":"A letter.","tool_call_id":"call_1"}}'
