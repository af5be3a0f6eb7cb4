"""The phase of an error: in which stage of a turn it failed, in the log and in what `await turn` raises."""

from __future__ import annotations

from typing import Any

import pytest

from everturn import App, Chat, TurnError, TurnOptions, tool
from everturn.core.events import Problem, TurnFailed, TurnSuspended
from everturn.errors import ModelError
from everturn.testing import FakeClock, ScriptedFailure, ScriptedModel, call, calls, say
from everturn.wire import dump_event, load_event


class FailingPlugin:
    """Fails in one hook."""

    name = "failing"

    def __init__(self, hook: str) -> None:
        setattr(self, hook, self._fail)

    async def _fail(self, *_: Any) -> None:
        raise ValueError("no")


@tool(approval="always")
async def pay() -> str:
    return "paid"


@pytest.mark.parametrize(
    ("hook", "phase"),
    [
        ("on_turn_start", "prepare"),
        ("on_message_append", "prepare"),
        ("on_system_prompt", "request"),
        ("on_before_request", "request"),
        ("on_stream_chunk", "stream"),
        ("on_after_request", "tools"),
    ],
)
async def test_an_error_of_a_hook_names_the_stage_it_was_called_in(hook: str, phase: str) -> None:
    async with Chat(ScriptedModel(say("hello")), plugins=[FailingPlugin(hook)]) as chat:
        with pytest.raises(TurnError) as raised:
            await (await chat.send("go"))
        log = [entry.event for entry in await chat.app.store.events(chat.session)]
    assert raised.value.phase == phase
    [failed] = [event for event in log if isinstance(event, TurnFailed)]
    assert failed.problem.phase == phase


async def test_a_model_that_fails_fails_in_the_stream() -> None:
    async with Chat(ScriptedModel([say("half"), ScriptedFailure(ModelError("gone", kind="network"))])) as chat:
        with pytest.raises(TurnError) as raised:
            await (await chat.send("go"))
    assert (raised.value.kind, raised.value.phase) == ("network", "stream")


async def test_a_turn_that_times_out_while_it_waits_fails_in_its_tools() -> None:
    clock, model = FakeClock(), ScriptedModel(calls(call("pay")), say("done"))
    app = App(model, tools=[pay], clock=clock)
    async with Chat(model, app=app, options=TurnOptions(timeout=60.0)) as chat:
        turn = await chat.send("go")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                clock.advance(61.0)
        with pytest.raises(TurnError) as raised:
            await turn
    assert (raised.value.kind, raised.value.phase) == ("deadline", "tools")


async def test_reports_of_end_hooks_are_of_the_last_stage() -> None:
    async with Chat(ScriptedModel(say("hello")), plugins=[FailingPlugin("on_turn_end")]) as chat:
        result = await (await chat.send("go"))
    assert [report.phase for report in result.reports] == ["finalize"]


async def test_the_problem_of_an_older_log_has_no_phase_and_is_written_as_it_was() -> None:
    old = TurnFailed(turn="t", at=1.0, problem=Problem("rate", "busy"))
    assert b"phase" not in dump_event(old)
    assert load_event(dump_event(old)) == old
