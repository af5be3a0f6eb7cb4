"""The step limit: a turn that may ask waits for a person, who lets it take as many steps again, or ends it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from everturn import App, Chat, TurnOptions, tool
from everturn.core.canonical_json import parse_object
from everturn.core.events import CallFinished, LimitReached, StepFinished, StepStarted, TurnStarted
from everturn.core.gates import Gate, GateResolution
from everturn.core.options import Budget
from everturn.core.state import fold
from everturn.errors import AnswerUnfit, ConfigError, InvalidEvent
from everturn.events import GateOpened, GateResolved
from everturn.testing import FakeClock, ScriptedModel, call, calls, say

ASKS = TurnOptions(max_steps=2, at_step_limit="ask")


@tool(read_only=True)
async def look(path: str) -> str:
    return f"content of {path}"


def looks(count: int) -> list[Any]:
    return [calls(call("look", path=str(number))) for number in range(count)]


async def play(script: list[Any], *replies: dict[str, Any], options: TurnOptions = ASKS) -> tuple[Any, list[Any], Any]:
    """Run a turn, answer its gates one after the other; its result, its log and its model."""
    model, answers = ScriptedModel(*script), list(replies)
    async with Chat(model, tools=[look], options=options) as chat:
        turn = await chat.send("go")
        async for item in turn:
            if isinstance(item, GateOpened):
                await turn.answer(item.gate, **answers.pop(0))
        result = await turn
        log = [entry.event for entry in await chat.app.store.events(chat.session)]
    assert not answers
    return result, log, model


def of(log: list[Any], kind: type[Any]) -> list[Any]:
    return [event for event in log if isinstance(event, kind)]


async def test_an_approval_gives_as_many_steps_again_and_the_next_limit_asks_again() -> None:
    result, log, model = await play([*looks(4), say("Done.")], {"allow": "once"}, {"allow": "once"})
    assert result.text == "Done."
    assert [parse_object(event.gate.arguments) for event in of(log, GateOpened)] == [{"max_steps": 4}, {"max_steps": 6}]
    assert {event.gate.kind for event in of(log, GateOpened)} == {"limit"}
    assert [event.state for event in of(log, CallFinished)] == ["completed"] * 4
    assert not any(event.closing for event in of(log, StepStarted))
    assert len(model.requests) == 5
    state = fold(event for event in log if getattr(event, "turn", "") == log[0].turn)
    assert state.max_steps == 6


async def test_the_call_that_was_held_up_runs_only_after_the_approval() -> None:
    _, log, _ = await play([*looks(2), say("Done.")], {"allow": "once"})
    kinds = [type(event).__name__ for event in log]
    assert kinds.index("GateResolved") < len(kinds) - 1 - kinds[::-1].index("CallStarted")
    assert kinds.index("GateOpened") > kinds.index("CallStarted")


async def test_a_denial_asks_the_model_for_a_closing_answer() -> None:
    result, log, model = await play([*looks(2), say("As far as I got.")], {"deny": "enough"})
    assert result.text == "As far as I got."
    assert [event.closing for event in of(log, StepStarted)] == [False, False, True]
    assert not model.requests[-1].tools
    assert "max_steps_reached" in of(log, CallFinished)[-1].output.text


async def test_a_denial_with_stop_makes_no_further_request() -> None:
    _, log, model = await play([*looks(2), say("never said")], {"deny": True, "stop": True})
    assert len(model.requests) == 2
    assert of(log, LimitReached)[0].limit == "denied"


async def test_without_the_option_nobody_is_asked() -> None:
    result, log, _ = await play([*looks(2), say("As far as I got.")], options=TurnOptions(max_steps=2))
    assert result.text == "As far as I got."
    assert not of(log, GateOpened)


async def test_an_answer_within_the_limit_asks_nothing() -> None:
    _, log, _ = await play([*looks(1), say("Done.")])
    assert not of(log, GateOpened)


async def test_a_budget_that_is_used_up_is_not_asked_about() -> None:
    options = TurnOptions(max_steps=2, at_step_limit="ask", budget=Budget(calls=1))
    _, log, _ = await play([*looks(2), say("As far as I got.")], options=options)
    assert of(log, LimitReached)
    assert not of(log, GateOpened)


async def test_nobody_answers_in_time_and_the_turn_ends_with_a_closing_answer() -> None:
    clock = FakeClock()
    model, options = ScriptedModel(*looks(2), say("As far as I got.")), replace(ASKS, gate_timeout=60)
    async with App(model, tools=[look], clock=clock) as app, Chat(model, app=app, options=options) as chat:
        turn = await chat.send("go")
        async for item in turn:
            if isinstance(item, GateOpened):
                clock.advance(61)
        assert (await turn).text == "As far as I got."
    assert len(model.requests) == 3


async def test_the_limit_cannot_be_edited_in_the_answer() -> None:
    async with Chat(ScriptedModel(*looks(2), say("Done.")), tools=[look], options=ASKS) as chat:
        turn = await chat.send("go")
        async for item in turn:
            if isinstance(item, GateOpened):
                with pytest.raises(AnswerUnfit):
                    await turn.answer(item.gate, allow="once", arguments={"max_steps": 1_000_000})
                with pytest.raises(AnswerUnfit):
                    await turn.answer(item.gate, result="3")
                await turn.answer(item.gate, allow="once")


async def test_send_takes_the_option_for_one_message_and_refuses_another_word() -> None:
    async with Chat(ScriptedModel(*looks(1), say("Done.")), tools=[look]) as chat:
        turn = await chat.send("go", max_steps=1, at_step_limit="ask")
        async for item in turn:
            if isinstance(item, GateOpened):
                await turn.answer(item.gate, allow="once")
        assert (await turn).text == "Done."
        with pytest.raises(ConfigError, match="answer, ask"):
            await chat.send("go", at_step_limit="perhaps")  # pyright: ignore[reportArgumentType] - that is the test


def limit_gate(arguments: str, call: str = "") -> GateOpened:
    return GateOpened(turn="t", gate=Gate("g", "t", call, "step_limit", arguments, "hash", kind="limit"))


@pytest.mark.parametrize("arguments", ["", "{}", '{"max_steps":2}', '{"max_steps":true}', '{"max_steps":"9"}', "[9]"])
async def test_a_gate_that_raises_no_limit_is_no_event_of_a_log(arguments: str) -> None:
    _, log, _ = await play([*looks(2), say("Done.")], {"allow": "once"})
    prefix = [event for event in log[: [type(event) for event in log].index(GateOpened)] if hasattr(event, "turn")]
    state = fold(prefix)
    state.id = "t"
    with pytest.raises(InvalidEvent, match="step limit"):
        state.apply(limit_gate(arguments))
    state.apply(limit_gate('{"max_steps":3}'))
    with pytest.raises(InvalidEvent, match="already"):
        state.apply(limit_gate('{"max_steps":4}'))
    resolution = GateResolution(allowed=True)
    state.apply(GateResolved(turn="t", gate="g", call="", resolution=resolution))
    assert state.max_steps == 3


async def test_before_the_limit_no_gate_can_raise_it() -> None:
    _, log, _ = await play([*looks(1), say("Done.")])
    events = [event for event in log if hasattr(event, "turn")]
    state = fold(events[: [type(event) for event in events].index(StepFinished) + 1])
    assert isinstance(events[0], TurnStarted)
    state.id = "t"
    with pytest.raises(InvalidEvent, match="step limit"):
        state.apply(limit_gate('{"max_steps":9}'))
