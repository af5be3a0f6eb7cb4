"""What an answer looks like in each format, and when its bytes leave."""

import json
from typing import Any

import pytest
from inline_snapshot import snapshot

from everturn.testing.provider import Call, Hang, Item, Pause, Redacted, Refuse, Say, Think
from everturn.testing.provider.answers import Answer
from everturn.testing.provider.faults import Format
from everturn.testing.provider.library import ScriptLibrary
from everturn.testing.provider.script import Script, split

BODIES: dict[Format, dict[str, Any]] = {
    "chat": {"stream_options": {"include_usage": True}},
    "messages": {"thinking": {"type": "adaptive"}},
    "responses": {"include": ["reasoning.encrypted_content"]},
}
ITEMS = [Think("let me see"), Redacted(), Say("hello there"), Call("read", '{"a": 1}'), Call("read", id="mine")]


def answer(format: Format, *items: Item, pace: float = 0.0) -> Answer:
    library = ScriptLibrary()
    library.add("m", Script((items,), pace))
    return library.answer(*library.find(format, "m"), format, "m", BODIES[format])


def events(format: Format, *items: Item) -> list[dict[str, Any]]:
    [sent] = answer(format, *items).moves
    assert isinstance(sent, bytes)
    return [json.loads(line[6:]) for line in sent.decode().split("\n") if line.startswith("data: {")]


def test_a_chunk_of_chat():
    first, delta, *_ = events("chat", Say("hi"))
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
    assert delta == snapshot(
        {
            "id": "chatcmpl-QBsRL3X8bYO8bP636PoZVsYcaOGAi",
            "object": "chat.completion.chunk",
            "created": 1790000000,
            "model": "m",
            "service_tier": "default",
            "system_fingerprint": "fp_50cad350e4",
            "choices": [{"index": 0, "delta": {"content": "hi"}, "logprobs": None, "finish_reason": None}],
            "usage": None,
        }
    )


def test_mistral_tells_its_usage_unasked_with_the_finish():
    library = ScriptLibrary()
    library.add("m", Script(([Say("hi")],)))
    [sent] = library.answer(*library.find("chat", "mistral-m"), "chat", "mistral-m", {}).moves
    assert isinstance(sent, bytes)
    last = json.loads(sent.split(b"data: ")[-2].split(b"\n")[0])
    assert (last["choices"][0]["finish_reason"], last["usage"]["total_tokens"]) == ("stop", 300)


def test_the_deltas_of_chat():
    assert [c["delta"] for event in events("chat", *ITEMS) for c in event["choices"]] == snapshot(
        [
            {"role": "assistant", "content": None, "reasoning_content": ""},
            {"content": None, "reasoning_content": "let "},
            {"content": None, "reasoning_content": "me "},
            {"content": None, "reasoning_content": "see"},
            {"content": "hello "},
            {"content": "there"},
            {
                "tool_calls": [
                    {
                        "index": 0,
                        "id": "call_izeMcH1QuF9Ws4vbkBjqMivY",
                        "type": "function",
                        "function": {"name": "read", "arguments": ""},
                    }
                ]
            },
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]},
            {
                "tool_calls": [
                    {"index": 1, "id": "mine", "type": "function", "function": {"name": "read", "arguments": ""}}
                ]
            },
            {"tool_calls": [{"index": 1, "function": {"arguments": "{"}}]},
            {"tool_calls": [{"index": 1, "function": {"arguments": "}"}}]},
            {},
        ]
    )


def test_the_events_of_messages():
    shown = [{**event, "message": "…"} if "message" in event else event for event in events("messages", *ITEMS)]
    assert shown == snapshot(
        [
            {"type": "message_start", "message": "…"},
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "thinking", "thinking": "", "signature": ""},
            },
            {"type": "ping"},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "let "}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "me "}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "see"}},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {
                    "type": "signature_delta",
                    "signature": "sig-f121a6ddd989e44ecd47d44e88ce809d345e8b082b6d8e89f6bac2100a343282",
                },
            },
            {"type": "content_block_stop", "index": 0},
            {
                "type": "content_block_start",
                "index": 1,
                "content_block": {
                    "type": "redacted_thinking",
                    "data": "red-1ad2596afad446a3-2db9e47e2b5546e2b843e743a74b1d8828b594c8c0e1aee246b5eaeb93d380a2",
                },
            },
            {"type": "content_block_stop", "index": 1},
            {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "hello "}},
            {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "there"}},
            {"type": "content_block_stop", "index": 2},
            {
                "type": "content_block_start",
                "index": 3,
                "content_block": {
                    "type": "tool_use",
                    "id": "toolu_01bKZGnwHsys4YujfnmI4YpB",
                    "name": "read",
                    "input": {},
                },
            },
            {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": ""}},
            {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
            {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": ": 1}"}},
            {"type": "content_block_stop", "index": 3},
            {
                "type": "content_block_start",
                "index": 4,
                "content_block": {"type": "tool_use", "id": "mine", "name": "read", "input": {}},
            },
            {"type": "content_block_delta", "index": 4, "delta": {"type": "input_json_delta", "partial_json": ""}},
            {"type": "content_block_delta", "index": 4, "delta": {"type": "input_json_delta", "partial_json": "{"}},
            {"type": "content_block_delta", "index": 4, "delta": {"type": "input_json_delta", "partial_json": "}"}},
            {"type": "content_block_stop", "index": 4},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "tool_use", "stop_sequence": None},
                "usage": {
                    "input_tokens": 100,
                    "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 0,
                    "output_tokens": 200,
                },
            },
            {"type": "message_stop"},
        ]
    )


