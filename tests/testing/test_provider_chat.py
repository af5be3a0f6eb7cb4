"""What the provider refuses in the chat format, and the nearest thing to it that it takes."""

from typing import Any

import pytest
from tests.testing.provider_rules import Rule

from everturn.testing.provider.faults import Refused
from everturn.testing.provider.strict.request import check

Json = dict[str, Any]

SCHEMA: Json = {"type": "object", "properties": {"path": {"type": "string"}}}
USER: Json = {"role": "user", "content": "hi"}
SAID: Json = {"role": "assistant", "content": "hello"}


def function(name: Any = "read", parameters: Any = SCHEMA, **fields: Any) -> Json:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **fields}}


def call(id: Any = "call_1", name: Any = "read", arguments: Any = "{}", **fields: Any) -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **fields}


def calling(*calls: Json, **fields: Any) -> Json:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **fields}


def result(id: Any = "call_1", content: Any = "ok") -> Json:
    return {"role": "tool", "tool_call_id": id, "content": content}


def chat(*messages: Any, **fields: Any) -> Json:
    return {"model": "m", "stream": True, "messages": list(messages) or [USER], **fields}


def user(*parts: Any) -> Json:
    return chat({"role": "user", "content": list(parts)})


def called(*calls: Json) -> Json:
    """A request in which these calls were made and answered."""
    return chat(USER, calling(*calls), *(result(call["id"]) for call in calls))


