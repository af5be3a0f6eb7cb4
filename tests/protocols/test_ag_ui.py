"""AG-UI: the events of a run, where it ends, how the next one goes on, and what the real client makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from everturn.core.deltas import CallDelta, TextDelta, TurnItem
from everturn.core.events import Entry, Event, StepFinished, StepRestarted, StepStarted, TurnSuspended
from everturn.core.options import ClientTool
from everturn.core.parts import Output, ReasoningPart, TextPart, ToolPart
from everturn.core.state import fold
from everturn.protocols.ag_ui import AgUiEncoder
from everturn.protocols.waiting_point import StreamPosition
from tests.helpers.recorded_streams import NAMES, encoded, play, shown, turns_of, values, with_clients
from tests.protocols.test_ai_sdk import ENDING, TURN, call, gate, opening, resolution, settled, started

TURNS = [turn for name in NAMES for turn in turns_of(name)]


def events(encoder: AgUiEncoder, seen: list[Event] | list[TurnItem]) -> list[dict[str, Any]]:
    return values(encoded(encoder, iter(seen)))


def kinds(stream: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in stream if event["type"] not in ("CUSTOM", "ACTIVITY_SNAPSHOT")]


def run(place: StreamPosition | None = None) -> AgUiEncoder:
    return AgUiEncoder("thread", "run", "s", TURN, place)


def test_a_run_ends_where_a_person_is_asked_with_its_step_closed():
    stream = events(run(), [*opening(TextPart("Wait."), call()), gate("g", why="may it?", expires=2e9)])
    assert kinds(stream)[-2:] == ["STEP_FINISHED", "RUN_FINISHED"]
    [interrupt] = stream[-1]["outcome"]["interrupts"]
    assert (interrupt["id"], interrupt["toolCallId"], interrupt["message"]) == ("g", "t-1-1", "may it?")
    assert interrupt["expiresAt"] == "2033-05-18T03:33:20+00:00"
    assert interrupt["responseSchema"]["required"] == ["approved"]


def test_the_next_run_opens_the_step_again_and_says_only_what_is_new():
    place = StreamPosition(shown=frozenset({"g"}), answered=frozenset({"g"}), at=20.0)
    log = [*opening(TextPart("Wait."), call()), gate("g"), resolution("g"), started(), settled()]
    stream = events(run(place), [*log, StepStarted(turn=TURN, step=2), *ENDING])
    assert kinds(stream) == [
        "RUN_STARTED",
        "STEP_STARTED",
        "TOOL_CALL_RESULT",
        "STEP_FINISHED",
        "STEP_STARTED",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ]
    assert stream[-1]["outcome"] == {"type": "success"}


def test_a_tool_of_the_client_is_pending_and_no_interrupt():
    declared = ClientTool("mail", "", {"type": "object"})
    log = [*opening(call(), clients=(declared,)), started(), gate("g", kind="client")]
    assert events(run(), log)[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["t-1-1"]}
    log = [*opening(call()), started(), gate("g", kind="client")]  # nobody said that this client runs it
    assert events(run(), log)[-1]["outcome"]["type"] == "interrupt"


def test_a_form_and_a_result_are_asked_with_what_fits_them():
    form = gate("g", kind="form", form='{"type":"object"}')
    [interrupt] = events(run(), [*opening(call()), started(), form])[-1]["outcome"]["interrupts"]
    assert interrupt["responseSchema"]["properties"]["result"] == {"type": "object"}
    review = gate("g", kind="result", output=Output("secret"))
    [interrupt] = events(run(), [*opening(call()), started(), review])[-1]["outcome"]["interrupts"]
    assert (interrupt["reason"], interrupt["metadata"]["everturn"]["output"]) == ("tool_result", "secret")


def test_a_question_of_a_plugin_ends_the_run_when_the_turn_is_parked():
    question = gate("g", kind="question")
    question = replace(question, gate=replace(question.gate, call=""))
    log: list[Event] = [*opening(TextPart("Hi")), question]
    encoder = run()
    for event in log:
        encoder.feed(event)
    assert not encoder.is_done
    encoder.feed(TurnSuspended(turn=TURN, step=1))
    assert encoder.is_done


def test_a_step_that_is_begun_again_says_which_messages_are_void():
    seen: list[TurnItem] = [
        *opening()[:3],
        TextDelta(TURN, 3, 0, 0, "Hel"),
        StepRestarted(turn=TURN, step=1),
        TextDelta(TURN, 4, 0, 0, "Hello"),
        StepFinished(turn=TURN, step=1, parts=(TextPart("Hello"),), finish="stop"),
        *ENDING,
    ]
    stream = events(run(), seen)
    [void] = [event["value"]["void"] for event in stream if event.get("name") == "everturn.restarted"]
    assert void == {"messages": ["m.3.0"], "calls": []}


def test_calls_of_a_step_are_in_one_message():
    seen: list[TurnItem] = [*opening()[:3]]
    seen += [CallDelta(TURN, 3, at, 0, "{}", f"t-1-{at}", "mail") for at in (1, 2)]
    stream = events(run(), seen)
    assert {event["parentMessageId"] for event in stream if event["type"] == "TOOL_CALL_START"} == {"m.3"}


@pytest.mark.parametrize("why", ["drain", "slow", "revoked", "unshared", "lost"])
def test_what_is_cut_short_ends_in_an_error(why: str):
    encoder = run()
    for event in opening(TextPart("Hel")):
        encoder.feed(event)
    [error] = values(encoder.end(why))
    assert (error["type"], error["code"]) == ("RUN_ERROR", why)
    assert encoder.end(why) == b""


def runs_of(turn: list[Entry]) -> list[dict[str, Any]]:
    """The runs of a turn, each of which answers everything that the one before it asked."""
    runs: list[dict[str, Any]] = []
    place: StreamPosition | None = None
    resume: list[dict[str, Any]] | None = None
    while True:
        name = f"run-{len(runs)}"
        stream = encoded(AgUiEncoder("t", name, "s", "", place), shown(turn, lambda text: [*text] or [""]))
        runs.append({"text": stream.decode(), "runId": name, "resume": resume})
        interrupt_ids = {interrupt["id"] for interrupt in values(stream)[-1].get("outcome", {}).get("interrupts", [])}
        if not interrupt_ids:
            return runs
        resume = [
            {"interruptId": interrupt_id, "status": "resolved", "payload": {"approved": True}}
            for interrupt_id in sorted(interrupt_ids)
        ]
        place = StreamPosition(shown=frozenset(interrupt_ids), answered=frozenset(interrupt_ids), at=1.0)


@pytest.mark.live
@with_clients[1]
@with_clients[2]
def test_a_recorded_turn_is_in_the_client_what_it_is_in_the_log(tmp_path: Path):
    answers = play("run.mjs", [{"runs": runs_of(turn), "piece": 50} for turn in TURNS], tmp_path)
    for turn, answer in zip(TURNS, answers, strict=True):
        state = fold(entry.event for entry in turn)
        outcome = {"completed": "success", "error": "error", "cancelled": "cancelled"}[state.phase.value]
        assert answer["errors"] == []
        assert answer["outcomes"][-1]["type"] == outcome
        answers_ = [message for message in state.messages.values() if message.role == "assistant"]
        parts = [part for message in answers_ for part in message.parts]
        texts = [message.get("content") for message in answer["messages"] if message["role"] == "assistant"]
        assert [text for text in texts if text] == [part.text for part in parts if isinstance(part, TextPart)]
        thoughts = [message["content"] for message in answer["messages"] if message["role"] == "reasoning"]
        assert thoughts == [part.text for part in parts if isinstance(part, ReasoningPart)]
        results = {message["toolCallId"]: message for message in answer["messages"] if message["role"] == "tool"}
        calls = {
            tool["id"]: (tool["function"]["name"], tool["function"]["arguments"])
            for message in answer["messages"]
            for tool in message.get("toolCalls") or []
        }
        for part in parts:
            if isinstance(part, ToolPart) and part.output is not None:
                assert calls[part.call] == (part.name, part.arguments)
                assert results[part.call]["content"] == part.output.text
                assert results[part.call]["metadata"]["everturn"]["status"] == part.state
