"""Recorded turns, played to every major of the `ai` package: the first of it, which was strict, and a late one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from everturn.core.deltas import CallDelta, TextDelta, TurnItem
from everturn.core.events import Entry, Event, GateResolved, StepFinished, StepRestarted, TurnEvent, TurnFailed
from everturn.core.parts import ReasoningPart, TextPart, ToolPart
from everturn.core.state import TurnState, fold
from everturn.protocols.ai_sdk import AiSdkEncoder
from everturn.protocols.waiting_point import StreamPosition
from tests.helpers.recorded_streams import NAMES, encoded, play, shown, turns_of, values, with_clients
from tests.protocols.test_ai_sdk import TURN, call, opening

pytestmark = with_clients

TAKES = {
    5: ("ai-5-first", "ai-5", "ai-6-first", "ai-6", "ai-7-first", "ai"),
    6: ("ai-6-first", "ai-6", "ai-7-first", "ai"),
    7: ("ai",),
}
TURNS = [(name, at, turn) for name in NAMES for at, turn in enumerate(turns_of(name))]


def state_of(turn: list[Entry]) -> TurnState:
    return fold(entry.event for entry in turn)


def check(report: dict[str, Any], turn: list[Entry], level: int) -> None:
    """Hold what a client has against what the log says."""
    state = state_of(turn)
    failed = [entry.event.problem.text for entry in turn if isinstance(entry.event, TurnFailed)]
    assert report["errors"] == failed
    parts = [part for message in state.messages.values() if message.role == "assistant" for part in message.parts]
    for kind, ours in (("text", TextPart), ("reasoning", ReasoningPart)):
        theirs = [part["text"] for part in report["message"]["parts"] if part["type"] == kind]
        assert theirs == [part.text for part in parts if isinstance(part, ours)]
    tools = {part["toolCallId"]: part for part in report["message"]["parts"] if part["type"] == "dynamic-tool"}
    calls = {part.call: part for part in parts if isinstance(part, ToolPart)}
    assert set(calls) <= set(tools)
    for name, part in calls.items():
        theirs = tools[name]
        assert theirs["toolName"] == part.name
        if part.state == "completed":
            assert part.output is not None
            assert (theirs["state"], theirs["output"]) == ("output-available", part.output.text)
        elif part.state == "denied" and level > 5:
            assert theirs["state"] == "output-denied"
        elif part.output is not None:
            assert (theirs["state"], theirs["errorText"]) == ("output-error", part.output.text)


@pytest.mark.parametrize("level", [5, 6, 7])
def test_a_recorded_turn_is_in_a_client_what_it_is_in_the_log(level: Any, tmp_path: Path):
    jobs: list[dict[str, Any]] = []
    for _, _, turn in TURNS:
        stream = encoded(
            AiSdkEncoder("s", level=level, mode="open"), shown(turn, lambda text: [*text] or [""])
        ).decode()
        jobs += [{"client": client, "streams": [stream], "piece": 50} for client in TAKES[level]]
    answers = iter(play("play.mjs", jobs, tmp_path))
    for _, _, turn in TURNS:
        for _ in TAKES[level]:
            check(next(answers), turn, level)


def test_a_level_above_a_client_kills_it(tmp_path: Path):
    """Why there are levels. When this fails, a level can go."""
    [denied] = turns_of("denied")
    streams = {level: encoded(AiSdkEncoder("s", level=level, mode="open"), shown(denied)).decode() for level in (6, 7)}
    jobs = [
        {"client": client, "streams": [streams[level]], "piece": 50}
        for level, client in ((6, "ai-5-first"), (6, "ai-5"), (7, "ai-6-first"), (7, "ai-6"))
    ]
    assert all(report["errors"] for report in play("play.mjs", jobs, tmp_path))


def closed(turn: list[Entry], level: Any) -> list[str]:
    """The streams that a client has of a turn who answers with its next request, each time at once."""
    streams: list[str] = []
    place: StreamPosition | None = None
    answered: set[str] = set()
    while True:
        encoder = AiSdkEncoder("s", level=level, place=place)
        stream = encoded(encoder, shown(turn))
        streams.append(stream.decode())
        gate_ids = _asked(stream) - answered
        if not gate_ids or len(streams) > 9:
            return streams
        answered |= gate_ids
        place = StreamPosition(shown=frozenset(gate_ids), answered=frozenset(gate_ids), at=1.0)


def _asked(stream: bytes) -> set[str]:
    approvals = [chunk["data"] for chunk in values(stream) if chunk["type"] == "data-approval"]
    decided = {approval["gate"] for approval in approvals if "resolution" in approval}
    return {
        approval["gate"] for approval in approvals if approval["kind"] in ("call", "egress", "loop", "result", "client")
    } - decided


@pytest.mark.parametrize("level", [6, 7])
def test_a_turn_in_several_streams_is_in_a_client_what_it_is_in_one(level: Any, tmp_path: Path):
    gated = [turn for _, _, turn in TURNS if any(isinstance(entry.event, GateResolved) for entry in turn)]
    jobs: list[dict[str, Any]] = []
    for turn in gated:
        streams = closed(turn, level)
        jobs += [{"client": client, "streams": streams, "piece": 50} for client in TAKES[level]]
    assert max(len(job["streams"]) for job in jobs) > 1
    answers = iter(play("play.mjs", jobs, tmp_path))
    for turn in gated:
        for _ in TAKES[level]:
            check(next(answers), turn, level)


@pytest.mark.parametrize("level", [6, 7])
def test_a_step_that_is_begun_again_leaves_one_call_with_its_own_arguments(level: Any, tmp_path: Path):
    events: list[Event] = opening()[:3]
    seen: list[TurnItem] = [
        *events,
        TextDelta(TURN, 3, 0, 0, "Hel"),
        CallDelta(TURN, 3, 1, 0, '{"to":"Al', "t-1-1", "mail"),
        StepRestarted(turn=TURN, step=1),
        CallDelta(TURN, 4, 0, 0, '{"to":"Bob"}', "t-1-1", "mail"),
        StepFinished(turn=TURN, step=1, parts=(call(),), finish="tool_calls"),
    ]
    stream = encoded(AiSdkEncoder(level=level), iter(seen)).decode()
    jobs = [{"client": client, "streams": [stream], "piece": 50} for client in TAKES[level]]
    for report in play("play.mjs", jobs, tmp_path):
        tools = [part for part in report["message"]["parts"] if part["type"] == "dynamic-tool"]
        assert report["errors"] == []
        assert [part["input"] for part in tools] == [{"to": "Bob"}]
        if level == 7:
            assert not any(part["type"] == "text" for part in report["message"]["parts"])


def test_the_recorded_turns_are_turns():
    assert all(isinstance(turn[0].event, TurnEvent) for _, _, turn in TURNS)