URL = {"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}
PART = {"type": "text", "text": "hi"}

RULES = [
    Rule("the answer is streamed", chat(stream=False), "'stream' must be true", chat()),
    Rule("fields are known", chat(fast=1), "Unknown parameter: 'fast'.", chat(seed=1, stream_options={})),
    # tools
    Rule("a tool has a type", chat(tools=[{}]), "'tools[0].type'", chat(tools=[function()])),
    Rule("a tool is a function", chat(tools=[{"type": "x"}]), "Invalid value: 'x'", chat(tools=[function()])),
    Rule(
        "a function has a name",
        chat(tools=[function(None)]),
        "Missing required parameter: 'tools[0].function.name'",
        chat(tools=[function("a-B_9")]),
    ),
    Rule("a name is plain", chat(tools=[function("a.b")]), "'^[a-zA-Z0-9_-]+$'", chat(tools=[function("a_b")])),
    Rule("a name is short", chat(tools=[function("a" * 65)]), "maximum length 64", chat(tools=[function("a" * 64)])),
    Rule(
        "names are unique",
        chat(tools=[function(), function()]),
        "Tool names must be unique",
        chat(tools=[function(), function("write")]),
    ),
    Rule(
        "a schema is of an object",
        chat(tools=[function(parameters={"type": "string"})]),
        "Invalid schema for function 'read': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"string\"'.",
        chat(tools=[function(parameters=None)]),
    ),
    Rule(
        "a schema says its type",
        chat(tools=[function(parameters={})]),
        "got 'type: None'",
        chat(tools=[function(parameters={"type": "object"})]),
    ),
    *(
        Rule(
            f"a schema has no {word} at its root",
            chat(tools=[function(parameters={**SCHEMA, word: []})]),
            "at the top level",
            chat(tools=[function(parameters={"type": "object", "properties": {"a": {word: []}}})]),
        )
        for word in ("anyOf", "oneOf", "allOf", "enum", "not")
    ),
    Rule(
        "a strict schema is closed",
        chat(tools=[function(strict=True)]),
        "'additionalProperties' is required",
        chat(tools=[function(parameters={"type": "object", "additionalProperties": False}, strict=True)]),
    ),
    Rule(
        "a strict schema requires everything",
        chat(tools=[function(parameters={**SCHEMA, "additionalProperties": False}, strict=True)]),
        "Missing 'path'",
        chat(tools=[function(parameters={**SCHEMA, "additionalProperties": False, "required": ["path"]}, strict=True)]),
    ),
    Rule("tools are not empty", chat(tools=[]), "Invalid 'tools': empty array", chat()),
    Rule("tools are an array", chat(tools={}), "expected an array of objects", chat(tools=None)),
    *(
        Rule(
            f"{word} comes with tools",
            chat(**{word: value}),
            f"'{word}' is only allowed when 'tools' are specified",
            chat(tools=[function()], **{word: value}),
        )
        for word, value in (("tool_choice", "auto"), ("parallel_tool_calls", False))
    ),
    # the rest of the body
    Rule(
        "there is one limit",
        chat(max_tokens=1, max_completion_tokens=1),
        "Setting 'max_tokens' and 'max_completion_tokens' at the same time",
        chat(max_tokens=1),
    ),
    Rule(
        "a format is known",
        chat(response_format={"type": "xml"}),
        "Invalid value: 'xml'",
        chat(response_format={"type": "json_object"}),
    ),
    Rule(
        "a schema format has a name",
        chat(response_format={"type": "json_schema", "json_schema": {"schema": {}}}),
        "'response_format.json_schema.name'",
        chat(response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}),
    ),
    Rule(
        "a schema format has a schema",
        chat(response_format={"type": "json_schema", "json_schema": {"name": "a"}}),
        "'response_format.json_schema.schema'",
        chat(response_format={"type": "text"}),
    ),
    # messages
    Rule("there are messages", chat(messages=None), "Missing required parameter: 'messages'", chat()),
    Rule("there is a message", chat(messages=[]), "Invalid 'messages': empty array", chat()),
    Rule("a message is an object", chat("hi"), "Invalid type for 'messages[0]': expected an object", chat()),
    Rule(
        "a message has a role", chat({"content": "a"}), "'messages[0].role'", chat({"role": "developer", "content": ""})
    ),
    Rule(
        "a role is known",
        chat({"role": "x", "content": "a"}),
        "Invalid value: 'x'",
        chat({"role": "system", "content": ""}),
    ),
    Rule("a user says something", chat({"role": "user"}), "expected a string, got null", chat()),
    Rule("content is text or parts", chat({"role": "user", "content": 1}), "one of a string or array", chat()),
    Rule("parts are not empty", user(), "Invalid 'messages[0].content': empty array", user(PART)),
    Rule("a part has a type", user({}), "'messages[0].content[0].type'", user(PART)),
    Rule("a part is known", user({"type": "video"}), "Invalid value: 'video'", user(PART)),
    Rule("a text part has text", user({"type": "text"}), "'messages[0].content[0].text'", user(PART)),
    Rule(
        "an image lies somewhere",
        user({"type": "image_url", "image_url": {"url": "file:///a.png"}}),
        "Invalid image URL",
        user(URL, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}),
    ),
    Rule(
        "an image is the user's",
        chat({"role": "system", "content": [URL]}),
        "only allowed for messages with role 'user'",
        user(URL),
    ),
    Rule(
        "audio is of two formats",
        user({"type": "input_audio", "input_audio": {"data": "AA==", "format": "ogg"}}),
        "Supported values are: 'wav' and 'mp3'",
        user({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}),
    ),
    Rule(
        "audio is the user's",
        chat(USER, {"role": "assistant", "content": [{"type": "input_audio", "input_audio": {}}]}),
        "Invalid value: 'input_audio'",
        chat(USER, {"role": "assistant", "content": [PART, {"type": "refusal", "refusal": "no"}]}, USER),
    ),
    Rule(
        "a file has a name",
        user({"type": "file", "file": {"file_data": "data:application/pdf;base64,AA=="}}),
        "'messages[0].content[0].file.filename'",
        user({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}}),
    ),
    # calls
    Rule(
        "an assistant says or calls something",
        chat(USER, {"role": "assistant", "content": None}),
        "expected a string, got null",
        chat(USER, {"role": "assistant", "refusal": "no"}),
    ),
    Rule("calls are not empty", chat(USER, calling()), "'messages[1].tool_calls': empty array", called(call())),
    Rule("a call has an id", chat(USER, calling(call(None))), "'messages[1].tool_calls[0].id'", called(call())),
    Rule("an id is short", called(call("a" * 41)), "maximum length 40", called(call("a" * 40))),
    Rule("ids are unique", called(call(), call()), "duplicate tool call id 'call_1'", called(call(), call("call_2"))),
    Rule("a call is of a function", called(call(type="x")), "Invalid value: 'x'", called(call())),
    Rule("a call has a plain name", called(call(name="a b")), "does not match pattern", called(call())),
    Rule("arguments are a string", called(call(arguments={})), "expected a string, but got an object", called(call())),
    Rule("arguments are JSON", called(call(arguments='{"a')), "holds a JSON object", called(call(arguments='{"a":1}'))),
    Rule(
        "arguments are an object", called(call(arguments="[]")), "holds a JSON object", called(call(arguments=" {} "))
    ),
    Rule("arguments are not nothing", called(call(arguments="")), "holds a JSON object", called(call())),
    # results
    Rule(
        "a call is answered before a user speaks",
        chat(USER, calling(call()), USER),
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        "The following tool_call_ids did not have response messages: call_1",
        chat(USER, calling(call()), result(), USER),
    ),
    Rule("a call is answered at all", chat(USER, calling(call())), "did not have response messages", called(call())),
    Rule(
        "every call is answered",
        chat(USER, calling(call(), call("b")), result()),
        "did not have response messages: b",
        chat(USER, calling(call(), call("b")), result("b"), result()),
    ),
    Rule(
        "a result has a call",
        chat(USER, result()),
        "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        called(call()),
    ),
    Rule(
        "a result has a call right before it",
        chat(USER, calling(call()), result(), SAID, result()),
        "must be a response to a preceeding message",
        chat(USER, calling(call()), result(), SAID, calling(call()), result()),
    ),
    Rule(
        "a call has one result",
        chat(USER, calling(call()), result(), result()),
        "Duplicate value for 'tool_call_id' of 'call_1', in messages[2] and messages[3].",
        called(call()),
    ),
    Rule("a result names its call", chat(USER, calling(call()), {"role": "tool"}), ".tool_call_id'", called(call())),
    Rule(
        "a result is text",
        chat(USER, calling(call()), result(content=[URL])),
        "only allowed for messages with role 'user'",
        chat(USER, calling(call()), result(content=[PART])),
    ),
    Rule("a result has content", chat(USER, calling(call()), result(content=None)), "got null", called(call())),
]

