"""Spans of a turn for people: what was done, when and below what, also while it runs; the same times as in its exported trace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace
from tests.helpers.simulated_driver import Play, plays

from everturn import App, Chat, ToolContext, tool, wire
from everturn.core.chunks import Chunk, FinishChunk, RetryChunk
from everturn.core.events import Entry, Event, TurnEvent
from everturn.core.projections.turn_trace import TraceSpan, trace_spans
from everturn.core.requests import ModelRequest
from everturn.events import GateOpened
from everturn.telemetry.spans import spans_of
from everturn.testing import FakeClock, ScriptedModel, call, calls, say

LOGS = sorted((Path(__file__).parent.parent / "golden").glob("v*/*.jsonl"))
DAY = 86_400.0


class SlowModel:
    """Takes 2 s to its first chunk and 3 s in all; before that, each request waits 10 s for a rate limit."""

    name = "slow"

    def __init__(self, clock: FakeClock, *script: Any) -> None:
        self.clock, self.inner = clock, ScriptedModel(*script)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [RetryChunk(2, 3, 10.0, "rate", "busy")]
        self.clock.advance(12.0)
        async for batch in self.inner.stream(request):
            yield batch
            if any(isinstance(chunk, FinishChunk) for chunk in batch):
                self.clock.advance(1.0)


def drawn(spans: list[TraceSpan], start: float) -> list[str]:
    """Spans as an indented tree: name, seconds from the start of the turn to their start and end, and how they ended."""
    by_id = {span.id: span for span in spans}

    def depth(span: TraceSpan) -> int:
        return 0 if not span.parent else depth(by_id[span.parent]) + 1

    return [
        f"{'  ' * depth(span)}{span.kind} {span.name} {span.start - start:.0f}-"
        f"{f'{span.end - start:.0f}' if span.end else ''} {span.state}".rstrip()
        for span in spans
    ]


async def test_a_turn_with_a_rate_limit_a_gate_and_a_tool_that_waits() -> None:
    clock = FakeClock()

    @tool(approval="always", resumable=True)
    async def pay(ctx: ToolContext) -> str:
        async def book() -> str:
            clock.advance(5.0)
            return "booked"

        return await ctx.step("book", book)

    model = SlowModel(clock, calls(call("pay")), say("done"))
    async with Chat(model, app=App(model, tools=[pay], clock=clock)) as chat:
        turn = await chat.send("go")
        async for item in turn:
            if isinstance(item, GateOpened):
                clock.advance(DAY)
                await turn.answer(item.gate, allow="once")
        log = await chat.app.store.events(chat.session, turn=turn.id)
    spans, start = trace_spans(log), log[0].event.at
    assert drawn(spans, start) == [
        "step slow 0-13 tool_calls",
        "  retry rate 0-10",
        "  call pay 13-86418 completed",
        "    gate call 13-86413 allowed",
        "    tool_step book 86413-86418 completed",
        "step slow 86418-86431 stop",
        "  retry rate 86418-86428",
    ]
    by_id = {span.id: span for span in spans}
    assert by_id["step:1"].active_at == start + 12.0
    [pays] = [span for span in spans if span.kind == "call"]
    assert pays.active_at == start + 13.0 + DAY
    assert [span.text for span in spans if span.kind == "retry"] == ["busy", "busy"]
    half = trace_spans(log[:8])
    assert [span.kind for span in half if span.is_open] == ["call", "gate"]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_steps_calls_and_gates_have_the_times_of_the_exported_trace(path: Path) -> None:
    log = wire.load_log(path.read_bytes())
    for turn in {entry.event.turn for entry in log if isinstance(entry.event, TurnEvent)}:
        own = [entry for entry in log if isinstance(entry.event, TurnEvent) and entry.event.turn == turn]
        ours = {span.id: span for span in trace_spans(own)}
        for span in spans_of("talk", own):
            name, _, _ = span.name.partition(" ")
            attributes = span.attributes
            if name == "chat":
                step = ours[f"step:{attributes['everturn.step']}"]
                assert (step.start, step.end) == (span.start, span.end)
            elif name == "execute_tool":
                called = ours[f"call:{attributes['gen_ai.tool.call.id']}"]
                assert (called.active_at or span.start, called.end) == (span.start, span.end)
                assert called.state == attributes["everturn.call.state"]
            elif name == "gate":
                gate = ours[f"gate:{attributes['everturn.gate.id']}"]
                assert (gate.start, gate.end, gate.state) == (
                    span.start,
                    span.end,
                    attributes["everturn.gate.resolution"],
                )


def ended(spans: list[TraceSpan]) -> dict[str, TraceSpan]:
    return {span.id: span for span in spans if span.end}


@given(plays)
def test_whatever_a_turn_does_its_spans_are_a_tree_and_the_end_closes_all(play: Play) -> None:
    events: list[Event] = [replace(event, at=float(at)) for at, event in enumerate(play.log, 1)]
    spans = list[TraceSpan]()
    for length in range(len(events) + 1):
        spans = trace_spans([Entry(at, event) for at, event in enumerate(events[:length], 1)])
        ids = [span.id for span in spans]
        assert len(set(ids)) == len(ids)
        for at, span in enumerate(spans):
            assert not span.parent or span.parent in ids[:at]
            assert span.start
            assert not span.end or span.end >= span.start
    assert not [span for span in spans if span.is_open]
