"""What an editor is told about events: kinds, diffs, plans and stop reasons; and that the schema check can fail."""

from __future__ import annotations

import json
from typing import Any

import pytest
from acp import schema
from pydantic import ValidationError

from everturn.acp.connection import RpcError
from everturn.acp.permission_options import make_options
from everturn.acp.texts import get_acp_texts
from everturn.acp.tool_calls import describe_call, make_plan
from everturn.acp.updates import TurnOutcome, UpdateEncoder
from everturn.core.deltas import CallDelta, TextDelta
from everturn.core.events import (
    CallFinished,
    CallStarted,
    InputRefused,
    LimitReached,
    Problem,
    StepFinished,
    StepRestarted,
    StepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
)
from everturn.core.gates import Gate
from everturn.core.parts import Output, ToolPart
from everturn.core.rules.policy import Rule
from tests.helpers.acp_editor import strictly

TEXTS = get_acp_texts("en")
RULE = Rule("write_file", "allow", {"path": "a.md"})


def step(**fields: Any) -> StepFinished:
    arguments: dict[str, Any] = {"finish": "stop", **fields}
    return StepFinished(turn="t", step=1, parts=(), **arguments)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([step()], "end_turn"),
        ([step(finish="length")], "max_tokens"),
        ([step(finish="length", continues=True), step()], "end_turn"),
        ([step(finish="refusal")], "refusal"),
        ([step(finish="content_filter")], "refusal"),
        ([step(refused="guard")], "refusal"),
        ([InputRefused(turn="t", message="m", text="no")], "refusal"),
        ([StepStarted(turn="t", step=9, closing=True), step()], "max_turn_requests"),
        ([LimitReached(turn="t", limit="cost", scope="turn", text="")], "max_turn_requests"),
        ([LimitReached(turn="t", limit="tokens", scope="turn", text="")], "max_tokens"),
        ([LimitReached(turn="t", limit="denied", scope="turn", text="")], "cancelled"),
    ],
)
def test_the_stop_reason_of_a_turn(events: list[Any], expected: str) -> None:
    outcome = TurnOutcome()
    assert [outcome.feed(event) for event in events] == [None] * len(events)
    assert outcome.feed(TurnCompleted(turn="t")) == expected
    assert expected in schema.StopReason.__args__


def test_a_cancelled_turn_and_a_failed_one() -> None:
    assert TurnOutcome().feed(TurnCancelled(turn="t")) == "cancelled"
    failed = TurnOutcome().feed(TurnFailed(turn="t", problem=Problem("rate_limit", "too many")))
    assert isinstance(failed, RpcError)
    assert failed.encode() == {"code": -32603, "message": "too many", "data": {"kind": "rate_limit"}}


def test_a_call_has_a_kind_a_title_a_place_and_a_diff() -> None:
    arguments = json.dumps({"path": "a/../b.md", "old_text": "x", "new_text": "y"})
    fields = describe_call("edit_file", arguments, "/work")
    assert fields["title"] == "edit_file a/../b.md"
    assert fields["locations"] == [{"path": "/work/b.md"}]
    assert fields["content"] == [{"type": "diff", "path": "/work/b.md", "oldText": "x", "newText": "y"}]
    assert describe_call("mine", "not JSON", "/work") == {"title": "mine", "kind": "other", "rawInput": {}}
    assert describe_call("run_shell", '{"command": "ls\\n-l"}', "/work")["title"] == "run_shell ls -l"
    assert len(describe_call("run_shell", json.dumps({"command": "x" * 999}), "")["title"]) == 120


def test_a_call_of_write_todos_is_a_plan_and_no_other_call_is() -> None:
    todos = [{"content": "look", "status": "completed"}, {"content": "fix", "status": "in_progress"}]
    arguments = json.dumps({"todos": todos})
    assert make_plan("write_todos", arguments) == [
        {"content": "look", "priority": "medium", "status": "completed"},
        {"content": "fix", "priority": "medium", "status": "in_progress"},
    ]
    assert make_plan("other_tool", arguments) is None
    for other in ({"todos": ["x"]}, {"todos": [{"content": "x", "status": "?"}]}, {"path": "x"}):
        assert make_plan("write_todos", json.dumps(other)) is None


def test_a_call_is_announced_once_and_its_result_keeps_the_diff() -> None:
    encoder = UpdateEncoder("/work", TEXTS)
    arguments = '{"path": "b.md", "content": "y"}'
    items: list[Any] = [
        CallDelta("t", 1, 0, 0, "", "c1", "write_file"),
        CallDelta("t", 1, 0, 0, arguments, "c1", "write_file"),
        StepFinished(turn="t", step=1, parts=(ToolPart("c1", "write_file", arguments),), finish="tool_calls"),
        CallStarted(turn="t", call="c1", tool="write_file", arguments=arguments, hash="", key=""),
        CallFinished(turn="t", call="c1", state="completed", output=Output("written")),
    ]
    sent = [update for item in items for update in encoder.encode(item, is_own=True)]
    assert [update["sessionUpdate"] for update in sent] == ["tool_call", *["tool_call_update"] * 3]
    assert [update["status"] for update in sent] == ["pending", "pending", "in_progress", "completed"]
    assert [part["type"] for part in sent[-1]["content"]] == ["diff", "content"]
    for update in sent:
        strictly(schema.SessionNotification, {"sessionId": "s", "update": update})


def test_a_step_that_starts_again_is_said_only_if_something_was_shown() -> None:
    encoder = UpdateEncoder("/work", TEXTS)
    again = StepRestarted(turn="t", step=1)
    assert list(encoder.encode(again, is_own=True)) == []
    list(encoder.encode(TextDelta("t", 1, 0, 0, "par"), is_own=True))
    (update,) = encoder.encode(again, is_own=True)
    assert update["content"]["text"] == TEXTS.restarted


@pytest.mark.parametrize(
    ("gate", "reply"),
    [
        (
            Gate("g", "t", "c", "write_file", "{}", "h", offers=(RULE,), folder="/work"),
            {"everywhere": True, "within": "folder"},
        ),
        (Gate("g", "t", "c", "write_file", "{}", "h", offers=(RULE,)), {}),
        (Gate("g", "t", "c", "write_file", "{}", "h", offers=(RULE,), folder="/work", session_only=True), {}),
    ],
)
def test_always_is_one_of_the_offers_and_for_the_folder_at_most(gate: Gate, reply: dict[str, Any]) -> None:
    options, replies = make_options(gate, TEXTS)
    assert [option["kind"] for option in options] == ["allow_once", "allow_always", "reject_once"]
    assert replies["allow_always_0"] == {"allow": RULE, **reply}
    assert replies["reject_once"] == {"deny": True}


def test_without_an_offer_there_is_no_always() -> None:
    options, _ = make_options(Gate("g", "t", "c", "shout", "{}", "h"), TEXTS)
    assert [option["kind"] for option in options] == ["allow_once", "reject_once"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "done"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "locations": [{"file": "x"}]},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text"}},
        {"sessionUpdate": "no_such_update"},
        {"sessionUpdate": "plan", "entries": [{"content": "x", "priority": "top", "status": "pending"}]},
    ],
)
def test_the_check_against_the_schema_catches_what_is_wrong(wrong: dict[str, Any]) -> None:
    with pytest.raises((ValidationError, AssertionError)):
        strictly(schema.SessionNotification, {"sessionId": "s", "update": wrong})