SHAPES = [
    Rule(
        "a tool holds a function", chat(tools=[{"type": "function"}]), "'tools[0].function'", chat(tools=[function()])
    ),
    Rule("a schema is an object", chat(tools=[function(parameters=1)]), "but got an integer", chat(tools=[function()])),
    Rule(
        "a schema format is an object",
        chat(response_format={"type": "json_schema"}),
        "Missing required parameter: 'response_format.json_schema'.",
        chat(response_format=None),
    ),
    Rule("calls are an array", chat(USER, {**calling(), "tool_calls": 1}), "an array of objects", called(call())),
    Rule("a call is an object", chat(USER, {**calling(), "tool_calls": [1]}), "expected an object", called(call())),
    Rule("a call holds a function", chat(USER, calling(call(function=None))), "[0].function'", called(call())),
    Rule("a part holds what it says", user({"type": "image_url"}), "'messages[0].content[0].image_url'", user(URL)),
    Rule(
        "audio has data",
        user({"type": "input_audio", "input_audio": {"format": "mp3"}}),
        "input_audio.data'",
        user({"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}}),
    ),
]


def family(name: str, body: Json, **fields: Any) -> Json:
    return {**body, "model": f"{name}-tool1", **fields}


NINE = called(call("abcDEF123"))
KIMI = chat(USER, calling(call("functions.read:0"), reasoning_content="hm"), result("functions.read:0"))


def mistral(*messages: Any) -> Json:
    return family("mistral", chat(*messages))


FAMILIES = [
    Rule("mistral: ids have nine characters", family("mistral", called(call())), "Tool call id was call_1 but must be", family("mistral", NINE)),
    Rule(
        "mistral: no user behind a tool",
        mistral(*NINE["messages"], USER),
        "Unexpected role 'user' after role 'tool'",
        mistral(*NINE["messages"], SAID, USER),
    ),
    Rule(
        "mistral: the assistant is not last",
        mistral(USER, SAID),
        "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
        mistral(USER, {**SAID, "prefix": True}),
    ),
    Rule("mistral: no stream_options", family("mistral", chat(), stream_options={}), "Extra inputs", family("mistral", chat(), safe_prompt=True)),
    Rule(
        "mistral: no max_completion_tokens",
        family("mistral", chat(), max_completion_tokens=9),
        "Extra inputs",
        family("mistral", chat(), max_tokens=9),
    ),
    Rule(
        "deepseek: reasoning comes back",
        family("deepseek", called(call())),
        "Missing `reasoning_content` field in the assistant message at message index 1",
        family("deepseek", chat(USER, calling(call(), reasoning_content=""), result())),
    ),
    Rule(
        "kimi: reasoning comes back and is not empty",
        family("kimi", chat(USER, calling(call("functions.read:0"), reasoning_content=""), result("functions.read:0"))),
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
        family("kimi", KIMI),
    ),
    Rule(
        "kimi: ids name the function",
        family("kimi", chat(USER, calling(call(), reasoning_content="hm"), result())),
        "is not of the form functions.name:index",
        family("kimi", KIMI),
    ),
    *(
        rule
        for name in ("o", "gpt-5", "gpt-5.2")
        for rule in (
            Rule(
                f"{name}: the limit has another name",
                family(name, chat(), max_tokens=9),
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                family(name, chat({"role": "system", "content": "a"}, USER), max_completion_tokens=9),
            ),
            Rule(
                f"{name}: there is one temperature",
                family(name, chat(), temperature=0.2),
                "Unsupported value: 'temperature' does not support 0.2 with this model.",
                family(name, chat({"role": "developer", "content": "a"}, USER), temperature=1),
            ),
        )
    ),
    Rule("alternate: not two users", family("alternate", chat(USER, USER)), "must alternate", family("alternate", chat(USER, SAID, USER))),
    Rule("alternate: a user is first", family("alternate", chat(SAID)), "must alternate", family("alternate", chat({"role": "system", "content": "a"}, USER))),
    Rule(
        "alternate: not two assistants",
        family("alternate", chat(USER, SAID, SAID)),
        "Conversation roles must alternate user/assistant/user/assistant/...",
        family("alternate", chat(USER, calling(call()), result(), SAID, USER)),
    ),
]  # fmt: skip


@pytest.mark.parametrize("rule", [*RULES, *SHAPES, *FAMILIES], ids=lambda rule: rule.says)
def test_a_rule_refuses_one_thing_and_takes_the_next(rule: Rule):
    check("chat", rule.taken, {})
    with pytest.raises(Refused) as caught:
        check("chat", rule.refused, {})
    assert rule.words in caught.value.message
    assert caught.value.status == 400


def test_what_a_family_insists_on_is_taken_from_others():
    for rule in FAMILIES:
        check("chat", {**rule.refused, "model": "m"}, {})


def test_a_kimi_id_may_be_longer_than_openai_has_it():
    id = f"functions.{'read' * 12}:0"
    check("chat", family("kimi", chat(USER, calling(call(id), reasoning_content="hm"), result(id))), {})
