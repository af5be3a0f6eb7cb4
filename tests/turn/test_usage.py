"""What a model says it used is taken for what it can be, and guessed where a limit depends on it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn import Chat, TurnOptions, tool
from everturn.app import App
from everturn.core.chunks import MAX_CALLS_PER_STEP, CallChunk, FinishChunk, TextChunk, UsageChunk, exceeds_call_limit
from everturn.core.options import Budget
from everturn.core.parts import MAX_USAGE_COUNT, ToolPart, Usage
from everturn.core.state import TurnState
from everturn.running.drive_setup import TurnSettings
from everturn.testing import ScriptedModel, call, calls, say
from everturn.turn.stream import StepAssembly

NAN = float("nan")


def assembled(usage: Usage) -> Usage:
    assembly = StepAssembly("turn", 1, 1)
    assembly.feed([TextChunk("hello"), UsageChunk(usage), FinishChunk("stop")])
    return assembly.usage


@pytest.mark.parametrize(
    ("reported", "taken"),
    [
        (Usage(10, 5, 3, 2, 1, cost=0.5), Usage(10, 5, 3, 2, 1, cost=0.5)),
        (Usage(-10, -5, -3, -2, -1, cost=-0.5), Usage()),
        (Usage(2**60, 2**64), Usage(MAX_USAGE_COUNT, MAX_USAGE_COUNT)),
        (Usage(1, 1, cost=NAN), Usage(1, 1)),
        (Usage(1, 1, cost=math.inf), Usage(1, 1)),
        (Usage(1, 1, cost=0.0), Usage(1, 1, cost=0.0)),
        (Usage(NAN, 2.0, "3", None, cost="4"), Usage(0, 2)),  # type: ignore[arg-type]
    ],
)
def test_what_a_stream_says_is_taken_for_what_it_can_be(reported: Usage, taken: Usage) -> None:
    assert assembled(reported) == taken


ANY = st.builds(
    Usage, *[st.integers(-(2**70), 2**70)] * 5, cost=st.none() | st.floats(allow_nan=True, allow_infinity=True)
)


@given(st.lists(ANY, max_size=8))
def test_a_sum_never_falls_and_can_always_be_written_down(usages: list[Usage]) -> None:
    total = Usage()
    for usage in usages:
        more = total + assembled(usage)
        assert more.input >= total.input
        assert (more.cost or 0.0) >= (total.cost or 0.0)
        total = more
    counts = (total.input, total.output, total.cached, total.reasoning, total.written)
    assert all(0 <= count <= MAX_USAGE_COUNT for count in counts)
    assert total.cost is None or math.isfinite(total.cost)


def test_a_sum_with_a_guess_in_it_is_a_guess() -> None:
    assert (Usage(1) + Usage(2, estimated=True)).estimated
    assert (Usage(1, estimated=True) + Usage(2)).estimated
    assert not (Usage(1) + Usage(2)).estimated


# Budgets where nothing is counted ------------------------------------------------------------------------------


@tool(repeatable=True, read_only=True)
async def look() -> str:
    """Look."""
    return "x" * 400


async def spend(budget: Budget, usage: Usage | None = None, **settings: Any) -> tuple[TurnState, ScriptedModel]:
    usage_chunks = [] if usage is None else [[UsageChunk(usage)]]
    model = ScriptedModel(*[[*usage_chunks, calls(call("look"))] for _ in range(9)], say("Done."))
    app = App(model, tools=[look], settings=TurnSettings(**settings))
    async with Chat(model, app=app, options=TurnOptions(budget=budget, max_steps=20)) as chat:
        turn = await chat.send("please")
        await turn
        return await turn.state(), model


@pytest.mark.parametrize("usage", [None, Usage(), Usage(-1000, -1000)])
@pytest.mark.parametrize("is_wide", [False, True])
async def test_a_limit_of_tokens_holds_where_nobody_counts_them(usage: Usage | None, is_wide: bool) -> None:
    budget = Budget(tokens=500)
    state, model = await spend(Budget() if is_wide else budget, usage, session_budget=budget if is_wide else Budget())
    assert state.limit is not None
    assert (state.limit.limit, state.limit.scope) == ("tokens", "session" if is_wide else "turn")
    assert 2 < len(model.requests) < 9
    assert state.usage.estimated
    assert state.usage.input > state.usage.output > 0


async def test_a_guess_grows_with_what_is_sent() -> None:
    state, model = await spend(Budget(tokens=1_000_000))
    assert state.limit is None
    assert len(model.requests) == 10
    # Each request repeats the 400 characters of every result before it: 0 + 1 + … + 8 of them; the last one is counted.
    assert state.usage.input >= 36 * 100


async def test_without_a_limit_of_tokens_nothing_is_guessed() -> None:
    state, _ = await spend(Budget(steps=50, cost=1.0))
    assert not state.usage.estimated


async def test_what_a_provider_counts_is_left_as_it_is() -> None:
    state, _ = await spend(Budget(tokens=100_000), Usage(7, 3))
    assert (state.usage.estimated, state.usage.output) == (False, 9 * 3 + 1)


# Calls of one step ---------------------------------------------------------------------------------------------


def test_calls_beyond_the_limit_of_a_step_keep_their_place_and_are_distinguished() -> None:
    assembly = StepAssembly("turn_1-2", 3, 1)
    assembly.feed([CallChunk(slot, "{}", "look") for slot in range(MAX_CALLS_PER_STEP + 2)])
    call_ids = [part.call for part in assembly.parts() if isinstance(part, ToolPart)]
    assert len(call_ids) == MAX_CALLS_PER_STEP + 2
    assert [name for name in call_ids if exceeds_call_limit(name)] == call_ids[MAX_CALLS_PER_STEP:]
    assert not exceeds_call_limit("made-by-hand")


async def test_calls_beyond_the_limit_of_a_step_are_refused_in_words_and_the_turn_goes_on() -> None:
    model = ScriptedModel(calls(*[call("look") for _ in range(MAX_CALLS_PER_STEP + 3)]), say("Done."))
    async with Chat(model, tools=[look]) as chat:
        result = await (await chat.send("please"))
    assert result.message is not None
    tool_parts = [part for part in result.message.parts if isinstance(part, ToolPart)]
    assert [part.state for part in tool_parts] == ["completed"] * MAX_CALLS_PER_STEP + ["failed"] * 3
    assert all(
        part.output is not None and "at most 128 calls in one step" in part.output.text for part in tool_parts[-3:]
    )
    assert result.text == "Done."
