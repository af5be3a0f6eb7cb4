"""Scripts: which step answers a request, and what can happen in one."""

import json
from typing import Any

import pytest
from tests.testing.test_provider_http import PATHS, VERSION, Reply, ask, chat, connect, send, text_of, wire

from everturn.testing.provider import (
    Call,
    Cut,
    CutAt,
    Finish,
    InBandError,
    Pause,
    Provider,
    Raw,
    Redacted,
    Refuse,
    Say,
    ScriptedUsage,
    Status,
    Step,
    Think,
)

USER = {"role": "user", "content": "hi"}
CHAT_TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
LOOKUP = [{"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}]


def calls_of(reply: Reply) -> list[dict[str, Any]]:
    """The calls of a chat stream, put together as a client would."""
    calls: list[dict[str, Any]] = []
    for event in reply.events:
        for choice in event["choices"]:
            for delta in choice["delta"].get("tool_calls", ()):
                if delta["index"] == len(calls):
                    calls.append(delta)
                else:
                    calls[delta["index"]]["function"]["arguments"] += delta["function"]["arguments"]
    return [{"id": c["id"], "type": "function", "function": c["function"]} for c in calls]


def answered(reply: Reply, **fields: Any) -> list[dict[str, Any]]:
    """A chat stream as it comes back in the next request, its calls answered."""
    calls = calls_of(reply)
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
    return [{"role": "assistant", "content": text_of(reply) or None, "tool_calls": calls, **fields}, *results]


# ----------------------------------------------------------------------------------------- which step it is


async def test_the_step_is_read_off_the_request_so_asking_again_gives_the_same_answer():
    async with Provider() as provider:
        provider.script("m", [[Call("read", '{"a": 1}')], [Call("read", '{"a": 2}')], [Say("done")]])
        history: list[dict[str, Any]] = [USER]
        for expected in ('{"a": 1}', '{"a": 2}'):
            first, again = [await ask(provider, "chat", chat(*history, tools=CHAT_TOOLS)) for _ in range(2)]
            assert first.body == again.body
            assert [call["function"]["arguments"] for call in calls_of(first)] == [expected]
            history += answered(first)
        last, beyond = [await ask(provider, "chat", chat(*history, tools=CHAT_TOOLS)) for _ in range(2)]
        assert text_of(last) == text_of(beyond) == "done"
        assert provider.refusals == []


async def test_a_new_input_begins_the_script_again_with_new_ids():
    async with Provider() as provider:
        for model in ("tool1", "mistral-tool1", "kimi-tool1"):
            history: list[dict[str, Any]] = [USER]
            ids: list[str] = []
            for _ in range(3):
                reply = await ask(provider, "chat", chat(*history, model=model, tools=LOOKUP))
                ids += [call["id"] for call in calls_of(reply)]
                history += [*answered(reply, reasoning_content="hm"), {"role": "assistant", "content": "ok"}, USER]
            assert len(set(ids)) == 3
            # Even if a part of the conversation has been left out since.
            cut = [*history[5:], USER]
            reply = await ask(provider, "chat", chat(USER, *cut, model=model, tools=LOOKUP))
            assert calls_of(reply)[0]["id"] not in ids[1:]
        assert provider.refusals == []


async def test_a_sequence_gives_one_step_per_request():
    async with Provider() as provider:
        steps: list[Step] = [[Status(500)], [Status(429, headers={"Retry-After": "0"})], [Say("ok")]]
        provider.script("m", steps, sequence=True)
        replies = [await ask(provider, "chat", chat()) for _ in range(4)]
        assert [reply.status for reply in replies] == [500, 429, 200, 200]
        assert replies[1].headers["retry-after"] == "0"
        assert replies[1].json["error"]["code"] == "rate_limit_exceeded"
        assert [seen.status for seen in provider.seen] == [500, 429, 200, 200]
        provider.reset()
        assert provider.seen == []


async def test_a_step_may_be_a_function_of_the_request():
    async with Provider() as provider:
        provider.script("m", [lambda body: [Say(body["messages"][-1]["content"].upper())]])
        assert text_of(await ask(provider, "chat", chat({"role": "user", "content": "hello"}))) == "HELLO"
        assert text_of(await ask(provider, "chat", chat({"role": "user", "content": "bye"}))) == "BYE"
        provider.script("m", [lambda body: body["nothing"]])
        reply = await ask(provider, "chat", chat())
        assert (reply.status, reply.json["error"]["message"]) == (
            500,
            "The script of this model failed: KeyError('nothing')",
        )


async def test_a_script_is_checked_when_it_is_given():
    provider = Provider()
    with pytest.raises(TypeError, match="a step is a list of items"):
        provider.script("m", [Say("flat")])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="at least one step"):
        provider.script("m", [])


async def test_an_unknown_model_is_not_found_in_the_words_of_each_provider():
    async with Provider() as provider:
        for format in ("chat", "responses"):
            reply = await ask(provider, format, chat(model="gpt-6"))
            assert (reply.status, reply.json["error"]["code"]) == (404, "model_not_found")
        reply = await ask(provider, "messages", chat(model="plain-x"))
        assert reply.status == 404
        assert reply.json["error"] == {"type": "not_found_error", "message": "model: plain-x"}
        assert provider.refusals == []


async def test_a_family_may_stand_in_front_of_a_script_and_a_full_name_comes_first():
    async with Provider() as provider:
        provider.script("mine", [[Say("rest")]])
        assert text_of(await ask(provider, "chat", chat(model="alternate-mine"))) == "rest"
        provider.script("alternate-mine", [[Say("full")]])
        assert text_of(await ask(provider, "chat", chat(model="alternate-mine"))) == "full"
        assert (await ask(provider, "chat", chat(model="alternate-mine", messages=[USER, USER]))).status == 400
        assert len(text_of(await ask(provider, "chat", chat(model="gpt-5.2-plain-n3")))) == 60


@pytest.mark.parametrize(
    ("model", "chars", "call_count", "chunks", "requests"),
    [
        ("plain", 10_000, 0, 500, 1),
        ("plain-n10-p1", 200, 0, 10, 1),
        ("tool1", 1000, 1, 61, 2),
        ("agent", 2000, 15, 265, 6),
        ("longargs-n100", 1000, 1, 151, 2),
    ],
)
async def test_the_built_in_models(model: str, chars: int, call_count: int, chunks: int, requests: int):
    tools = [*LOOKUP, {"type": "function", "function": {"name": "write_file"}}]
    async with Provider() as provider:
        history: list[dict[str, Any]] = [USER]
        seen = {"chars": 0, "made": 0, "chunks": 0}
        for _ in range(requests):
            reply = await ask(provider, "chat", chat(*history, model=model, tools=tools))
            deltas = [choice["delta"] for event in reply.events for choice in event["choices"]]
            seen["chars"] += len(text_of(reply))
            seen["made"] += len(calls_of(reply))
            seen["chunks"] += sum(bool(delta.get("content") or delta.get("tool_calls")) for delta in deltas)
            history += answered(reply) if calls_of(reply) else []
        assert seen == {"chars": chars, "made": call_count, "chunks": chunks}
        assert provider.refusals == []


# -------------------------------------------------------------------------------------- what can go wrong


async def test_a_cut_closes_the_connection_behind_what_was_said():
    async with Provider() as provider:
        provider.script("m", [[Say("one two"), Cut(), Say("three")]])
        reply = await ask(provider, "chat", chat())
        assert (text_of(reply), reply.is_whole) == ("one two", False)
        await provider.wait_idle()
        assert not provider.seen[0].is_closed_early


async def test_a_cut_in_front_of_everything_says_nothing_at_all():
    async with Provider() as provider:
        provider.script("m", [[Cut()]])
        for format in PATHS:
            body = chat(max_tokens=9) if format != "responses" else {"model": "m", "stream": True, "input": "hi"}
            async with connect(provider.url) as (reader, writer):
                writer.write(wire(PATHS[format], body))
                assert await reader.read() == b""


async def test_a_stream_can_be_cut_at_every_byte():
    async with Provider() as provider:
        provider.script("m", [[Say("a b"), Call("read")]])
        whole = (await ask(provider, "chat", chat())).body
        for size in [*range(0, len(whole), 97), len(whole), len(whole) + 1]:
            provider.script("m", [[Say("a b"), CutAt(size), Call("read")]])
            reply = await ask(provider, "chat", chat())
            assert (reply.body, reply.is_whole) == (whole[:size], False)


async def test_raw_bytes_are_sent_as_they_are():
    async with Provider() as provider:
        provider.script("m", [[Raw(b"data: \xff", content_type="text/plain"), Pause(0.001), Raw(b"\r\r"), Raw(b"")]])
        reply = await ask(provider, "chat", chat())
        assert (reply.headers["content-type"], reply.chunks) == ("text/plain", [b"data: \xff", b"\r\r"])
        provider.script("m", [[Raw(b"one"), Cut(), Raw(b"two")]])
        reply = await ask(provider, "chat", chat())
        assert (reply.body, reply.is_whole) == (b"one", False)


async def test_a_status_is_the_whole_answer():
    async with Provider() as provider:
        provider.script("m", [[Pause(0.001), Status(503, "<html>busy</html>", {"content-type": "text/html"})]])
        reply = await ask(provider, "chat", chat())
        assert (reply.status, reply.body, reply.headers["content-type"]) == (503, b"<html>busy</html>", "text/html")
        provider.script("m", [[Status(529)]])
        reply = await ask(provider, "messages", chat(max_tokens=9))
        assert (reply.status, reply.json["error"]) == (529, {"type": "overloaded_error", "message": "Overloaded"})
        assert provider.refusals == []


async def test_an_error_comes_in_the_stream_as_each_format_has_it():
    async with Provider() as provider:
        provider.script("m", [[Say("well"), InBandError("busy", "rate_limit_exceeded", ""), Say("never")]])
        in_chat = await ask(provider, "chat", chat())
        assert in_chat.events[-1]["error"] == {
            "message": "busy",
            "type": "server_error",
            "param": None,
            "code": "rate_limit_exceeded",
        }
        assert b"[DONE]" not in in_chat.body
        in_messages = await ask(provider, "messages", chat(max_tokens=9))
        assert in_messages.events[-1]["error"] == {"type": "overloaded_error", "message": "busy"}
        assert b"event: error\n" in in_messages.body
        in_responses = await ask(provider, "responses", {"model": "m", "stream": True, "input": "hi"})
        last = in_responses.events[-1]
        assert last["type"] == "response.failed"
        assert last["response"]["error"] == {"code": "rate_limit_exceeded", "message": "busy"}
        provider.script("m", [[InBandError("busy", "x", "error")]])
        in_responses = await ask(provider, "responses", {"model": "m", "stream": True, "input": "hi"})
        assert in_responses.events[-1] | {"sequence_number": 0} == {
            "type": "error",
            "sequence_number": 0,
            "code": "x",
            "message": "busy",
            "param": None,
        }
        assert all(reply.is_whole for reply in (in_chat, in_messages, in_responses))


@pytest.mark.parametrize("format", PATHS)
async def test_a_pace_changes_when_and_not_what(format: str):
    async with Provider() as provider:
        body = {"model": "m", "stream": True, "input": "hi"} if format == "responses" else chat(max_tokens=9)
        provider.script("m", [[Say("one two three"), Call("read"), Call("read")]])
        at_once = await ask(provider, format, body)
        provider.script("m", [[Say("one two three"), Call("read"), Call("read")]], pace=0.0005)
        assert (await ask(provider, format, body)).chunks == at_once.chunks


# ------------------------------------------------------------------------------------------------ refusals


async def test_a_refusal_is_a_400_that_says_why():
    async with Provider() as provider:
        [bad] = await send(provider, wire(PATHS["chat"], b'{"model": "plain", "x": "\xff"}'))
        assert (bad.status, bad.json["error"]["type"]) == (400, "invalid_request_error")
        [bad] = await send(provider, wire(PATHS["messages"], b"[1]"))
        assert bad.json["error"]["message"] == "The request body is not valid JSON: expected an object"
        empty = await ask(provider, "chat", chat(model="plain", messages=[]))
        assert empty.json["error"] == {
            "message": "Invalid 'messages': empty array. Expected an array with minimum length 1, "
            "but got an empty array instead.",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "empty_array",
        }
        no_model = [await ask(provider, format, {"stream": True}) for format in PATHS]
        assert [reply.status for reply in no_model] == [400, 400, 400]
        flat = await ask(provider, "chat", chat(model="mistral-plain", stream_options={}))
        assert (flat.json["object"], flat.json["code"]) == ("error", "3051")
        assert len(provider.refusals) == 7
        assert provider.refusals[-1] == flat.json["message"]
        assert provider.seen[-1].status == 400


async def test_a_lax_provider_serves_what_has_a_model():
    async with Provider(strict=False) as provider:
        for format in PATHS:
            body = {"model": "plain-n1", "messages": "nonsense", "input": [1, {"type": 2}], "tools": 3}
            assert (await ask(provider, format, body, {})).status == 200


async def test_what_was_seen_is_kept_with_its_headers():
    async with Provider() as provider:
        await ask(provider, "chat", chat(model="plain-n1"), {"X-Trace": "7", **VERSION})
        [seen] = provider.seen
        assert (seen.format, seen.model, seen.headers["x-trace"]) == ("chat", "plain-n1", "7")
        assert seen.body["messages"] == [USER]


# -------------------------------------------------------------------- what was sent comes back, and is taken


async def test_a_turn_in_messages_with_thinking_is_taken_back_and_nothing_else_is():
    async with Provider() as provider:
        provider.script("m", [[Think("hm hm"), Redacted(), Call("read", '{"a": 1}')], [Say("done")]])
        body: dict[str, Any] = {
            "model": "m",
            "stream": True,
            "max_tokens": 2000,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "tools": [{"name": "read", "input_schema": {"type": "object"}}],
        }
        reply = await ask(provider, "messages", {**body, "messages": [USER]})
        blocks = blocks_of(reply)
        assert [block["type"] for block in blocks] == ["thinking", "redacted_thinking", "tool_use"]
        result = {"type": "tool_result", "tool_use_id": blocks[2]["id"], "content": "ok"}
        back = [USER, {"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]
        assert (await ask(provider, "messages", {**body, "messages": back})).status == 200
        back[1] = {"role": "assistant", "content": blocks[2:]}
        await ask(provider, "messages", {**body, "messages": back})
        back[1] = {"role": "assistant", "content": [{**blocks[0], "thinking": "hm"}, *blocks[1:]]}
        await ask(provider, "messages", {**body, "messages": back})
        back[1] = {"role": "assistant", "content": blocks}
        await ask(provider, "messages", {**body, "model": "plain", "messages": back})
        assert [text[:70] for text in provider.refusals] == [
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`,",
            "messages.1.content.0: Invalid `signature` in `thinking` block",
            "messages.1.content.0: Invalid `signature` in `thinking` block",
        ]


async def test_a_model_that_thinks_never_calls_without_a_thought():
    async with Provider() as provider:
        tools = [{"name": "lookup", "input_schema": {"type": "object"}}]
        body = chat(model="tool1", max_tokens=2000, thinking={"type": "adaptive"}, tools=tools)
        blocks = blocks_of(await ask(provider, "messages", body))
        assert [block["type"] for block in blocks] == ["thinking", "tool_use"]
        plain = await ask(provider, "messages", {**body, "thinking": {"type": "disabled"}})
        assert [block["type"] for block in blocks_of(plain)] == ["tool_use"]


def blocks_of(reply: Reply) -> list[dict[str, Any]]:
    """The content blocks of a messages stream, put together as a client would."""
    blocks: list[dict[str, Any]] = []
    arguments: dict[int, str] = {}
    for event in reply.events:
        if event["type"] == "content_block_start":
            blocks.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            if delta["type"] == "input_json_delta":
                arguments[event["index"]] = arguments.get(event["index"], "") + delta["partial_json"]
                continue
            word = delta["type"].removesuffix("_delta")
            block[word] += delta[word]
    for index, text in arguments.items():
        blocks[index]["input"] = json.loads(text)
    return blocks


async def test_a_turn_in_responses_with_reasoning_is_taken_back_and_nothing_else_is():
    async with Provider() as provider:
        provider.script("m", [[Think("hm"), Redacted(), Call("read"), Call("read")], [Say("done")]])
        body: dict[str, Any] = {
            "model": "m",
            "stream": True,
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}],
        }
        reply = await ask(provider, "responses", {**body, "input": [USER]})
        output: list[dict[str, Any]] = reply.events[-1]["response"]["output"]
        assert [item["type"] for item in output] == ["reasoning", "reasoning", "function_call", "function_call"]
        calls = [item["call_id"] for item in output[2:]]
        results = [{"type": "function_call_output", "call_id": call, "output": "ok"} for call in calls]
        bare = [{name: value for name, value in item.items() if name != "id"} for item in output]
        last = await ask(provider, "responses", {**body, "input": [USER, *bare, *results]})
        assert last.events[-1]["response"]["output"][0]["content"][0]["text"] == "done"
        await ask(provider, "responses", {**body, "input": [USER, *output, *results]})
        await ask(provider, "responses", {**body, "input": [USER, *bare, *results[:1]]})
        await ask(provider, "responses", {**body, "model": "plain", "input": [USER, *bare, *results]})
        sealed: str = bare[0]["encrypted_content"]
        assert [text.partition(".")[0] for text in provider.refusals] == [
            f"Item with id '{output[0]['id']}' not found",
            f"No tool output found for function call {calls[1]}",
            f"The encrypted content {sealed[:4]}",
        ]


async def test_encrypted_reasoning_is_sent_only_if_it_was_asked_for():
    async with Provider() as provider:
        provider.script("m", [[Think("hm"), Say("so")]])
        body: dict[str, Any] = {"model": "m", "stream": True, "input": "hi"}
        assert b"encrypted_content" not in (await ask(provider, "responses", body)).body
        body["include"] = ["reasoning.encrypted_content"]
        assert b"encrypted_content" in (await ask(provider, "responses", body)).body


@pytest.mark.parametrize(
    ("items", "in_chat", "in_messages", "in_responses"),
    [
        ([Say("a")], "stop", "end_turn", ("completed", None)),
        ([Call("read")], "tool_calls", "tool_use", ("completed", None)),
        ([Refuse("no")], "stop", "refusal", ("completed", None)),
        ([Say("a"), Finish("length")], "length", "max_tokens", ("incomplete", {"reason": "max_output_tokens"})),
        ([Finish("content_filter")], "content_filter", "refusal", ("incomplete", {"reason": "content_filter"})),
        ([Call("read"), Finish("stop")], "stop", "end_turn", ("completed", None)),
    ],
)
async def test_the_end_of_an_answer(items: list[Any], in_chat: str, in_messages: str, in_responses: tuple[str, Any]):
    async with Provider() as provider:
        provider.script("m", [[*items, ScriptedUsage(input=50, output=7, cached=20, reasoning=3, written=10)]])
        reply = await ask(provider, "chat", chat(stream_options={"include_usage": True}))
        assert reply.events[-2]["choices"][0]["finish_reason"] == in_chat
        usage = reply.events[-1]["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (50, 7, 57)
        assert usage["prompt_tokens_details"]["cached_tokens"] == 20
        reply = await ask(provider, "messages", chat(max_tokens=9))
        assert reply.events[-2]["delta"]["stop_reason"] == in_messages
        assert reply.events[-2]["usage"] == {
            "input_tokens": 20,
            "cache_creation_input_tokens": 10,
            "cache_read_input_tokens": 20,
            "output_tokens": 7,
        }
        reply = await ask(provider, "responses", {"model": "m", "stream": True, "input": "hi"})
        last = reply.events[-1]["response"]
        assert reply.events[-1]["type"] == f"response.{in_responses[0]}"
        assert (last["status"], last["incomplete_details"]) == in_responses
        assert (last["usage"]["input_tokens"], last["usage"]["output_tokens_details"]) == (50, {"reasoning_tokens": 3})
        assert [event["sequence_number"] for event in reply.events] == list(range(len(reply.events)))