def test_the_events_of_responses():
    assert [event["type"] for event in events("responses", *ITEMS, Refuse("no"))] == snapshot(
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.refusal.delta",
            "response.refusal.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    )


def test_the_output_of_responses():
    assert events("responses", *ITEMS)[-1]["response"]["output"] == snapshot(
        [
            {
                "id": "rs_iqlIYYREvZuPtIQ1fg6zR3Ta4AvwM6N2zaulAnJjL1j27WWc",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "let me see"}],
                "encrypted_content": "enc-d81429973d41be7b-aa1eda81598357b8dc0013a02c01d0198dd5d9a5c64cee7de22981e31f108adb",
            },
            {
                "id": "rs_EQU23oaMFggF4UwJS775QCydVIcueOeBrxU9nCT3DdbLUtKn",
                "type": "reasoning",
                "summary": [],
                "encrypted_content": "enc-70d344d4d52dc3cb-0d0dc03462ea521e2c72e6476be644403c67916ffef0fbc77078fa9b2ae260ff",
            },
            {
                "id": "msg_oqIRoSGwhDM4upDyVty0hcoYhvGFDqLBxUMMv7n7Q0Wodteh",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "hello there"}],
            },
            {
                "id": "fc_46azoqaQR9g06GLvJOwTBeoyuoQHKRE6Q6VUZakUZJX2Cbrx",
                "type": "function_call",
                "status": "completed",
                "arguments": '{"a": 1}',
                "call_id": "call_Ezs63c4Mbs5JyYlijsAP67YW",
                "name": "read",
            },
            {
                "id": "fc_roZH5DmA68IjUBTeZ393bKqYlb6Xa56BNglgNucS7vnZPUFB",
                "type": "function_call",
                "status": "completed",
                "arguments": "{}",
                "call_id": "mine",
                "name": "read",
            },
        ]
    )


@pytest.mark.parametrize("format", BODIES)
def test_an_answer_without_a_pace_is_one_write(format: Format):
    assert len(answer(format, *ITEMS).moves) == 1


@pytest.mark.parametrize("format", BODIES)
def test_a_paced_answer_waits_in_front_of_every_chunk_but_the_first(format: Format):
    first, *rest = answer(format, Say("one two three"), pace=0.5).moves
    assert isinstance(first, bytes)
    assert first.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"one " in first
    assert b"two " not in first
    assert rest[::2] == [0.5] * (len(rest) // 2)
    second, third, *_, last = [move for move in rest if isinstance(move, bytes)]
    assert b"two " in second
    assert b"three" in third
    assert last.endswith(b"0\r\n\r\n")


def test_a_pause_parts_what_is_said_and_not_the_block():
    first, seconds, last = answer("messages", Say("one"), Pause(2), Say("two")).moves
    assert isinstance(first, bytes)
    assert isinstance(last, bytes)
    assert (seconds, (first + last).count(b"content_block_start\n")) == (2, 1)


def test_a_hang_is_an_answer_without_an_end():
    hanging = answer("chat", Say("one"), Hang())
    [sent] = hanging.moves
    assert isinstance(sent, bytes)
    assert (hanging.end, sent.endswith(b"0\r\n\r\n")) == ("hang", False)


def test_text_is_split_into_words_or_pieces():
    assert split("a bc  d", 0) == ["a ", "bc ", " ", "d"]
    assert split("abcdefg", 3) == ["abc", "def", "g"]
    assert split("ab", 5) == ["a", "b"]
    assert split("", 2) == split("", 0) == []
